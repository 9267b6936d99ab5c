"""Parameter: a variable that training changes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import InvalidType, InvalidValue
from .dtype import VarType
from .variable import Variable

if TYPE_CHECKING:
    from ..framework.block import Block
    from ..hints import DType


class Parameter(Variable):
    """A persistable Variable of the global block that training changes; its shape is fixed.

    Args:
        block (Block): any block of the program.
        shape (list|tuple): extents, each positive.
        dtype (str|VarType): element type.
        trainable (bool): whether optimizers update it. Default True.
        optimize_attr (dict): ``{"learning_rate": factor}``. Default factor 1.0.
        regularizer, gradient_clip_attr, do_model_average: see ``ParamAttr``.

    Raises:
        ValueError: shape or dtype is missing, or an extent is not positive.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> w = fluid.Program().global_block().create_parameter(name="w", shape=[3, 2], dtype="float32")
        >>> w.trainable, w.persistable, w.optimize_attr
        (True, True, {'learning_rate': 1.0})
    """

    def __init__(self, block: Block, shape: Any, dtype: DType, type: Any = VarType.LOD_TENSOR, **kwargs: Any) -> None:
        if shape is None or dtype is None:
            raise InvalidValue("a parameter must have a shape and a dtype")
        if len(shape) == 0:
            raise InvalidValue("a parameter must have at least one axis, got the shape []")
        for extent in shape:
            if isinstance(extent, str):
                raise InvalidType("the extents of a parameter must be numbers, got %r for %s"
                                  % (extent, kwargs.get("name")))
            if extent is None or int(extent) <= 0 and not (type == VarType.SELECTED_ROWS and extent is shape[0]):
                raise InvalidValue("every extent of a parameter must be positive, got the shape %s for %s: give all "
                                   "extents of the input in fluid.data; only the number of rows may be None"
                                   % (list(shape), kwargs.get("name")))
        attributes = {
            "trainable": kwargs.pop("trainable", True),
            "optimize_attr": kwargs.pop("optimize_attr", {"learning_rate": 1.0}),
            "regularizer": kwargs.pop("regularizer", None),
            "gradient_clip_attr": kwargs.pop("gradient_clip_attr", None),
            "do_model_average": kwargs.pop("do_model_average", None),
            "is_distributed": kwargs.pop("is_distributed", False),
        }
        kwargs.pop("initializer", None)
        super().__init__(block, type=type, shape=shape, dtype=dtype, persistable=True,
                         **{k: v for k, v in kwargs.items() if k != "persistable"})
        self._var.is_parameter = True
        for key, value in attributes.items():
            setattr(self, key, value)

    def _attach(self, block, desc):
        super()._attach(block, desc)
        self.optimize_attr = {"learning_rate": 1.0}
        self.regularizer = None
        self.gradient_clip_attr = None
        self.do_model_average = None
        self.is_distributed = False

    @property
    def trainable(self) -> bool:
        """bool: whether optimizers update it."""
        return self._var.trainable

    @trainable.setter
    def trainable(self, value: Any) -> None:
        self._var.trainable = bool(value)
        self._changed()

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """Like ``Variable.to_string``; the details list the attributes of a parameter."""
        text = super().to_string(throw_on_error, with_details)
        if with_details:
            for key in ("trainable", "optimize_attr", "regularizer", "gradient_clip_attr", "do_model_average"):
                text += "\n  %s: %s" % (key, getattr(self, key))
        return text

    def __str__(self) -> str:
        return self.to_string(True)

    __repr__ = __str__
