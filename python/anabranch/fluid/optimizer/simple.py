"""Stochastic gradient descent and its variants with momentum."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from .. import arguments
from ..clip import GradientClipByNorm
from ..errors import InvalidType, Violated
from .base import Optimizer, state

if TYPE_CHECKING:
    from ..framework import Variable

_TAIL = """parameter_list (list, optional): parameters or names to update. Default: all trainable ones.
        regularization (WeightDecayRegularizer, optional): regularizer of the parameters that have none themselves.
        grad_clip (GradientClipBase, optional): clips the gradients first.
        name (str, optional): becomes part of the accumulators' names."""


class SGDOptimizer(Optimizer):
    """w -= rate * g; a sparse gradient updates only its rows.

    Args:
        learning_rate (float|Variable): learning rate.
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
        learning_rate (float|Variable): learning rate.
        momentum (float): mu, in [0, 1).
        use_nesterov (bool): whether to use Nesterov's form. Default False.
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
            raise Violated("Momentum: momentum must be given")
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum, self._use_nesterov = momentum, bool(use_nesterov)

    def _attrs(self, param):
        return {"mu": float(self._momentum), "use_nesterov": self._use_nesterov}


class LarsMomentumOptimizer(Optimizer):
    """Momentum with a learning rate per parameter, computed from the norms of weight and gradient.

    local = rate * coeff * |w| / (|g| + decay * |w|); v = mu * v + local * (g + decay * w); w -= v.
    You, Gitman and Ginsburg, Large batch training of convolutional networks, arXiv:1708.03888. Dense gradients only.

    Args:
        learning_rate (float|Variable): learning rate.
        momentum (float): mu, in [0, 1).
        lars_coeff (float): coeff. Default 0.001.
        lars_weight_decay (float): weight decay. Default 0.0005.
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
            raise Violated("LarsMomentum: momentum must be given")
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, name)
        self._momentum, self._lars_coeff, self._lars_weight_decay = momentum, lars_coeff, lars_weight_decay

    def _attrs(self, param):
        return {"mu": float(self._momentum), "lars_coeff": float(self._lars_coeff),
                "lars_weight_decay": float(self._lars_weight_decay)}


class DpsgdOptimizer(Optimizer):
    """Differentially private SGD: clips the gradient of each parameter by norm and adds noise to it.

    w -= rate * (g / max(1, |g| / clip) + noise / batch_size), where noise is normal with standard deviation sigma.
    Abadi and others, Deep learning with differential privacy, CCS 2016 (arXiv:1607.00133). Dense gradients only.

    Args:
        learning_rate (float|Variable): learning rate. Default 0.001.
        clip (float): maximum norm of a gradient. Default 0.9.
        batch_size (float): number of samples in a batch. Default 0.999, as in Fluid; pass the real one.
        sigma (float): standard deviation of the noise. Default 1e-8.
        parameter_list (list, optional): parameters or names to update. Default: all trainable ones.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> ops, pairs = fluid.optimizer.Dpsgd(0.1, clip=1.0, batch_size=16.0, sigma=0.5).minimize(loss)
        >>> [op.type for op in ops]
        ['dpsgd', 'dpsgd']
    """

    _op = "dpsgd"

    def __init__(self, learning_rate: float | Variable = 0.001, clip: float = 0.9, batch_size: float = 0.999,
                 sigma: float = 1e-8, parameter_list: Any = None) -> None:
        for name, value in (("clip", clip), ("batch_size", batch_size), ("sigma", sigma)):
            if value is None:
                raise Violated("Dpsgd: %s must be given" % name)
        super().__init__(learning_rate, parameter_list)
        self._clip, self._batch_size, self._sigma = clip, batch_size, sigma
        self._seed: int | None = None  # for tests, as in Fluid

    def _attrs(self, param):
        seed = self._seed or param.block.program.random_seed
        return {"clip": float(self._clip), "batch_size": float(self._batch_size), "sigma": float(self._sigma),
                "seed": int(seed)}


class DGCMomentumOptimizer(MomentumOptimizer):
    """Momentum with gradients that are compressed between machines; in one process there is nothing to compress.

    Deep gradient compression sends the largest elements of a gradient and adds the rest, the residual, to the next
    gradient. In one process this is Momentum, with each gradient clipped by norm before it is summed.
    Lin and others, Deep gradient compression, ICLR 2018 (arXiv:1712.01887).

    Args:
        learning_rate (float|Variable): learning rate.
        momentum (float): mu, in [0, 1).
        rampup_begin_step (int): first step with compressed gradients.
        rampup_step (int): number of steps until the last ratio of ``sparsity``. Default 1.
        sparsity (list of float): fractions of a gradient that are held back, each in [0, 1). Default [0.999].
        use_nesterov (bool): whether to use Nesterov's form. Default False.
        num_trainers (int, optional): number of workers; required with ``grad_clip``.
        {tail} ``grad_clip`` must be a GradientClipByNorm here; its norm is divided by sqrt(num_trainers).

    Raises:
        TypeError: ``grad_clip`` is not a GradientClipByNorm, or ``num_trainers`` is missing.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> optimizer = fluid.optimizer.DGCMomentumOptimizer(0.1, 0.9, rampup_begin_step=1252, sparsity=[0.75, 0.999])
        >>> [op.type for op in optimizer.minimize(loss)[0]]
        ['momentum', 'momentum']
    """

    def __init__(self, learning_rate: float | Variable, momentum: float, rampup_begin_step: int, rampup_step: int = 1,
                 sparsity: Sequence[float] = [0.999], parameter_list: Any = None,  # noqa: B006  Fluid's signature
                 use_nesterov: bool = False,
                 num_trainers: int | None = None, regularization: Any = None, grad_clip: Any = None,
                 name: str | None = None) -> None:
        if rampup_begin_step < 0:
            raise Violated("DGCMomentumOptimizer: rampup_begin_step must be 0 or more, got %r" % (rampup_begin_step,))
        if any(not 0 <= part < 1 for part in sparsity):
            raise Violated("DGCMomentumOptimizer: sparsity must hold numbers from 0 to 1, got %r" % (sparsity,))
        if grad_clip is not None:
            if not isinstance(grad_clip, GradientClipByNorm):
                raise InvalidType("DGCMomentumOptimizer: grad_clip must be a GradientClipByNorm, got %s"
                                  % type(grad_clip).__name__)
            if not isinstance(num_trainers, int):
                raise InvalidType("DGCMomentumOptimizer: num_trainers must be an int with grad_clip, got %s"
                                  % type(num_trainers).__name__)
            grad_clip = GradientClipByNorm(grad_clip.clip_norm * num_trainers ** -0.5)
        super().__init__(learning_rate, momentum, parameter_list, use_nesterov, regularization, grad_clip, name)


for _cls in (SGDOptimizer, MomentumOptimizer, LarsMomentumOptimizer, DGCMomentumOptimizer):
    _cls.__doc__ = (_cls.__doc__ or "").format(tail=_TAIL)


arguments.explain(globals())
