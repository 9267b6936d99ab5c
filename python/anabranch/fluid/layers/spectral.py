"""Normalization of weights by their largest singular value."""
from __future__ import annotations

from ..errors import InvalidValue
from ..explained import explain
from ..framework import Variable
from ..initializer import Normal
from ..layer_helper import LayerHelper
from ..param_attr import ParamAttr
from . import check

__all__ = ["spectral_norm"]


def spectral_norm(weight: Variable, dim: int = 0, power_iters: int = 1, eps: float = 1e-12,
                  name: str | None = None) -> Variable:
    """Divides a weight by an estimate of its largest singular value. The weight is treated as a matrix, and axis
    ``dim`` counts its rows.

    Each of the power_iters iterations computes v = W^T u / (|W^T u| + eps) and u = W v / (|W v| + eps). The initial
    vectors are drawn once. The divisor is u^T W v. Miyato and others, Spectral normalization for generative adversarial
    networks, ICLR 2018 (arXiv:1802.05957).

    Args:
        weight (Variable): 2 to 5 axes of known extents, float32 or float64.
        dim (int): axis of the rows: 0, or 1 for weights of transposed convolutions. Default 0.
        power_iters (int): number of iterations. Default 1.
        eps (float): number that keeps divisors above 0. Default 1e-12.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``weight``.

    Raises:
        TypeError: ``weight`` is not a Variable of a float dtype.
        ValueError: an extent is unknown or 0, or ``dim`` is not 0 or 1.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> weight = fluid.layers.create_parameter([2, 8, 3, 3], "float32")
        >>> fluid.layers.spectral_norm(weight, dim=1, power_iters=2).shape
        (2, 8, 3, 3)
    """
    check.variable(weight, "weight", "spectral_norm", ("float32", "float64"))
    if any(extent < 1 for extent in weight.shape):
        raise InvalidValue("spectral_norm: the extents of weight must be known and above 0, got %s"
                           % list(weight.shape))
    if dim not in (0, 1) or dim >= len(weight.shape):
        raise InvalidValue("spectral_norm: dim must be 0 or 1, an axis of weight, got %r" % (dim,))
    helper = LayerHelper("spectral_norm", name=name)
    rows, columns = weight.shape[dim], 1
    for axis, extent in enumerate(weight.shape):
        columns *= 1 if axis == dim else extent
    vectors = []
    for extent in (rows, columns):
        vectors.append(helper.create_parameter(attr=ParamAttr(), shape=[extent], dtype=weight.dtype,
                                               default_initializer=Normal(0.0, 1.0)))
        vectors[-1].stop_gradient = True
    out = helper.create_variable(dtype=weight.dtype)
    helper.append_op(type="spectral_norm", inputs={"Weight": [weight], "U": [vectors[0]], "V": [vectors[1]]},
                     outputs={"Out": [out]}, attrs={"dim": dim, "power_iters": power_iters, "eps": eps})
    return out


explain(globals())
