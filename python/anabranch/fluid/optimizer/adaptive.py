"""Optimizers that adapt the learning rate of each element to the squares of earlier gradients."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import arguments
from ..errors import Violated
from ..layers import check
from .base import Optimizer, state
from .simple import _TAIL

if TYPE_CHECKING:
    from ..framework import Variable


def _needed(optimizer, **arguments):
    for name, value in arguments.items():
        if value is None:
            raise Violated("%s: %s is missing" % (type(optimizer).__name__, name))


class AdagradOptimizer(Optimizer):
    """m += g * g; w -= rate * g / (sqrt(m) + epsilon).

    Duchi, Hazan and Singer, Adaptive subgradient methods, JMLR 12 (2011).

    Args:
        learning_rate (float|Variable): learning rate.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-6.
        initial_accumulator_value (float): initial value of m. Default 0.
        row_wise (bool): growable tables have one m for each row, to which the mean of g * g over the row is added,
            instead of one for each element. This needs less memory. Default False.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> [op.type for op in fluid.optimizer.Adagrad(0.1).minimize(loss)[0]]
        ['adagrad', 'adagrad']
    """

    _op = "adagrad"
    _states = (state("Moment", "moment"),)

    def __init__(self, learning_rate: float | Variable, epsilon: float = 1e-06, parameter_list: Any = None,
                 regularization: Any = None, grad_clip: Any = None, name: str | None = None,
                 initial_accumulator_value: float = 0.0, row_wise: bool = False) -> None:
        _needed(self, learning_rate=learning_rate, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon, self.initial_accumulator_value = epsilon, initial_accumulator_value
        self._row_wise = bool(row_wise)

    def _fill_value(self, name):
        return self.initial_accumulator_value

    def _attrs(self, param):
        return {"epsilon": float(self._epsilon)}


class DecayedAdagradOptimizer(Optimizer):
    """m = decay * m + (1 - decay) * g * g; w -= rate * g / (sqrt(m) + epsilon). Dense gradients only.

    Args:
        learning_rate (float|Variable): learning rate.
        decay (float): decay of m. Default 0.95.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-6.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.optimizer.DecayedAdagrad(0.2).current_step_lr()
        0.2
    """

    _op = "decayed_adagrad"
    _states = (state("Moment", "moment"),)

    def __init__(self, learning_rate: float | Variable, decay: float = 0.95, epsilon: float = 1e-06,
                 parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate, decay=decay, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._decay, self._epsilon = decay, epsilon

    def _attrs(self, param):
        return {"decay": float(self._decay), "epsilon": float(self._epsilon)}


class AdadeltaOptimizer(Optimizer):
    """dx = -g * sqrt((E[dx dx] + epsilon) / (E[g g] + epsilon)); w += dx. The rate is not used.

    Zeiler, ADADELTA: an adaptive learning rate method, arXiv:1212.5701.

    Args:
        learning_rate (float|Variable): not used; accepted for the common interface.
        epsilon (float): term added to dividend and divisor for numerical stability. Default 1e-6.
        rho (float): decay of the two averages. Default 0.95.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.optimizer.Adadelta(1.0, epsilon=1e-5, rho=0.9).current_step_lr()
        1.0
    """

    _op = "adadelta"
    _uses_rate = False
    _states = (state("AvgSquaredGrad", "_avg_squared_grad"), state("AvgSquaredUpdate", "_avg_squared_update"))

    def __init__(self, learning_rate: float | Variable, epsilon: float = 1e-06, rho: float = 0.95,
                 parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate, epsilon=epsilon, rho=rho)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._epsilon, self._rho = epsilon, rho

    def _attrs(self, param):
        return {"epsilon": float(self._epsilon), "rho": float(self._rho)}


class RMSPropOptimizer(Optimizer):
    """r = rho * r + (1 - rho) * g * g; v = momentum * v + rate * g / sqrt(r + epsilon); w -= v.

    The centered form subtracts the square of the mean gradient from r under the root.
    Tieleman and Hinton, Lecture 6.5 of Neural networks for machine learning, 2012; Graves, arXiv:1308.0850.

    Args:
        learning_rate (float|Variable): learning rate.
        rho (float): decay of the average. Default 0.95.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-6.
        momentum (float): momentum of v. Default 0.
        centered (bool): whether to use the centered form. Default False.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> fluid.optimizer.RMSProp(0.1).minimize(loss)[0][0].input("MeanSquare")
        ['fc_0.b_0_mean_square_0']
    """

    _op = "rmsprop"
    _states = (state("Moment", "momentum"), state("MeanSquare", "mean_square"), state("MeanGrad", "mean_grad"))

    def __init__(self, learning_rate: float | Variable, rho: float = 0.95, epsilon: float = 1e-06,
                 momentum: float = 0.0, centered: bool = False, parameter_list: Any = None, regularization: Any = None,
                 grad_clip: Any = None, name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate, rho=rho, epsilon=epsilon, momentum=momentum)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._rho, self._epsilon, self._momentum, self._centered = rho, epsilon, momentum, centered

    def _attrs(self, param):
        return {"epsilon": float(self._epsilon), "decay": float(self._rho), "momentum": float(self._momentum),
                "centered": bool(self._centered)}


class FtrlOptimizer(Optimizer):
    """Follow the regularized leader, proximal form: L1 sets weights to exactly 0, L2 keeps them small.

    McMahan and others, Ad click prediction: a view from the trenches, KDD 2013, DOI 10.1145/2487575.2488200.

    Args:
        learning_rate (float|Variable): learning rate.
        l1 (float): strength of L1. Default 0.
        l2 (float): strength of L2. Default 0.
        lr_power (float): exponent of the accumulated squares in the learning rate, at most 0. Default -0.5.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.optimizer.Ftrl(0.1, l1=0.01).current_step_lr()
        0.1
    """

    _op = "ftrl"
    _states = (state("SquaredAccumulator", "squared", "SquaredAccumOut"),
               state("LinearAccumulator", "linear", "LinearAccumOut"))

    def __init__(self, learning_rate: float | Variable, l1: float = 0.0, l2: float = 0.0, lr_power: float = -0.5,
                 parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._l1, self._l2, self._lr_power = l1, l2, lr_power

    def _attrs(self, param):
        # Fluid 1.8.5 passes l1 for both.
        l2 = self._l1 if check.exact_fluid() else self._l2
        return {"l1": float(self._l1), "l2": float(l2), "lr_power": float(self._lr_power)}


for _cls in (AdagradOptimizer, DecayedAdagradOptimizer, AdadeltaOptimizer, RMSPropOptimizer, FtrlOptimizer):
    _cls.__doc__ = (_cls.__doc__ or "").format(tail=_TAIL)


arguments.explain(globals())
