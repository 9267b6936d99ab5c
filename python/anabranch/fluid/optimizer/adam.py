"""Adam and the optimizers that build on its two moving averages."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import arguments
from ..framework import Variable, name_scope
from .adaptive import _needed
from .base import Optimizer, state
from .simple import _TAIL

_POWERS = (state("Beta1Pow", "beta1_pow_acc", scalar=True), state("Beta2Pow", "beta2_pow_acc", scalar=True))
# lamb reads the powers of its betas and does not advance them
_READ_POWERS = (state("Beta1Pow", "beta1_pow_acc", "", True), state("Beta2Pow", "beta2_pow_acc", "", True))


class AdamOptimizer(Optimizer):
    """w -= rate * sqrt(1 - beta2^t) / (1 - beta1^t) * m1 / (sqrt(m2) + epsilon), m1 and m2 the averages of g and g * g.

    Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015 (arXiv:1412.6980).
    The rows that a sparse gradient lacks count as 0; with ``lazy_mode`` they are not updated.

    Args:
        learning_rate (float|Variable): learning rate. Default 0.001.
        beta1 (float|Variable): decay of the average of g. Default 0.9.
        beta2 (float|Variable): decay of the average of g * g. Default 0.999.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-8.
        lazy_mode (bool): whether to update only the rows that occur in a sparse gradient. Default False.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> ops, pairs = fluid.optimizer.Adam(0.001).minimize(loss)
        >>> ops[1].input("Moment1"), ops[1].input("Beta1Pow")
        (['fc_0.w_0_moment1_0'], ['fc_0.w_0_beta1_pow_acc_0'])
    """

    _op = "adam"
    _states = (state("Moment1", "moment1"), state("Moment2", "moment2")) + _POWERS
    #: Elements a kernel may update without splitting the work; kept for programs that read it.
    _min_row_size = 1000

    def __init__(self, learning_rate: float | Variable = 0.001, beta1: float | Variable = 0.9,
                 beta2: float | Variable = 0.999, epsilon: float = 1e-08, parameter_list: Any = None,
                 regularization: Any = None, grad_clip: Any = None, name: str | None = None,
                 lazy_mode: bool = False) -> None:
        _needed(self, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1, self._beta2, self._epsilon, self._lazy_mode = beta1, beta2, epsilon, bool(lazy_mode)

    def _fill_value(self, name):
        # A beta that is a Variable has no value yet, so the power starts at the usual beta.
        if name == "beta1_pow_acc":
            return 0.9 if isinstance(self._beta1, Variable) else self._beta1
        if name == "beta2_pow_acc":
            return 0.999 if isinstance(self._beta2, Variable) else self._beta2
        return 0.0

    def _more_inputs(self):
        betas = (("Beta1Tensor", self._beta1), ("Beta2Tensor", self._beta2))
        return {slot: [beta] for slot, beta in betas if isinstance(beta, Variable)}

    def _attrs(self, param):
        attrs = {"epsilon": float(self._epsilon), "lazy_mode": self._lazy_mode,
                 "min_row_size_to_use_multithread": self._min_row_size}
        for name, beta in (("beta1", self._beta1), ("beta2", self._beta2)):
            if not isinstance(beta, Variable):
                attrs[name] = float(beta)
        return attrs


class AdamaxOptimizer(Optimizer):
    """w -= rate / (1 - beta1^t) * m / u, u = max(beta2 * u + epsilon, |g|). Dense gradients only.

    Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015 (arXiv:1412.6980), section 7.

    Args:
        learning_rate (float|Variable): learning rate. Default 0.001.
        beta1 (float): decay of the average of g. Default 0.9.
        beta2 (float): decay of the norm u. Default 0.999.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-8.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.optimizer.Adamax().current_step_lr()
        0.001
    """

    _op = "adamax"
    _states = (state("Moment", "moment"), state("InfNorm", "inf_norm"), state("Beta1Pow", "beta1_pow_acc", "", True))

    def __init__(self, learning_rate: float | Variable = 0.001, beta1: float = 0.9, beta2: float = 0.999,
                 epsilon: float = 1e-08, parameter_list: Any = None, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon

    def _fill_value(self, name):
        return self._beta1 if name == "beta1_pow_acc" else 0.0

    def _attrs(self, param):
        return {"beta1": float(self._beta1), "beta2": float(self._beta2), "epsilon": float(self._epsilon)}

    def _finish_update(self, block, params_grads):
        for param, grad in params_grads:
            if grad is None or not param.trainable:
                continue
            with param.block.program._optimized_guard([param, grad]), name_scope("adamx"):
                power = self._get_accumulator("beta1_pow_acc", param)
                block.append_op(type="scale", inputs={"X": power}, outputs={"Out": power},
                                attrs={"scale": float(self._beta1)})


class LambOptimizer(Optimizer):
    """Adam with each parameter's step scaled by |w| / |step|, for very large batches. Dense gradients only.

    r = m1 / (sqrt(m2) + epsilon); w -= rate * |w| / |r + decay * w| * (r + decay * w).
    You and others, Large batch optimization for deep learning, ICLR 2020 (arXiv:1904.00962).

    Args:
        learning_rate (float|Variable): learning rate. Default 0.001.
        lamb_weight_decay (float): weight decay. Default 0.01.
        beta1 (float): decay of the average of g. Default 0.9.
        beta2 (float): decay of the average of g * g. Default 0.999.
        epsilon (float): term added to the divisor for numerical stability. Default 1e-6.
        exclude_from_weight_decay_fn (callable, optional): parameter -> bool; True exempts it from weight decay.
        {tail}

    Examples:
        >>> import anabranch.fluid as fluid
        >>> lamb = fluid.optimizer.Lamb(0.002, exclude_from_weight_decay_fn=lambda p: p.name.endswith(".b_0"))
        >>> lamb.current_step_lr()
        0.002
    """

    _op = "lamb"
    _states = (state("Moment1", "moment1"), state("Moment2", "moment2")) + _READ_POWERS

    def __init__(self, learning_rate: float | Variable = 0.001, lamb_weight_decay: float = 0.01, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-06, parameter_list: Any = None, regularization: Any = None,
                 grad_clip: Any = None, exclude_from_weight_decay_fn: Callable[..., Any] | None = None,
                 name: str | None = None) -> None:
        _needed(self, learning_rate=learning_rate, lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2,
                epsilon=epsilon)
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._weight_decay, self._exclude = lamb_weight_decay, exclude_from_weight_decay_fn

    def _fill_value(self, name):
        return {"beta1_pow_acc": self._beta1, "beta2_pow_acc": self._beta2}.get(name, 0.0)

    def _attrs(self, param):
        decay = 0.0 if self._exclude is not None and self._exclude(param) else self._weight_decay
        return {"beta1": float(self._beta1), "beta2": float(self._beta2), "epsilon": float(self._epsilon),
                "weight_decay": float(decay)}


for _cls in (AdamOptimizer, AdamaxOptimizer, LambOptimizer):
    _cls.__doc__ = (_cls.__doc__ or "").format(tail=_TAIL)


arguments.explain(globals())
