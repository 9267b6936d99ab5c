"""Averages of the parameters over the steps, which replace the parameters while a model is evaluated or saved."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from .. import arguments, layers, unique_name
from ..described import Described
from ..errors import InvalidType, also
from ..framework import Program, Variable, default_main_program, name_scope, program_guard
from ..layer_helper import LayerHelper
from ..layers import check
from .base import Optimizer

if TYPE_CHECKING:
    from ..executor import Executor

_COUNTS = ("num_accumulates", "old_num_accumulates", "num_updates")


def _averaged_parameters(program):
    return [p for p in program.global_block().all_parameters() if p.do_model_average is not False]


def _restore_program(pairs):
    """A program that restores parameters from (parameter, copy) pairs."""
    program = Program()
    block = program.global_block()
    with program_guard(main_program=program):
        for parameter, copy in pairs:
            layers.assign(block._clone_variable(copy), block._clone_variable(parameter))
    return program


class _Applied(Described):
    """Base class of the averages: one program copies them into the parameters, another restores the parameters."""

    apply_program: Program
    restore_program: Program

    @contextlib.contextmanager
    def apply(self, executor: Executor, need_restore: bool = True) -> Iterator[None]:
        """Context manager in which the parameters hold their averages.

        Args:
            executor (Executor): executor that exchanges the values in the current scope.
            need_restore (bool): restores the parameters at the end. If False, call :meth:`restore`. Default True.
        """
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor: Executor) -> None:
        """Restores the parameters to their values before :meth:`apply`.

        Args:
            executor (Executor): executor that exchanges the values in the current scope.
        """
        executor.run(self.restore_program)


class ExponentialMovingAverage(_Applied):
    """Exponential moving averages of the parameters: ema = decay * ema + (1 - decay) * parameter.

    The averages start at zero. :meth:`apply` sets the parameters to ema / (1 - decay^steps). Create the object after
    ``minimize``, in the same program, and call :meth:`update` once to append the operators.

    Args:
        decay (float): decay rate. Default 0.999.
        thres_steps (Variable, optional): the step number, of shape [1]. If given, the decay rate is min(decay,
            (thres_steps + 1) / (thres_steps + 10)), so the average forgets early steps sooner.
        name (str, optional): prefix of the names of the averages.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1, param_attr="w"))
        >>> test = fluid.default_main_program().clone(for_test=True)
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> ema = fluid.optimizer.ExponentialMovingAverage(0.99)
        >>> ema.update()
        >>> executor = fluid.Executor(fluid.CPUPlace())
        >>> _ = executor.run(fluid.default_startup_program())
        >>> feed = {"x": numpy.ones([2, 4], "float32")}
        >>> _ = executor.run(fluid.default_main_program(), feed=feed)
        >>> with ema.apply(executor):
        ...     averaged, = executor.run(test, feed=feed, fetch_list=[loss])
    """

    def __init__(self, decay: float = 0.999, thres_steps: Variable | None = None, name: str | None = None) -> None:
        if isinstance(decay, Variable) or not isinstance(decay, (int, float, numpy.floating)):
            raise also(InvalidType, ValueError)("ExponentialMovingAverage: decay must be a float, got %s"
                                                % type(decay).__name__)
        if thres_steps is not None and not isinstance(thres_steps, Variable):
            raise InvalidType("ExponentialMovingAverage: thres_steps must be a Variable, got %s"
                              % type(thres_steps).__name__)
        self._decay, self._thres_steps, self._name = float(decay), thres_steps, name or ""
        self._step_counter_name = "@EMA_STEP_COUNTER@"
        self._decay_var = self._get_ema_decay()
        block = default_main_program().global_block()
        self._params_tmps = [(p, block.create_var(name=unique_name.generate(self._name + p.name + ".ema_tmp"),
                                                  dtype=p.dtype, persistable=False, stop_gradient=True))
                             for p in _averaged_parameters(default_main_program())]
        self._ema_vars = {p.name: self._create_ema_vars(p) for p, _ in self._params_tmps}
        self.apply_program = self._apply_program()
        self.restore_program = _restore_program(self._params_tmps)

    def _create_ema_vars(self, param):
        """The variable of a parameter's average, 0 at first."""
        return layers.create_global_var(name=unique_name.generate(self._name + param.name + "_ema"), shape=param.shape,
                                        value=0.0, dtype=param.dtype, persistable=True)

    def _get_ema_decay(self):
        """The variable of the decay rate."""
        program, steps = default_main_program(), self._thres_steps
        with program._lr_schedule_guard():
            decay = layers.create_global_var(name="scheduled_ema_decay_rate", shape=[1], value=self._decay,
                                             dtype="float32", persistable=True)
            if steps is None:
                return decay
            if not check.exact_fluid():  # Fluid 1.8.5 divides integers, so the decay of an int counter is 0
                steps = layers.cast(steps, "float32")
            early = (steps + 1.0) / (steps + 10.0)
            with layers.Switch() as switch:
                with switch.case(early < self._decay):
                    layers.assign(early, decay)
                with switch.default():
                    layers.assign(numpy.array([self._decay], dtype="float32"), decay)
        return decay

    def _get_decay_pow(self, block):
        """The decay rate to the power of the number of steps, and that number."""
        steps = layers.cast(layers.create_global_var(name=self._step_counter_name, shape=[1], value=0, dtype="int64",
                                                     persistable=True), "float32")
        return layers.elementwise_pow(block._clone_variable(self._decay_var), steps), steps

    def _apply_program(self):
        program = Program()
        block = program.global_block()
        with program_guard(main_program=program):
            decay, steps = self._get_decay_pow(block)
            for parameter, copy in self._params_tmps:
                into, ema = block._clone_variable(parameter), block._clone_variable(self._ema_vars[parameter.name])
                layers.assign(into, block._clone_variable(copy))
                # Fluid 1.8.5 divides the averages in place, so training continues from larger ones.
                divided = ema if check.exact_fluid() else into
                with layers.Switch() as switch, switch.case(steps > 0.0):
                    layers.assign(ema / (1.0 - decay), divided)
                if divided is ema:
                    layers.assign(ema, into)
        return program

    def update(self) -> None:
        """Appends the operators that update the averages after each step; call it after ``minimize``."""
        layers.autoincreased_step_counter(counter_name=self._step_counter_name)
        program = default_main_program()
        for parameter, copy in self._params_tmps:
            with program._optimized_guard([parameter, copy]), name_scope("moving_average"):
                ema = self._ema_vars[parameter.name]
                layers.assign(ema * self._decay_var + parameter * (1 - self._decay_var), ema)


class ModelAverage(_Applied, Optimizer):
    """Means of the parameters over a window of recent steps, which grows with the number of steps.

    The window spans average_window_rate times all steps, but at least ``min_average_window`` and at most
    ``max_average_window``. When a window is full, a new one starts, and the mean covers both. Create the object after
    ``minimize``, in the same program; the constructor appends the operators.

    Polyak and Juditsky, Acceleration of stochastic approximation by averaging, SIAM J. Control Optim. 30(4), 1992.

    Args:
        average_window_rate (float): length of the window as a fraction of all steps.
        min_average_window (int): minimum length of the window. Default 10000.
        max_average_window (int): maximum length of the window. Default 10000.
        regularization (WeightDecayRegularizer, optional): not used.
        name (str, optional): prefix of the names of its variables.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> loss = fluid.layers.mean(fluid.layers.fc(x, 1))
        >>> test = fluid.default_main_program().clone(for_test=True)
        >>> _ = fluid.optimizer.SGD(0.1).minimize(loss)
        >>> average = fluid.optimizer.ModelAverage(0.15, min_average_window=10, max_average_window=100)
        >>> executor = fluid.Executor(fluid.CPUPlace())
        >>> _ = executor.run(fluid.default_startup_program())
        >>> feed = {"x": numpy.ones([2, 4], "float32")}
        >>> _ = executor.run(fluid.default_main_program(), feed=feed)
        >>> with average.apply(executor):
        ...     averaged, = executor.run(test, feed=feed, fetch_list=[loss])
    """

    def __init__(self, average_window_rate: float, min_average_window: int = 10000, max_average_window: int = 10000,
                 regularization: Any = None, name: str | None = None) -> None:
        Optimizer.__init__(self, 0.0, regularization=regularization, name=name)
        self.average_window = average_window_rate
        self.min_average_window, self.max_average_window = min_average_window, max_average_window
        program = default_main_program()
        self.params_grads = [(p, p.block.create_var(name=unique_name.generate(p.name + ".tmp"), dtype=p.dtype,
                                                    persistable=False, stop_gradient=True))
                             for p in _averaged_parameters(program)]
        self.helper: Any = LayerHelper(self.__class__.__name__)
        for parameter, copy in self.params_grads:
            with parameter.block.program._optimized_guard([parameter, copy]), name_scope("move_average"):
                self._append_accumulate(parameter)
        self.apply_program = self._apply_program()
        self.restore_program = _restore_program(self.params_grads)

    def _append_accumulate(self, parameter):
        state = {}
        for name in ("sum_1", "sum_2", "sum_3"):
            state[name] = self._add_accumulator(name, parameter)
        for name in _COUNTS:
            state[name] = self._add_accumulator(name, parameter, dtype="int64", shape=[1])
        default_main_program().global_block().append_op(
            type="average_accumulates",
            inputs=dict({"in_" + k: [v] for k, v in state.items()}, param=[parameter]),
            outputs={"out_" + k: [v] for k, v in state.items()},
            attrs={"average_window": float(self.average_window), "min_average_window": int(self.min_average_window),
                   "max_average_window": int(self.max_average_window)})

    def _apply_program(self):
        program = Program()
        block = program.global_block()
        with program_guard(main_program=program):
            for parameter, copy in self.params_grads:
                into = block._clone_variable(parameter)
                kept = {name: block._clone_variable(self._get_accumulator(name, parameter))
                        for name in ("sum_1", "sum_2", "sum_3", "num_accumulates", "old_num_accumulates")}
                layers.assign(into, block._clone_variable(copy))
                count = layers.sum([kept["num_accumulates"], kept["old_num_accumulates"]])
                total = layers.sum([kept["sum_1"], kept["sum_2"], kept["sum_3"]])
                count, total = (layers.cast(v, "float32" if self._dtype is None else self._dtype)
                                for v in (count, total))
                block.append_op(type="elementwise_div", inputs={"X": [total], "Y": [count]},
                                outputs={"Out": [into]})
        return program


arguments.explain(globals())
