"""Types of arguments that take several forms."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    from .. import _core
    from .framework import Variable, VarType
    from .initializer import Initializer
    from .param_attr import ParamAttr

    #: An element type: its name, a VarType, or what numpy takes for one.
    DType = Union[str, VarType, type, Any]
    #: A sequence of extents, each a number, None (unknown) or a Variable; or one Variable that holds all extents.
    Shape = Union[Sequence[Union[int, None, Variable]], Variable]
    #: The types that ``ParamAttr._to_attr`` accepts.
    Attr = Union[ParamAttr, str, Initializer, bool, Sequence[Any], None]
    #: Where something runs.
    Place = Union[_core.CPUPlace, Any]
