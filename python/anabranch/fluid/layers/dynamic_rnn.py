"""A block that runs for each step of sequences of different lengths."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from .. import unique_name
from ..described import Described
from ..errors import InvalidValue, NotAllowed
from ..explained import explain
from ..framework import Variable
from ..framework.dtype import VarType, convert_np_dtype_to_dtype_
from ..layer_helper import LayerHelper
from . import check
from ._generated_elementwise import less_than
from .arrays import array_read, array_write
from .fill import fill_constant
from .loops import While
from .query import increment
from .rank_tables import array_to_lod_tensor, shrink_memory

__all__ = ["DynamicRNN"]


class DynamicRNN(Described):
    """Runs the layers of a block for each step of several sequences. A step computes one row of each sequence that
    has not ended.

    Inside the block, rows are sorted by length, the longest sequence first. The results have the order of the input.

    Args:
        name (str, optional): prefix of the generated names.

    Raises:
        ValueError: a method is called outside of its context.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> layers = fluid.layers
        >>> x = fluid.data("x", [None, 1], lod_level=1)
        >>> rnn = layers.DynamicRNN()
        >>> with rnn.block():
        ...     now = rnn.step_input(x)
        ...     total = rnn.memory(shape=[1], value=0.0)
        ...     rnn.update_memory(total, total + now)
        ...     rnn.output(total + now)
        >>> feed = {"x": fluid.create_lod_tensor(numpy.ones((5, 1), "float32"), [[2, 3]], fluid.CPUPlace())}
        >>> result, = fluid.Executor().run(feed=feed, fetch_list=[rnn()], return_numpy=False)
        >>> numpy.array(result).ravel().tolist()
        [1.0, 2.0, 1.0, 2.0, 3.0]
    """

    BEFORE_RNN, IN_RNN, AFTER_RNN = 0, 1, 2

    def __init__(self, name: str | None = None) -> None:
        self.helper = LayerHelper("dynamic_rnn", name=name)
        self.status = DynamicRNN.BEFORE_RNN
        self.lod_rank_table: Any = None
        self.max_seq_len: Any = None
        self.step_idx: Any = None
        self.zero_idx: Variable | None = None
        self.mem_dict: dict[str, Variable] = {}
        self.output_array: list[Variable] = []
        self.outputs: list[Variable] = []
        self.cond = self.helper.create_variable_for_type_inference("bool")
        self.cond.stop_gradient = False
        self.while_op = While(self.cond)
        self.input_array: list[tuple[Variable, Any]] = []
        self.mem_link: list[tuple[Variable, Variable]] = []

    def _inside(self, method):
        if self.status != DynamicRNN.IN_RNN:
            raise InvalidValue("DynamicRNN.%s must be called inside `with rnn.block()`" % method)

    def _parent(self):
        program = self.helper.main_program
        return program.block(program.current_block().parent_idx)

    def _outside(self, name, **kwargs):
        return self._parent().create_var(name=unique_name.generate(name), **kwargs)

    def step_input(self, x: Variable, level: int = 0) -> Variable:
        """Returns the rows of one step of an input.

        Args:
            x (Variable): input with sequences.
            level (int): level of the sequences. Default 0.

        Returns:
            Variable: [sequences that have not ended, ...].

        Raises:
            ValueError: it is called outside of the block.
            TypeError: an argument is not a Variable.
        """
        self._inside("step_input")
        check.variable(x, "x", "DynamicRNN.step_input")
        parent = self._parent()
        if self.lod_rank_table is None:
            self.lod_rank_table = self._outside("lod_rank_table", type=VarType.LOD_RANK_TABLE)
            self.lod_rank_table.stop_gradient = True
            parent.append_op(type="lod_rank_table", inputs={"X": x}, outputs={"Out": self.lod_rank_table},
                             attrs={"level": level})
            self.max_seq_len = self._outside("dynamic_rnn_max_seq_len", dtype=VarType.INT64)
            self.max_seq_len.stop_gradient = False
            parent.append_op(type="max_sequence_len", inputs={"RankTable": self.lod_rank_table},
                             outputs={"Out": self.max_seq_len})
            self.cond.stop_gradient = True
            parent.append_op(type="less_than", inputs={"X": self.step_idx, "Y": self.max_seq_len},
                             outputs={"Out": self.cond}, attrs={"force_cpu": True})
        array = self._outside("dynamic_rnn_input_array", type=VarType.LOD_TENSOR_ARRAY, dtype=x.dtype)
        self.input_array.append((array, x.dtype))
        parent.append_op(type="lod_tensor_to_array", inputs={"X": x, "RankTable": self.lod_rank_table},
                         outputs={"Out": array})
        return array_read(array, self.step_idx)

    def static_input(self, x: Variable) -> Variable:
        """Makes ``x`` available in every step. Each step sees the rows (or sequences) of ``x`` that belong to
        sequences that have not ended.

        Args:
            x (Variable): contains one row, or one sequence, for each sequence of the input.

        Returns:
            Variable: ``x``, sorted by the length of the sequences.

        Raises:
            ValueError: it is called outside of the block.
            RuntimeError: it is called before :meth:`step_input`.
            TypeError: ``x`` is not a Variable.
        """
        self._inside("static_input")
        check.variable(x, "x", "DynamicRNN.static_input")
        if self.lod_rank_table is None:
            raise NotAllowed("DynamicRNN.static_input must be called after step_input")
        ordered = self._outside("dynamic_rnn_static_input_reordered", type=VarType.LOD_TENSOR, dtype=x.dtype)
        self._parent().append_op(type="reorder_lod_tensor_by_rank",
                                 inputs={"X": [x], "RankTable": [self.lod_rank_table]}, outputs={"Out": [ordered]})
        return shrink_memory(ordered, self.step_idx, self.lod_rank_table)

    @contextlib.contextmanager
    def block(self) -> Iterator[None]:
        """Context manager for the layers of one step.

        Raises:
            ValueError: there is already a block.
        """
        if self.status != DynamicRNN.BEFORE_RNN:
            raise InvalidValue("DynamicRNN.block must be called only once")
        self.step_idx = fill_constant(shape=[1], dtype="int64", value=0, force_cpu=True)
        self.step_idx.stop_gradient = False
        self.status = DynamicRNN.IN_RNN
        with self.while_op.block():
            yield
            increment(self.step_idx, value=1.0, in_place=True)
            for new, array in self.mem_link:
                array_write(new, self.step_idx, array)
            less_than(self.step_idx, self.max_seq_len, force_cpu=True, cond=self.cond)
        self.status = DynamicRNN.AFTER_RNN
        self.outputs = [array_to_lod_tensor(each, self.lod_rank_table) for each in self.output_array]

    def _zero(self):
        if self.zero_idx is None:
            self.zero_idx = self._outside("zero_idx", dtype=VarType.INT64)
            self._parent().append_op(type="fill_constant", inputs={}, outputs={"Out": [self.zero_idx]},
                                     attrs={"shape": [1], "dtype": VarType.INT64, "value": 0.0, "force_cpu": True})
        return self.zero_idx

    def memory(self, init: Variable | None = None, shape: Any = None, value: float = 0.0, need_reorder: bool = False,
               dtype: Any = "float32") -> Variable:
        """Returns a memory: the value that :meth:`update_memory` set in the previous step, for the sequences that have
        not ended.

        Args:
            init (Variable, optional): value in the first step, one row per sequence. Default: a constant.
            shape (list|tuple, optional): shape of a row of the constant.
            value (float): value of the constant. Default 0.
            need_reorder (bool): ``init`` is in the order of the input, so it must be sorted by length. Default False.
            dtype (str): dtype of the constant. Default "float32".

        Returns:
            Variable: [sequences that have not ended, ...].

        Raises:
            ValueError: it is called outside of the block or before :meth:`step_input`.
            TypeError: an argument has the wrong type.
        """
        self._inside("memory")
        if init is None:
            return self._constant_memory(shape, value, dtype)
        check.variable(init, "init", "DynamicRNN.memory")
        if self.lod_rank_table is None:
            raise InvalidValue("DynamicRNN.memory must be called after step_input")
        zero, parent = self._zero(), self._parent()
        if need_reorder:
            ordered = self._outside("dynamic_rnn_mem_init_reordered", type=VarType.LOD_TENSOR, dtype=init.dtype)
            parent.append_op(type="reorder_lod_tensor_by_rank",
                             inputs={"X": [init], "RankTable": [self.lod_rank_table]}, outputs={"Out": [ordered]})
            init = ordered
        array = self._outside("dynamic_rnn_mem_array", type=VarType.LOD_TENSOR_ARRAY, dtype=init.dtype)
        parent.append_op(type="write_to_array", inputs={"X": init, "I": zero}, outputs={"Out": array})
        before = shrink_memory(array_read(array, self.step_idx), self.step_idx, self.lod_rank_table)
        self.mem_dict[before.name] = array
        return before

    def _constant_memory(self, shape, value, dtype):
        if not self.input_array:
            raise InvalidValue("DynamicRNN.memory must be called after step_input")
        check.of_type(shape, "shape", "DynamicRNN.memory", (list, tuple))
        zero, parent = self._zero(), self._parent()
        init = self._outside("mem_init", dtype=convert_np_dtype_to_dtype_(dtype))
        array, input_dtype = self.input_array[0]
        first = self._outside("in0", dtype=input_dtype)
        parent.append_op(type="read_from_array", inputs={"X": [array], "I": [zero]}, outputs={"Out": [first]})
        parent.append_op(type="fill_constant_batch_size_like", inputs={"Input": [first]}, outputs={"Out": [init]},
                         attrs={"shape": [-1, *shape], "value": float(value), "dtype": init.dtype})
        return self.memory(init=init)

    def update_memory(self, ex_mem: Variable, new_mem: Variable) -> None:
        """Sets the value of a memory in the next step.

        Args:
            ex_mem (Variable): memory, a result of :meth:`memory`.
            new_mem (Variable): new value, with the same shape.

        Raises:
            ValueError: it is called outside of the block, or ``ex_mem`` is not a memory.
            TypeError: an argument is not a Variable.
        """
        self._inside("update_memory")
        check.variable(ex_mem, "ex_mem", "DynamicRNN.update_memory")
        check.variable(new_mem, "new_mem", "DynamicRNN.update_memory")
        array = self.mem_dict.get(ex_mem.name)
        if array is None:
            raise InvalidValue("DynamicRNN.update_memory: ex_mem must be a memory, got %s" % ex_mem.name)
        self.mem_link.append((new_mem, array))

    def output(self, *outputs: Variable) -> None:
        """Declares Variables of the step as outputs.

        Raises:
            ValueError: it is called outside of the block.
            TypeError: an argument is not a Variable.
        """
        self._inside("output")
        for each in outputs:
            check.variable(each, "an output", "DynamicRNN.output")
            name = "_".join([self.helper.name, "output_array", each.name])
            array = self._outside(name, type=VarType.LOD_TENSOR_ARRAY, dtype=each.dtype)
            array_write(each, self.step_idx, array)
            self.output_array.append(array)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Returns the outputs with the sequences of the input.

        Returns:
            Variable: the output, or a list of several outputs.

        Raises:
            ValueError: it is called before the end of the block.
        """
        if self.status != DynamicRNN.AFTER_RNN:
            raise InvalidValue("DynamicRNN: call it after `with rnn.block()`, which computes the results")
        if not self.outputs:
            raise InvalidValue("DynamicRNN: the block must have an output")
        return self.outputs[0] if len(self.outputs) == 1 else self.outputs


explain(globals())
