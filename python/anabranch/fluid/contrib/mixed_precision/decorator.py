"""An optimizer for training in mixed precision with a scaled loss."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ... import arguments, layers, unique_name
from ...described import Described
from ...errors import InvalidType, InvalidValue
from ...framework import Variable, default_main_program, default_startup_program, program_guard
from .fp16_lists import AutoMixedPrecisionLists

if TYPE_CHECKING:
    from ...framework import Operator, Program
    from ...optimizer import Optimizer

__all__ = ["decorate", "AutoMixedPrecisionLists"]


class OptimizerWithMixedPrecision(Described):
    """The wrapper of an optimizer that :func:`decorate` returns."""

    def __init__(self, optimizer: Optimizer, amp_lists: AutoMixedPrecisionLists, init_loss_scaling: float,
                 use_dynamic_loss_scaling: bool, incr_every_n_steps: int, decr_every_n_nan_or_inf: int,
                 incr_ratio: float, decr_ratio: float, dtype: str) -> None:
        self._optimizer, self._amp_lists, self._dtype = optimizer, amp_lists, dtype
        self._use_dynamic_loss_scaling = bool(use_dynamic_loss_scaling)
        self._incr_ratio, self._decr_ratio = incr_ratio, decr_ratio
        self._scaled_loss: Variable | None = None
        self._loss_scaling = self._state("loss_scaling", init_loss_scaling, "float32")
        if self._use_dynamic_loss_scaling:
            self._incr_every = layers.fill_constant(shape=[1], dtype="int32", value=incr_every_n_steps)
            self._decr_every = layers.fill_constant(shape=[1], dtype="int32", value=decr_every_n_nan_or_inf)
            self._num_good_steps = self._state("num_good_steps", 0, "int32")
            self._num_bad_steps = self._state("num_bad_steps", 0, "int32")

    @staticmethod
    def _state(name, value, dtype):
        return layers.create_global_var(name=unique_name.generate(name), shape=[1], value=value, dtype=dtype,
                                        persistable=True)

    def get_loss_scaling(self) -> Variable:
        """Variable: the scale of the loss in a step, [1]."""
        return self._loss_scaling

    def get_scaled_loss(self) -> Variable | None:
        """Variable: the loss multiplied by :meth:`get_loss_scaling`, or None before ``minimize``."""
        return self._scaled_loss

    def set_lr(self, value: float, scope: Any = None) -> None:
        """Changes the learning rate of the inner optimizer."""
        self._optimizer.set_lr(value, scope)

    # ---- lower precision

    def _lowered(self, op):
        kind = op.type[:-len("_grad")] if op.type.endswith("_grad") else op.type
        return kind in self._amp_lists.white_list and not self._keeps_variables(op)

    def _keeps_variables(self, op):
        names = set(self._amp_lists.black_varnames or ())
        return bool(names & set(op.input_arg_names + op.output_arg_names))

    def _mark(self, program):
        """Marks white operators, which round their operands on the CPU if the processor has bfloat16 products."""
        for op in program.global_block().ops:
            if self._lowered(op):
                op._set_attr("bfloat16", True)

    def _is_low(self, op, lows):
        """Returns whether the operator computes in 16 bits on a device. ``lows`` maps each variable to whether it has
        16 bits."""
        lists = self._amp_lists
        if self._keeps_variables(op):
            return False
        if op.type in lists.white_list:
            return True
        sources = [lows[name] for name in op.input_arg_names if name in lows]
        return op.type in lists.gray_list and op.type != "cast" and any(sources) and all(sources)

    def _mark_for_devices(self, program):
        """Marks forward operators that work in 16 bits on devices, as in Fluid 1.8.5: white ones, and gray ones that
        read their results. Gradients, which are appended later, copy the mark; the device inserts the casts."""
        lows = {}  # by variable: whether it is made in 16 bits; of gray operators that follow none, unknown
        for op in program.global_block().ops:
            low = self._is_low(op, lows)
            known = op.type not in self._amp_lists.gray_list or any(n in lows for n in op.input_arg_names)
            if low:
                op._set_attr("mixed_precision", self._dtype)
            for name in op.output_arg_names:
                lows.pop(name, None)
                if known:
                    lows[name] = low

    # ---- as an optimizer

    def backward(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None,
                 callbacks: Sequence[Any] | None = None) -> list[Any]:
        """Appends the gradients of the scaled loss, and their division by the scale.

        Returns:
            list: (parameter, gradient) pairs of the unscaled loss.
        """
        program = loss.block.program
        with program_guard(program, startup_program or default_startup_program()):
            self._mark_for_devices(program)
            self._scaled_loss = loss * self._loss_scaling
            pairs = self._optimizer.backward(self._scaled_loss, startup_program, parameter_list, no_grad_set,
                                             callbacks)
            self._mark(program)
            divided = []
            for parameter, gradient in pairs:
                with program._optimized_guard([parameter, gradient]):
                    divided.append((parameter, gradient / self._loss_scaling))
        return divided

    def apply_gradients(self, scaled_params_grads: Sequence[Any]) -> list[Operator]:
        """Appends the computation of the next scale, and the updates. If a gradient is not finite, gradients of 0 are
        applied.

        Args:
            scaled_params_grads (list): result of :meth:`backward`.

        Returns:
            list of Operator: the updates.
        """
        if self._use_dynamic_loss_scaling:
            # Updates, not forward ops as in 1.8.5: several replicas, which would all count, are refused.
            with default_main_program()._optimized_guard([]):
                gradients = [gradient for _, gradient in scaled_params_grads]
                sums = layers.concat([layers.reduce_sum(gradient) for gradient in gradients])
                finite = layers.isfinite(layers.reduce_sum(sums))
                self._append_scaling(finite)
                with layers.Switch() as switch:
                    with switch.case(finite):
                        pass
                    with switch.default():
                        for gradient in gradients:
                            layers.assign(layers.zeros_like(gradient), gradient)
        return self._optimizer.apply_gradients(scaled_params_grads)

    def _append_scaling(self, finite):
        """Appends ops that increase the scale after a number of steps with finite gradients, and decrease it, to at
        least 1, after other steps."""
        zero = layers.fill_constant(shape=[1], dtype="int32", value=0)
        scale, good, bad = self._loss_scaling, self._num_good_steps, self._num_bad_steps
        with layers.Switch() as switch:
            with switch.case(finite):
                with layers.Switch() as enough:
                    with enough.case(layers.less_than(self._incr_every, good + 1)):
                        larger = scale * self._incr_ratio
                        with layers.Switch() as still, still.case(layers.isfinite(larger)):
                            layers.assign(larger, scale)
                        layers.assign(zero, good)
                        layers.assign(zero, bad)
                    with enough.default():
                        layers.increment(good)
                        layers.assign(zero, bad)
            with switch.default():
                with layers.Switch() as enough:
                    with enough.case(layers.less_than(self._decr_every, bad + 1)):
                        one = layers.fill_constant(shape=[1], dtype="float32", value=1.0)
                        layers.assign(layers.elementwise_max(scale * self._decr_ratio, one), scale)
                        layers.assign(zero, good)
                        layers.assign(zero, bad)
                    with enough.default():
                        layers.assign(zero, good)
                        layers.increment(bad)

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None) -> tuple[Any, ...]:
        """Like ``minimize`` of the inner optimizer.

        Returns:
            tuple: the updates, and the (parameter, gradient) pairs.
        """
        pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            return self.apply_gradients(pairs), pairs


def decorate(optimizer: Optimizer, amp_lists: AutoMixedPrecisionLists | None = None, init_loss_scaling: float = 2**15,
             incr_every_n_steps: int = 1000, decr_every_n_nan_or_inf: int = 2, incr_ratio: float = 2.0,
             decr_ratio: float = 0.8, use_dynamic_loss_scaling: bool = True,
             dtype: str = "float16") -> OptimizerWithMixedPrecision:
    """Wraps an optimizer to train in mixed precision with a scaled loss.

    The same program runs on the CPU and on devices. On a device, the white operators of ``amp_lists`` compute in
    ``dtype``, and so do gray operators that read their results. The casts are inserted into the plan of the device.
    ``explain()`` of a compiled program lists them in the line of the pass ``mixed_precision``. Parameters, their
    gradients and updates stay float32. On the CPU, all variables stay float32. White operators and their gradients
    round their operands to bfloat16 if the processor has instructions for bfloat16 products.

    The loss is multiplied by the scale before gradients are computed, and the gradients are divided by it. Micikevicius
    and others, Mixed precision training, ICLR 2018 (arXiv:1710.03740). With ``use_dynamic_loss_scaling``, a step in
    which a gradient is not finite applies gradients of zero. This requires a single replica.

    Args:
        optimizer (Optimizer): the inner optimizer.
        amp_lists (AutoMixedPrecisionLists, optional): operators in lower precision. Default: the default lists.
        init_loss_scaling (float): initial scale of the loss. Default 2**15.
        incr_every_n_steps (int): number of consecutive steps with finite gradients after which the scale grows. Default
            1000.
        decr_every_n_nan_or_inf (int): number of consecutive steps with gradients that are not finite after which the
            scale shrinks. Default 2.
        incr_ratio (float): factor by which the scale grows. Default 2.0.
        decr_ratio (float): factor by which the scale shrinks. Default 0.8.
        use_dynamic_loss_scaling (bool): adapts the scale. Default True.
        dtype (str): precision on devices, "float16" or "bfloat16". bfloat16 is not in Fluid 1.8.5; it has the range of
            float32 and needs no scale: ``init_loss_scaling=1.0, use_dynamic_loss_scaling=False``. Default "float16".

    Returns:
        OptimizerWithMixedPrecision: an optimizer with ``backward``, ``apply_gradients``, ``minimize``,
        ``get_loss_scaling`` and ``get_scaled_loss``.

    Raises:
        TypeError: ``optimizer`` is not an Optimizer.
        ValueError: ``dtype`` is unknown.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> optimizer = fluid.contrib.mixed_precision.decorate(fluid.optimizer.SGD(0.1), init_loss_scaling=8.0)
        >>> ops, pairs = optimizer.minimize(loss)
        >>> [op.type for op in ops], optimizer.get_loss_scaling().shape
        (['sgd', 'sgd'], (1,))
    """
    if not hasattr(optimizer, "apply_gradients"):
        raise InvalidType("mixed_precision.decorate: optimizer must be an Optimizer, got %s" % type(optimizer).__name__)
    if dtype not in ("float16", "bfloat16"):
        raise InvalidValue('mixed_precision.decorate: dtype must be "float16" or "bfloat16", got %r' % (dtype,))
    return OptimizerWithMixedPrecision(optimizer, amp_lists or AutoMixedPrecisionLists(), init_loss_scaling,
                                       use_dynamic_loss_scaling, incr_every_n_steps, decr_every_n_nan_or_inf,
                                       incr_ratio, decr_ratio, dtype)


arguments.explain(globals())
