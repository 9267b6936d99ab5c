"""Program, which layers build, append_backward extends and executors run."""
from __future__ import annotations

import contextlib
import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ... import _core
from .. import arguments
from ..errors import InvalidType, InvalidValue, Violated, also
from . import context, pruning
from .block import Block
from .context import OpRole

if TYPE_CHECKING:
    from ..framework import Parameter


class Program:
    """A list of blocks of operators and variables. Block 0 is the global block.

    Layers append to the *default main program*, and add the ops that initialize their parameters to the *default
    startup program*.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> main, startup = fluid.Program(), fluid.Program()
        >>> with fluid.program_guard(main, startup):
        ...     x = fluid.data("x", [None, 4])
        >>> main.num_blocks, [v.name for v in main.list_vars()]
        (1, ['x'])
    """

    def __init__(self) -> None:
        self._own(_core.Program())

    @classmethod
    def _over(cls, desc):
        """A Program that wraps an existing description."""
        program = cls.__new__(cls)
        program._own(desc)
        return program

    def _own(self, desc):
        self.desc = desc
        self._blocks = []
        self.current_block_idx = 0
        self._current_role = OpRole.Forward
        self._current_role_var = []
        self._seed_given = desc.random_seed != 0
        #: Copies for tests, of this program and of its copies, whose lookups follow when tables move to servers.
        self._test_programs = weakref.WeakSet()
        # Set by distributed training and readers.
        self._is_distributed = False
        self._is_chief = False
        self._takes_steps_together = False  # with all workers, whose gradients servers add up
        self._parameters_on_pservers = None
        self._endpoints = []
        self._trainers_endpoints = []
        self._distributed_lookup_table = None
        self._distributed_info = None
        self._slice_vars_and_attrs = []
        self._ps_endpoint = None
        self._is_start_up_program_ = False
        self._feed_names = None    # of a loaded inference program: names of its feeds and results
        self._fetch_names = None
        self._readers = {}         # name of a reader variable -> source of its batches
        self._nccl_comm_num = 1
        self._use_hierarchical_allreduce = False
        self._hierarchical_allreduce_inter_nranks = 0
        self._fleet_opt = None
        self._serve_locally: Any = None     # starts the servers of this process, which a run of the program needs
        self._program_config = None
        self._appending_grad_times = 0   # calls of append_backward and gradients
        self._is_inference = False
        self._schema_features: dict[str, Any] = {}    # that a schema has made inputs of; copies share it, and the next
        self._saved_by_runs = 0     # of Checkpoints, whose epochs are being iterated over
        self._trained_on: dict[str, Any] = {}         # path -> shares of its lines
        self._sync_with_cpp()

    # ---- blocks

    @property
    def blocks(self) -> list[Block]:
        """list of Block: all blocks, by index."""
        self._sync_with_cpp()
        return self._blocks

    def _sync_with_cpp(self):
        """Creates a wrapper for every C++ block, including blocks that the C++ side added."""
        while len(self._blocks) < self.desc.num_blocks():
            self._blocks.append(Block(self, self.desc.block(len(self._blocks))))

    @property
    def num_blocks(self) -> int:
        """int: number of blocks, 1 for a program without control flow."""
        return self.desc.num_blocks()

    def global_block(self) -> Any:
        """Block: the outermost block."""
        return self._blocks[0]

    def block(self, index: Any) -> Any:
        """Block: the block with this index.

        Raises:
            IndexError: there is no such block. It is also a ValueError.
        """
        blocks = self.blocks
        if not -len(blocks) <= index < len(blocks):
            raise also(InvalidValue, IndexError)("Program.block: index must be below %d, got %s"
                                                 % (len(blocks), index))
        return blocks[index]

    def current_block(self) -> Any:
        """Block: the block to which layers append."""
        return self.block(self.current_block_idx)

    def _create_block(self, parent_idx=None):
        """Creates a block inside the current (or the given) one and makes it current."""
        parent = self.current_block_idx if parent_idx is None else parent_idx
        self.current_block_idx = self.desc.create_block(parent)
        return self.current_block()

    def _rollback(self):
        """Makes the enclosing block current again."""
        self.current_block_idx = self.current_block().parent_idx

    def _version(self):
        """The version of the file format, 1008005 for Fluid 1.8.5."""
        return self.desc.file_version

    # ---- variables

    def list_vars(self) -> Iterator[Any]:
        """Iterator over the Variables of all blocks.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> p = fluid.Program()
            >>> _ = p.global_block().create_var(name="v", shape=[1], dtype="float32")
            >>> [v.name for v in p.list_vars()]
            ['v']
        """
        for block in list(self.blocks):
            yield from list(block.vars.values())

    def all_parameters(self) -> list[Parameter]:
        """list of Parameter: the parameters of all blocks."""
        return [p for block in self.blocks for p in block.iter_parameters()]

    # ---- random numbers

    @property
    def random_seed(self) -> int:
        """int: seed of the random ops; 0 draws a new seed in every process. Set it before ops are appended.

        Raises:
            ValueError: the assigned value is not an int of 64 bits.
        """
        return self.desc.random_seed

    @random_seed.setter
    def random_seed(self, seed: Any) -> None:
        if not isinstance(seed, int) or isinstance(seed, bool):
            raise InvalidValue("Program.random_seed must be an int, got %r" % (seed,))
        if not -2**63 <= seed < 2**63:
            raise InvalidValue("Program.random_seed must be a 64-bit integer, got %d" % seed)
        self.desc.random_seed = seed
        self.desc.touch()

    # Fluid stores random_seed as ``program._seed``.
    _seed = random_seed

    def global_seed(self, seed: int = 0) -> Program:
        """Sets the seed of both default programs, and of programs that later replace them.

        Args:
            seed (int): the seed. Default 0.

        Returns:
            Program: this program, with the seed.
        """
        for program in context.default_programs():
            program.random_seed = seed
        self.random_seed = seed
        return self

    # ---- copies

    def clone(self, for_test: bool = False) -> Program:
        """Returns a deep copy. Parameters keep their names, so both programs share their values in one scope.

        Args:
            for_test (bool): whether to drop backward, optimizer and learning-rate ops, and set ``is_test`` on ops that
                have it (dropout, batch_norm ...). Works before and after ``minimize``. Default False.

        Returns:
            Program: the copy.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> main = fluid.Program()
            >>> test = main.clone(for_test=True)
            >>> test is main
            False
        """
        if not for_test:
            return pruning.clone(self)
        copy = pruning.clone_for_test(self)
        self._test_programs.add(copy)
        return copy

    def _prune(self, targets):
        """A copy of the part that ``targets`` (Variables, Operators or names) need."""
        return pruning.prune(self, [], targets)

    def _prune_with_input(self, feeded_var_names, targets):
        """Like ``_prune``, with these variables as inputs."""
        return pruning.prune(self, feeded_var_names, targets)

    def _inference_optimize(self, prune_read_op=True):
        """A copy with ops in test mode, without reader ops unless ``prune_read_op`` is False."""
        return pruning.inference_copy(self, prune_read_op)

    def _copy_dist_param_info_from(self, other):
        for key in ("_is_distributed", "_is_chief", "_takes_steps_together", "_parameters_on_pservers", "_endpoints",
                    "_ps_endpoint", "_distributed_lookup_table", "_slice_vars_and_attrs", "_trainers_endpoints"):
            setattr(self, key, getattr(other, key))

    def _copy_param_info_from(self, other):
        """Marks the variables that are parameters of another program as parameters, and copies their attributes."""
        pruning.copy_parameters(self, other)

    def _copy_data_info_from(self, other):
        """Marks the variables that are fed in another program as fed."""
        pruning.copy_data(self, other)

    def _get_desc(self):
        """The description of the program."""
        return self.desc

    # ---- text and bytes

    @classmethod
    def _construct_from_desc(cls, desc):
        """A Program over a description. Programs over the same description share their blocks."""
        if not isinstance(desc, _core.Program):
            raise InvalidType("Program._construct_from_desc: desc must be a ProgramDesc, got %s" % type(desc).__name__)
        return cls._over(desc)

    @staticmethod
    def parse_from_string(binary_str: bytes) -> Program:
        """Reads a program from framework.proto bytes, which do not hold Python's part (parameters, initializers).

        Args:
            binary_str (bytes): content of a ``__model__`` file.

        Returns:
            Program: the program.

        Raises:
            EnforceNotMet: the bytes are not a valid program.
        """
        if not isinstance(binary_str, (bytes, bytearray)):
            raise InvalidType("Program.parse_from_string: binary_str must be bytes, got %s" % type(binary_str).__name__)
        program = Program.__new__(Program)
        program._own(_core.Program.parse_from_string(bytes(binary_str)))
        return program

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> Any:
        """Readable text of the program: one line per variable, one line per op.

        Args:
            throw_on_error (bool): ignored; a program is never incomplete.
            with_details (bool): whether to add roles, name scopes and the line that made each op. Default False.

        Raises:
            AssertionError: an argument is not a bool.
        """
        if not isinstance(throw_on_error, bool) or not isinstance(with_details, bool):
            raise Violated("Program.to_string: throw_on_error and with_details must be bool")
        return self.desc.to_text(with_details)

    def draw(self, path: str, block: int = 0, variables: bool = True, highlights: Sequence[str] | None = None) -> None:
        """Draws a block, with operators colored by role (forward, backward, optimizer, schedule).

        Args:
            path (str): file to write: .svg or .dot; .png, .pdf, .ps and .jpg where Graphviz is installed.
            block (int): index of the block. Default 0, the global one.
            variables (bool): whether to draw variables between operators; if not, edges join operators. Default True.
            highlights (list of str, optional): names of variables to mark.

        Returns:
            None.

        Raises:
            ValueError: there is no such block, or the suffix is unknown.
            NotImplementedError: the suffix needs Graphviz, which is not installed.
            OSError: the file cannot be written.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> x = fluid.data("x", [None, 4])
            >>> y = fluid.layers.fc(x, 2, act="relu")
            >>> fluid.default_main_program().draw("program.svg")
        """
        from ...drawing import program_graph, write_picture  # few programs draw
        write_picture(program_graph(self.block(block), variables, highlights), path)

    def __str__(self) -> str:
        return self.to_string(True)

    def __repr__(self) -> str:
        from ..._terminal import counted
        return "<Program: %s, %s in the global one>" % (
            counted(self.num_blocks, "block"), counted(len(self.global_block().ops), "op"))

    # ---- attributes of the ops that follow

    @property
    def _op_role(self):
        return self._current_role

    @_op_role.setter
    def _op_role(self, role):
        self._current_role = role

    op_role = _op_role

    @property
    def _op_role_var(self):
        return self._current_role_var

    @_op_role_var.setter
    def _op_role_var(self, names):
        self._current_role_var = [names] if isinstance(names, str) else list(names)

    op_role_var = _op_role_var

    @contextlib.contextmanager
    def _marked(self, role, role_var):
        old = self._current_role, self._current_role_var
        self._current_role, self._current_role_var = role, role_var
        try:
            yield
        finally:
            self._current_role, self._current_role_var = old

    def _optimized_guard(self, param_and_grads):
        """Context manager in which ops update a parameter: role Optimize, with (parameter, gradient) as an
        attribute."""
        names = [v if isinstance(v, str) else v.name for v in param_and_grads if v is not None]
        return self._marked(OpRole.Optimize, names)

    def _lr_schedule_guard(self, is_with_opt=False):
        """Context manager in which ops compute learning rates."""
        return self._marked(OpRole.LRSched | OpRole.Optimize if is_with_opt else OpRole.LRSched, [])

    def _backward_role_guard(self):
        """Context manager in which ops belong to the backward part."""
        return self._marked(OpRole.Backward, [])


arguments.explain(globals())
