"""Decoupled weight decay, which does not change the gradient."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ... import arguments, layers
from ...errors import InvalidType, InvalidValue, NotOffered
from ...framework import Variable, default_startup_program, name_scope, program_guard
from ...framework.dtype import VarType
from ...framework.variable import is_growable
from ...optimizer import Optimizer

if TYPE_CHECKING:
    from ...framework import Program

__all__ = ["extend_with_decoupled_weight_decay"]


class DecoupledWeightDecay:
    """The part of an optimizer that shrinks the weights before its own step: w -= coeff * w.

    Args:
        coeff (float|Variable): fraction of a weight that is subtracted per step.
        apply_decay_param_fun (callable, optional): name of a parameter -> bool; selects the parameters to decay.
            Default: all.
        lazy_decay (bool): of a parameter with a sparse gradient, only the rows in the gradient decay. Default False.
    """

    def __init__(self, coeff: float | Variable = 0.0, apply_decay_param_fun: Callable[[str], bool] | None = None,
                 lazy_decay: bool = False, **kwargs: Any) -> None:
        if not isinstance(coeff, (float, Variable)):
            raise InvalidType("weight_decay must be a float or a Variable, got %s" % type(coeff).__name__)
        self._params_name: set[str] = set()
        self._apply_decay_param_fun = apply_decay_param_fun
        self._coeff, self._lazy_decay = coeff, bool(lazy_decay)
        super().__init__(**kwargs)

    def _shrinks(self, parameter):
        chosen = self._apply_decay_param_fun
        return chosen is None or chosen(parameter.name)

    def _shrink(self, params_grads):
        """Appends the decay of all parameters that have a gradient."""
        if isinstance(self._coeff, float) and self._coeff == 0.0:
            return
        lost = []
        for parameter, gradient in params_grads:
            if gradient is None or not self._shrinks(parameter):
                continue
            if isinstance(self._coeff, float) and parameter.name in self._params_name:
                raise InvalidValue("%s: parameter %s already has weight decay" % (type(self).__name__, parameter.name))
            self._params_name.add(parameter.name)
            if is_growable(parameter):
                self._decays_of_rows[parameter.name] = self._of_table(parameter)
                continue
            if self._lazy_decay and gradient.type == VarType.SELECTED_ROWS:
                self._shrink_rows(parameter, gradient)
                continue
            with parameter.block.program._optimized_guard([parameter, gradient]):
                lost.append((parameter, gradient, parameter * self._coeff))
        for parameter, gradient, part in lost:
            with parameter.block.program._optimized_guard([parameter, gradient]), name_scope("weight decay"):
                layers.assign(layers.elementwise_sub(x=parameter, y=part), parameter)

    def _of_table(self, table):
        if not isinstance(self._coeff, float) or not self._lazy_decay:
            raise NotOffered("%s: weight_decay of the growable table %s must be a float, with lazy_decay=True: then "
                             "only the rows of a batch decay" % (type(self).__name__, table.name))
        return self._coeff

    def _shrink_rows(self, parameter, gradient):
        with parameter.block.program._optimized_guard([parameter, gradient]), name_scope("weight decay"):
            inputs, attrs = {"W": [parameter], "X": [gradient]}, {}
            if isinstance(self._coeff, float):
                attrs["factor"] = self._coeff
            else:
                inputs["Factor"] = [self._coeff]
            block = parameter.block.program.current_block()
            block.append_op(type="decay_rows", inputs=inputs, outputs={"Out": [parameter]}, attrs=attrs)

    def minimize(self, loss: Variable, startup_program: Program | None = None,
                 parameter_list: Sequence[Any] | None = None, no_grad_set: set[Any] | None = None) -> tuple[Any, ...]:
        """Like ``minimize`` of the optimizer, with the decay in front of the updates."""
        pairs = self.backward(loss, startup_program=startup_program, parameter_list=parameter_list,  # type: ignore
                              no_grad_set=no_grad_set)
        with program_guard(loss.block.program, startup_program or default_startup_program()):
            self._shrink(pairs)
        return self.apply_optimize(loss, startup_program, pairs), pairs  # type: ignore

    def __str__(self) -> str:
        return " ".join(["Weight Decay, params:", ",".join(sorted(self._params_name))])


def extend_with_decoupled_weight_decay(base_optimizer: type[Optimizer]) -> type[Any]:
    """Derives a class from ``base_optimizer`` that also decays the weights in each step, independently of the
    gradient.

    w -= weight_decay * w, and then the update of ``base_optimizer``. The decay is not part of the gradient. With
    Adam, this is AdamW. Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019 (arXiv:1711.05101).

    Args:
        base_optimizer (class): a subclass of Optimizer.

    Returns:
        class: takes ``weight_decay`` (float or Variable), ``apply_decay_param_fun`` (callable, name of a parameter ->
        bool; by default all shrink), ``lazy_decay`` (bool; if True, only the rows in a sparse gradient shrink, which
        growable tables need), and by keyword the arguments of ``base_optimizer``.

    Raises:
        TypeError: ``base_optimizer`` is not a subclass of Optimizer.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> AdamW = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
        >>> optimizer = AdamW(weight_decay=0.01, learning_rate=0.1,
        ...                   apply_decay_param_fun=lambda name: name.endswith(".w_0"))
        >>> ops, pairs = optimizer.minimize(loss)
        >>> [op.type for op in ops]
        ['adam', 'adam']
    """
    if not isinstance(base_optimizer, type) or not issubclass(base_optimizer, Optimizer):
        raise InvalidType("extend_with_decoupled_weight_decay: base_optimizer must be a subclass of Optimizer, got %r"
                          % (base_optimizer,))

    class OptimizerWithDecoupledWeightDecay(DecoupledWeightDecay, base_optimizer):  # type: ignore
        """The optimizer that ``extend_with_decoupled_weight_decay`` returns."""

        def __init__(self, weight_decay: float | Variable,
                     apply_decay_param_fun: Callable[[str], bool] | None = None, lazy_decay: bool = False,
                     **kwargs: Any) -> None:
            super().__init__(weight_decay, apply_decay_param_fun, lazy_decay, **kwargs)

    return OptimizerWithDecoupledWeightDecay


arguments.explain(globals())
