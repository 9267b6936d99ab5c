"""Weight decay: a term that is added to the gradient of a parameter before its update."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import _on_demand
from . import arguments, framework
from .described import Described
from .errors import NotOffered, Violated
from .framework.dtype import VarType
from .framework.variable import is_growable
from .user_warnings import advise

__all__ = ["L1Decay", "L2Decay", "L1DecayRegularizer", "L2DecayRegularizer"]


def _warn_of_growth(name, coefficient):
    if isinstance(coefficient, (int, float)) and coefficient < 0:
        advise("%s: regularization_coeff is %g, so that the weights grow: pass a coefficient above 0"
               % (name, coefficient))


class WeightDecayRegularizer(Described):
    """Base class of the regularizers. A regularizer is a callable that appends the decay of ``param`` to ``block``
    and returns it."""

    _label: str
    _regularization_coeff: float
    _lazy_mode = False

    def _of_rows(self):
        """Returns the attributes with which ``regularize_rows`` and ``growable_update`` add the decay."""
        raise NotImplementedError

    def __call__(self, param: Any, grad: Any, block: Any) -> Any:
        raise NotImplementedError("%s must override __call__, which appends the operators of the weight decay"
                                  % type(self).__name__)

    @staticmethod
    def _check(param, block):
        if not isinstance(param, framework.Variable) or not isinstance(block, framework.Block):
            raise Violated("a regularizer must be called with a Variable and a Block, got %s and %s"
                           % (type(param).__name__, type(block).__name__))

    def __str__(self) -> str:
        return "%s, regularization_coeff=%f" % (self._label, self._regularization_coeff)


class L2DecayRegularizer(WeightDecayRegularizer):
    """Adds coeff * w to the gradient of w: the derivative of coeff / 2 * sum(w * w).

    A regularizer in ``ParamAttr`` overrides that of the optimizer. Sparse gradients become dense, unless ``lazy_mode``
    is set.

    Args:
        regularization_coeff (float): coeff. Default 0.
        lazy_mode (bool): a sparse gradient stays sparse, and only its rows decay, so that the time of a step does not
            depend on the number of rows of the table. Growable tables need it. Default False.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1))
        >>> sgd = fluid.optimizer.SGD(0.1, regularization=fluid.regularizer.L2Decay(1e-4))
        >>> ops, grads = sgd.minimize(loss)
        >>> [op.type for op in fluid.default_main_program().global_block().ops][-6:]
        ['scale', 'sum', 'scale', 'sum', 'sgd', 'sgd']
    """

    _label = "L2Decay"

    def __init__(self, regularization_coeff: float = 0.0, lazy_mode: bool = False) -> None:
        if regularization_coeff is None:
            raise Violated("L2Decay: regularization_coeff must be a number, got None")
        super().__init__()
        _warn_of_growth("L2Decay", regularization_coeff)
        self._regularization_coeff, self._lazy_mode = regularization_coeff, bool(lazy_mode)

    def _of_rows(self):
        return {"l2_decay": float(self._regularization_coeff)}

    def __call__(self, param: Any, grad: Any, block: Any) -> Any:
        self._check(param, block)
        decay = block.create_var(dtype=param.dtype, shape=param.shape, lod_level=param.lod_level)
        block.append_op(type="scale", inputs={"X": param}, outputs={"Out": decay},
                        attrs={"scale": float(self._regularization_coeff)})
        return decay


class L1DecayRegularizer(WeightDecayRegularizer):
    """Adds coeff * sign(w) to the gradient of w: the derivative of coeff * sum(|w|). Makes weights sparse.

    A regularizer in ``ParamAttr`` overrides that of the optimizer. Sparse gradients become dense, unless ``lazy_mode``
    is set.

    Args:
        regularization_coeff (float): coeff. Default 0.
        lazy_mode (bool): a sparse gradient stays sparse, and only its rows decay; see :class:`L2Decay`. Default False.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> attr = fluid.ParamAttr(regularizer=fluid.regularizer.L1Decay(0.01))
        >>> fluid.layers.fc(fluid.data("x", [None, 4], "float32"), 1, param_attr=attr).shape
        (-1, 1)
    """

    _label = "L1Decay"

    def __init__(self, regularization_coeff: float = 0.0, lazy_mode: bool = False) -> None:
        if regularization_coeff is None:
            raise Violated("L1Decay: regularization_coeff must be a number, got None")
        super().__init__()
        _warn_of_growth("L1Decay", regularization_coeff)
        self._regularization_coeff, self._lazy_mode = regularization_coeff, bool(lazy_mode)

    def _of_rows(self):
        return {"l1_decay": float(self._regularization_coeff)}

    def __call__(self, param: Any, grad: Any, block: Any) -> Any:
        self._check(param, block)
        decay = block.create_var(dtype=param.dtype, shape=param.shape, lod_level=param.lod_level)
        block.append_op(type="sign", inputs={"X": param}, outputs={"Out": decay})
        block.append_op(type="scale", inputs={"X": decay}, outputs={"Out": decay},
                        attrs={"scale": float(self._regularization_coeff)})
        return decay


def append_regularization_ops(parameters_and_grads: Sequence[Any],
                              regularization: WeightDecayRegularizer | None = None) -> list[Any]:
    """Adds the decay of every parameter to its gradient.

    Args:
        parameters_and_grads (list): (parameter, gradient) pairs; a gradient may be None.
        regularization (WeightDecayRegularizer, optional): regularizer of the parameters that have none themselves.

    Returns:
        list: (parameter, gradient) pairs, in which each gradient includes the decay.
    """
    with framework.name_scope("regularization"):
        return [(param, _decayed(param, grad, regularization)) for param, grad in parameters_and_grads]


def _decayed(param, grad, regularization):
    if grad is None or (param.regularizer is None and regularization is None):
        return grad
    regularizer, block = param.regularizer or regularization, grad.block
    lazy = getattr(regularizer, "_lazy_mode", False)
    if is_growable(param):
        if not lazy:
            raise NotOffered("the %s of the growable table %s would change all of its rows: set lazy_mode=True, by "
                             "which only the rows of a batch decay" % (type(regularizer).__name__, param.name))
        return grad  # the update adds the decay
    sparse = grad.type == VarType.SELECTED_ROWS
    with param.block.program._optimized_guard([param, grad]):
        if sparse and lazy:
            result = block.create_var(name=grad.name + "@DECAYED", dtype=param.dtype, shape=param.shape,
                                      type=VarType.SELECTED_ROWS)
            block.append_op(type="regularize_rows", inputs={"W": [param], "X": [grad]},
                            outputs={"Out": [result]}, attrs=regularizer._of_rows())
            return result
        decay = regularizer(param, grad, block)
        result = grad
        if sparse:
            # sum of rows and a dense tensor is dense, so it needs a variable of a different type
            result = block.create_var(name=grad.name + "@NEWGRAD@", dtype=param.dtype, shape=param.shape,
                                      lod_level=param.lod_level, type=VarType.LOD_TENSOR)
        block.append_op(type="sum", inputs={"X": [grad, decay]}, outputs={"Out": [result]})
        return result


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer

_on_demand.give(__name__, {})


arguments.explain(globals())
