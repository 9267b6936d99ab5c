"""Stochastic gradient descent and its forms with a velocity."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Violated
from .base import Optimizer, state

if TYPE_CHECKING:
    from ..framework import Variable

_TAIL = """parameter_list (list, optional): parameters or names to update; all trainable ones by default.
        regularization (WeightDecayRegularizer, optional): for parameters that have none of their own.
        grad_clip (GradientClipBase, optional): clips the gradients first.
        name (str, optional): becomes part of the accumulators' names."""


class SGDOptimizer(Optimizer):
    """w -= rate * g; of a sparse gradient only the rows that occur.

    Args:
        learning_rate (float|Variable): the rate.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> ops, pairs = fluid.optimizer.SGD(learning_rate=0.1).minimize(loss)
        >>> [op.type for op in ops]
        ['sgd', 'sgd']
    """

    _op = "sgd"


class MomentumOptimizer(Optimizer):
    """v = mu * v + g; w -= rate * v, or with Nesterov's form w -= rate * (g + mu * v).

    Sutskever, Martens, Dahl and Hinton, On the importance of initialization and momentum in deep learning, ICML 2013.

    Args:
        learning_rate (float|Variable): the rate.
        momentum (float): mu, in [0, 1).
        use_nesterov (bool): Nesterov's form. Default False.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> ops, pairs = fluid.optimizer.Momentum(0.1, momentum=0.9).minimize(loss)
        >>> ops[0].input("Velocity")
        ['fc_0.b_0_velocity_0']
    """

    _op = "momentum"
    _states = (state("Velocity", "velocity"),)

    def __init__(self, learning_rate: float | Variable, momentum: float, parameter_list: Any = None,
                 use_nesterov: bool = False, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        if momentum is None:
            raise Violated("Momentum: momentum is missing")
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum, self._use_nesterov = momentum, bool(use_nesterov)

    def _attrs(self, param):
        return {"mu": float(self._momentum), "use_nesterov": self._use_nesterov}


class LarsMomentumOptimizer(Optimizer):
    """Momentum with a rate for each parameter, from the norms of weight and gradient.

    local = rate * coeff * |w| / (|g| + decay * |w|); v = mu * v + local * (g + decay * w); w -= v.
    You, Gitman and Ginsburg, Large batch training of convolutional networks, arXiv:1708.03888. Dense gradients only.

    Args:
        learning_rate (float|Variable): the rate.
        momentum (float): mu, in [0, 1).
        lars_coeff (float): coeff. Default 0.001.
        lars_weight_decay (float): decay. Default 0.0005.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.optimizer.LarsMomentum(0.1, momentum=0.9).current_step_lr()
        0.1
    """

    _op = "lars_momentum"
    _states = (state("Velocity", "velocity"),)

    def __init__(self, learning_rate: float | Variable, momentum: float, lars_coeff: float = 0.001,
                 lars_weight_decay: float = 0.0005, parameter_list: Any = None, regularization: Any = None,
                 grad_clip: Any = None, name: str | None = None) -> None:
        if momentum is None:
            raise Violated("LarsMomentum: momentum is missing")
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum, self._lars_coeff, self._lars_weight_decay = momentum, lars_coeff, lars_weight_decay

    def _attrs(self, param):
        return {"mu": float(self._momentum), "lars_coeff": float(self._lars_coeff),
                "lars_weight_decay": float(self._lars_weight_decay)}


for _cls in (SGDOptimizer, MomentumOptimizer, LarsMomentumOptimizer):
    _cls.__doc__ = (_cls.__doc__ or "").format(tail=_TAIL)
