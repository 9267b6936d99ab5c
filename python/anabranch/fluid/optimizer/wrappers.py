"""Optimizers that wrap another optimizer."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import arguments, layers
from ..backward import append_backward
from ..clip import error_clip_callback
from ..described import Described
from ..errors import InvalidType, NotOffered, Violated
from ..framework import Variable, default_startup_program, program_guard
from .base import Optimizer

if TYPE_CHECKING:
    from ..framework import Operator, Program


def _loss(optimizer, loss):
    if not isinstance(loss, Variable):
        raise Violated("%s.minimize: loss must be a Variable, got %s" % (optimizer, type(loss).__name__))


class LookaheadOptimizer(Described):
    """Takes k steps with an inner optimizer, then interpolates between the old and the new parameters.

    The inner optimizer updates the fast weights. Every k steps, slow += alpha * (fast - slow), then fast = slow. Zhang,
    Lucas, Hinton and Ba, Lookahead optimizer: k steps forward, 1 step back, NeurIPS 2019 (arXiv:1907.08610).

    Args:
        inner_optimizer (Optimizer): optimizer of the fast weights.
        alpha (float): interpolation factor, in [0, 1]. Default 0.5.
        k (int): number of steps between interpolations. Default 5.

    Raises:
        AssertionError: an argument is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> lookahead = fluid.optimizer.LookaheadOptimizer(fluid.optimizer.SGD(0.1), alpha=0.5, k=5)
        >>> ops, pairs = lookahead.minimize(loss)
        >>> [op.type for op in ops]
        ['sgd', 'sgd']
    """

    def __init__(self, inner_optimizer: Optimizer, alpha: float = 0.5, k: int = 5) -> None:
        if inner_optimizer is None:
            raise Violated("LookaheadOptimizer: inner_optimizer must be given")
        if not 0.0 <= alpha <= 1.0:
            raise Violated("LookaheadOptimizer: alpha must be from 0 to 1, got %r" % (alpha,))
        if not isinstance(k, int) or k <= 0:
            raise Violated("LookaheadOptimizer: k must be an integer above 0, got %r" % (k,))
        self.inner_optimizer, self.alpha, self.k, self.type = inner_optimizer, alpha, k, "lookahead"

    def set_lr(self, value: float, scope: Any = None) -> None:
        """Changes the learning rate of the inner optimizer."""
        self.inner_optimizer.set_lr(value, scope)

    def minimize(self, loss: Variable, startup_program: Program | None = None) -> tuple[Any, ...]:
        """Appends the gradients, the updates of the inner optimizer and the interpolation.

        Args:
            loss (Variable): [1].
            startup_program (Program, optional): receives the initial values. Default: the default startup program.

        Returns:
            tuple: the result of ``minimize`` of the inner optimizer.
        """
        made = self.inner_optimizer.minimize(loss, startup_program=startup_program)
        main, startup = loss.block.program, startup_program or default_startup_program()
        fast = list(main.global_block().all_parameters())
        slow = [self._slow(p, main, startup) for p in fast]
        # Update ops, not forward ops as in Fluid 1.8.5, so that several replicas interpolate once.
        with program_guard(main, startup), main._optimized_guard([]):
            self._append_look_back(fast, slow)
        return made

    @staticmethod
    def _slow(parameter, main, startup):
        """The slow weights of a parameter, initialized with its value."""
        like = {"name": parameter.name + "@SLOW", "shape": parameter.shape, "dtype": parameter.dtype,
                "persistable": True}
        block = startup.global_block()
        block.append_op(type="assign", inputs={"X": [block.var(parameter.name)]},
                        outputs={"Out": [block.create_var(**like)]})
        return main.global_block().create_var(stop_gradient=True, **like)

    def _append_look_back(self, fast, slow):
        made = {name: layers.create_global_var(name="lookahead_" + name, shape=[1], value=value, dtype=dtype,
                                               persistable=True)
                for name, value, dtype in (("k", self.k, "int32"), ("alpha", float(self.alpha), "float32"),
                                           ("step", 0, "int32"))}
        layers.increment(made["step"], value=1.0, in_place=True)
        zero = layers.fill_constant(shape=[1], dtype="float32", value=0.0)
        one = layers.fill_constant(shape=[1], dtype="float32", value=1.0)
        rest = layers.elementwise_mod(made["step"], made["k"])
        with layers.Switch() as switch:
            with switch.case(rest == zero):
                for quick, calm in zip(fast, slow):
                    ahead = layers.elementwise_mul(quick, made["alpha"])
                    rest = layers.elementwise_mul(calm, layers.elementwise_sub(one, made["alpha"]))
                    between = layers.elementwise_add(ahead, rest)
                    layers.assign(between, calm)
                    layers.assign(between, quick)
            with switch.default():
                pass


class _Wrapper(Optimizer):
    """Forwards everything except ``minimize`` and ``backward`` to the inner optimizer."""

    _optimizer: Optimizer

    def __init__(self, optimizer: Optimizer) -> None:
        if not isinstance(optimizer, Optimizer) and not hasattr(optimizer, "apply_optimize"):
            raise InvalidType("%s: optimizer must be an Optimizer, got %s"
                              % (type(self).__name__, type(optimizer).__name__))
        self._optimizer = optimizer

    def apply_gradients(self, params_grads: Sequence[Any]) -> list[Operator]:
        """Calls this method of the inner optimizer."""
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(self, loss: Variable, startup_program: Program | None,
                       params_grads: Sequence[Any]) -> list[Operator]:
        """Calls this method of the inner optimizer."""
        return self._optimizer.apply_optimize(loss, startup_program, params_grads)

    def current_step_lr(self) -> Any:
        """float: the current learning rate of the inner optimizer."""
        return self._optimizer.current_step_lr()

    def set_lr(self, value: float, scope: Any = None) -> None:
        """Changes the learning rate of the inner optimizer."""
        self._optimizer.set_lr(value, scope)

    def get_opti_var_name_list(self) -> list[str]:
        """list of str: the names of the inner optimizer's variables."""
        return self._optimizer.get_opti_var_name_list()

    def state_dict(self) -> Any:
        """dict: the state of the inner optimizer."""
        return self._optimizer.state_dict()


class RecomputeOptimizer(_Wrapper):
    """Saves memory by recomputing, in the backward pass, the activations between checkpoints.

    The checkpoints divide the forward pass into segments. The forward pass keeps only the checkpoints and the values
    that several segments read. The backward pass recomputes the other values, segment by segment, from the last to the
    first. The results are the same, bit for bit. Chen, Xu, Zhang and Guestrin, Training deep nets with sublinear memory
    cost, arXiv:1604.06174.

    Args:
        optimizer (Optimizer): the inner optimizer.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 8, act="tanh")
        >>> loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
        >>> recompute = fluid.optimizer.RecomputeOptimizer(fluid.optimizer.SGD(0.1))
        >>> recompute._set_checkpoints([hidden])
        >>> ops, pairs = recompute.minimize(loss)
        >>> len(ops)
        4
    """

    def __init__(self, optimizer: Optimizer) -> None:
        super().__init__(optimizer)
        self._checkpoints: Any = None

    def _set_checkpoints(self, checkpoints: Sequence[Variable | str]) -> None:
        """Sets the checkpoints: a list of Variables or names, in the order of the program."""
        if not isinstance(checkpoints, (list, tuple)):
            raise InvalidType("RecomputeOptimizer: checkpoints must be a list of Variables, got %s"
                              % type(checkpoints).__name__)
        self._checkpoints = list(checkpoints)

    def load(self, stat_dict: Any) -> Any:
        """Raises NotImplementedError, as in Fluid: ``fluid.load`` reads the state."""
        raise NotOffered("RecomputeOptimizer does not load state: use fluid.load or fluid.io")

    def backward(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None,
                 callbacks: Sequence[Any] | None = None) -> list[Any]:
        """Like :meth:`Optimizer.backward`, recomputing the activations between the checkpoints.

        Raises:
            AssertionError: the checkpoints are not set.
        """
        _loss("RecomputeOptimizer", loss)
        if self._checkpoints is None:
            raise Violated("RecomputeOptimizer: call _set_checkpoints first")
        self._optimizer._dtype = loss.dtype
        program = loss.block.program
        with program_guard(program, startup_program or default_startup_program()):
            chosen = self._optimizer._parameter_list if parameter_list is None else parameter_list
            return append_backward(loss, chosen, no_grad_set,
                                   [error_clip_callback] + list(callbacks or []), checkpoints=self._checkpoints)

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None) -> tuple[Any, ...]:
        """Like :meth:`Optimizer.minimize`. The checkpoints must be set first."""
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        return self.apply_optimize(loss, startup_program, pairs), pairs


class PipelineOptimizer(Described):
    """Splits a program into sections, one per device. Anabranch runs it as one section on one device.

    The results are those of a pipeline that completes each batch before the next one starts (``sync_steps`` and
    ``concurrency_list`` of 1). The arguments that distribute sections over devices have no effect.

    Args:
        optimizer (Optimizer): the inner optimizer.
        cut_list (list of list of Variable, optional): variables at which the program would be split.
        place_list (list, optional): the device of each section.
        concurrency_list (list of int, optional): number of threads of each section.
        queue_size (int): maximum number of batches queued before a section. Default 30.
        sync_steps (int): number of steps between exchanges of parameters. Default 1.
        start_cpu_core_id (int): first core to bind. Default 0.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> hidden = fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 8)
        >>> loss = fluid.layers.mean(fluid.layers.fc(hidden, 1))
        >>> pipeline = fluid.optimizer.PipelineOptimizer(
        ...     fluid.optimizer.SGD(0.1), cut_list=[[hidden], [loss]], place_list=[fluid.CPUPlace()] * 3,
        ...     concurrency_list=[1, 1, 1])
        >>> len(pipeline.minimize(loss)[0])
        4
    """

    def __init__(self, optimizer: Optimizer, cut_list: Sequence[Any] | None = None,
                 place_list: Sequence[Any] | None = None, concurrency_list: Sequence[int] | None = None,
                 queue_size: int = 30, sync_steps: int = 1, start_cpu_core_id: int = 0) -> None:
        if not hasattr(optimizer, "minimize"):
            raise InvalidType("PipelineOptimizer: optimizer must be an Optimizer, got %s" % type(optimizer).__name__)
        for part in cut_list or ():
            if not isinstance(part, (list, tuple)) or not all(isinstance(v, Variable) for v in part):
                raise InvalidType("PipelineOptimizer: cut_list must be a list of lists of Variables")
        self._optimizer, self._cut_list = optimizer, cut_list

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None) -> tuple[Any, ...]:
        """Calls :meth:`Optimizer.minimize` of the inner optimizer.

        Raises:
            AssertionError: ``loss`` is not a Variable.
        """
        _loss("PipelineOptimizer", loss)
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)

    def _is_opt_role_op(self, op):
        """Whether the role of an op has the bit of the updates."""
        return op.has_attr("op_role") and op._is_optimize_op()


arguments.explain(globals())
