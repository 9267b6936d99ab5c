"""Variable: a named value of a Program."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ... import _core
from .. import unique_name
from ..errors import InvalidArgument, InvalidType, InvalidValue, Violated
from .dtype import VarType, as_dtype, dtype_name
from .variable_operators import VariableOperators

if TYPE_CHECKING:
    from ..clip import BaseErrorClipAttr
    from ..framework.block import Block
    from ..hints import DType, Shape

GRAD_SUFFIX = "@GRAD"
EMPTY_VAR_NAME = "@EMPTY@"

_SHAPELESS = (VarType.READER, VarType.RAW, VarType.STEP_SCOPES, VarType.FEED_MINIBATCH, VarType.FETCH_LIST)


def extents(shape: Shape, name: str) -> list[int]:
    """The extents of a shape. Whole floats count, too, because scripts divide extents."""
    if isinstance(shape, (str, bytes, dict)):
        raise InvalidType("the shape of a variable must be a list of ints, got %r for %s" % (shape, name))
    for extent in shape:
        if isinstance(extent, float) and not extent.is_integer():
            raise InvalidType("the extents of a variable must be whole numbers, got the shape %s for %s"
                              % (list(shape), name))
    return [-1 if extent is None else int(extent) for extent in shape]


def _spec_of(name, type, shape, dtype, lod_level, persistable, stop_gradient, is_data, need_check_feed):
    """The C++ description of a new variable."""
    spec = _core.Var(name)
    spec.kind = int(type)
    if shape is not None:
        spec.shape = extents(shape, name)
    if dtype is not None:
        spec.dtype = int(as_dtype(dtype))
    if lod_level is not None:
        spec.lod_level = int(lod_level)
    spec.persistable = bool(persistable)
    spec.stop_gradient = bool(stop_gradient)
    spec.is_data = bool(is_data)
    spec.need_check_feed = bool(need_check_feed)
    return spec


class Variable(VariableOperators):
    """A variable of a block: name, shape, dtype, kind. Its value lives in a Scope.

    Layers and ``Block.create_var``, which has the same arguments, create it. Arithmetic, comparison and slicing of
    Variables append operators to the current block of their program.

    Args:
        block (Block): block of the variable.
        type (VarType): kind of the variable. Default LOD_TENSOR.
        name (str, optional): name of the variable. Default: a unique name.
        shape (list|tuple, optional): extents; None or -1 for an unknown extent.
        dtype (str|numpy.dtype|VarType, optional): element type.
        lod_level (int, optional): number of LoD levels.
        capacity (int, optional): length of a reader's queue.
        persistable (bool, optional): whether the value outlives a run. Default False.
        error_clip (BaseErrorClipAttr, optional): gradient clip of this variable.
        stop_gradient (bool): whether backward passes stop here. Default False.
        is_data (bool): whether the user feeds it. Default False.
        need_check_feed (bool): whether to check shape and dtype of feeds. Default False.

    Raises:
        ValueError: the block has a different variable of this name.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> block = fluid.Program().global_block()
        >>> x = block.create_var(name="x", shape=[-1, 4], dtype="float32")
        >>> x.shape, x.dtype, x.persistable, x is block.var("x")
        ((-1, 4), VarType.FP32, False, True)
    """

    # Makes numpy leave `array * variable` to this class.
    __array_ufunc__ = None

    def __new__(cls, block: Any = None, *args: Any, **kwargs: Any) -> Any:
        return super().__new__(cls)

    def __init__(self, block: Block, type: VarType = VarType.LOD_TENSOR, name: str | None = None,
                 shape: Shape | None = None, dtype: DType = None, lod_level: int | None = None,
                 capacity: int | None = None, persistable: bool | None = None,
                 error_clip: BaseErrorClipAttr | None = None, stop_gradient: bool = False, is_data: bool = False,
                 need_check_feed: bool = False, belong_to_optimizer: Any = False, **kwargs: Any) -> None:
        if name is None:
            name = unique_name.generate("_generated_var")
        if not isinstance(name, str):
            raise InvalidType("a variable name must be a str, got %s" % name.__class__.__name__)
        known = block.desc._find_var(name)
        if known is None:
            spec = _spec_of(name, type, shape, dtype, lod_level, persistable, stop_gradient, is_data, need_check_feed)
            try:
                desc = block.desc.create_var(spec)
            except InvalidArgument as e:
                raise InvalidValue(str(e)) from None
        else:
            self._check_alike(known, type, shape, dtype, lod_level, persistable)
            desc = known
            desc.stop_gradient = desc.stop_gradient and bool(stop_gradient)
            desc.is_data = desc.is_data or bool(is_data)
        self._attach(block, desc)
        self.error_clip = error_clip
        self.capacity = capacity
        self.belong_to_optimizer = belong_to_optimizer
        block._adopt(self)

    def _attach(self, block, desc):
        """Makes this object the wrapper of an existing C++ variable."""
        self.block = block
        self._var = desc
        self.error_clip = None
        self.capacity = None
        self.belong_to_optimizer = False
        self.op = None

    @staticmethod
    def _check_alike(known, type, shape, dtype, lod_level, persistable):
        """Raises ValueError unless every given attribute agrees with the existing variable."""
        def differs(what, old, new):
            raise InvalidValue("variable %s exists with %s %s and is created again with %s"
                               % (known.name, what, old, new))
        if type is not None and int(type) != known.kind:
            differs("type", VarType(known.kind), VarType(int(type)))
        if shape is not None and int(type) not in _SHAPELESS:
            shape = tuple(extents(shape, known.name))
            if known.shape and shape != tuple(known.shape):
                differs("shape", tuple(known.shape), shape)
            known.shape = list(shape)
        if dtype is not None and int(as_dtype(dtype)) != known.dtype:
            differs("dtype", dtype_name(known.dtype), dtype_name(as_dtype(dtype)))
        if lod_level is not None and int(lod_level) != known.lod_level:
            differs("lod_level", known.lod_level, lod_level)
        if persistable is not None and bool(persistable) != known.persistable:
            differs("persistable", known.persistable, bool(persistable))

    @property
    def desc(self) -> Any:
        """core.VarDesc: the description, with the methods of Fluid: ``shape()``, ``set_shape(shape)`` and so on."""
        return _core.var_desc(self.block.desc, self._var)

    def _changed(self):
        self.block.program.desc.touch()

    # ---- attributes

    @property
    def name(self) -> str:
        """str: unique in its block; assigning renames the variable everywhere in the block."""
        return self._var.name

    @name.setter
    def name(self, new_name: Any) -> None:
        self.block._rename_var(self._var.name, new_name)

    @property
    def grad_name(self) -> str:
        """str: name of the gradient, ``<name>@GRAD``."""
        return self._var.name + GRAD_SUFFIX

    @property
    def shape(self) -> tuple[int, ...]:
        """tuple of int: extents, -1 for those unknown before a run; () if none is known."""
        return self._var.shape

    @property
    def dtype(self) -> VarType:
        """VarType: the element type."""
        return VarType(self._var.dtype)

    @property
    def type(self) -> VarType:
        """VarType: the kind, LOD_TENSOR for most."""
        return VarType(self._var.kind)

    @property
    def lod_level(self) -> int:
        """int: number of LoD levels; 0 for plain tensors.

        Raises:
            Exception: for SelectedRows, which have no sequences.
        """
        if self._var.kind == VarType.SELECTED_ROWS:
            raise InvalidType("variable %s is SELECTED_ROWS: it has no lod_level" % self.name)
        return self._var.lod_level

    @property
    def persistable(self) -> bool:
        """bool: whether the value outlives a run and is saved by ``save_persistables``."""
        return self._var.persistable

    @persistable.setter
    def persistable(self, value: Any) -> None:
        self._var.persistable = bool(value)
        self._changed()

    @property
    def stop_gradient(self) -> bool:
        """bool: whether backward passes stop at this variable."""
        return self._var.stop_gradient

    @stop_gradient.setter
    def stop_gradient(self, value: Any) -> None:
        self._var.stop_gradient = bool(value)
        self._changed()

    _stop_gradient = stop_gradient

    @property
    def is_data(self) -> bool:
        """bool: whether the user feeds it."""
        return self._var.is_data

    @is_data.setter
    def is_data(self, value: Any) -> None:
        self._var.is_data = bool(value)

    @property
    def need_check_feed(self) -> bool:
        """bool: whether shape and dtype of feeds are checked."""
        return self._var.need_check_feed

    @property
    def ndim(self) -> int:
        """int: number of axes."""
        return len(self._var.shape)

    # ---- printing

    def to_string(self, throw_on_error: bool, with_details: bool = False) -> str:
        """Readable text of the variable.

        Args:
            throw_on_error (bool): ignored; a Variable is never incomplete.
            with_details (bool): whether to add ``stop_gradient`` and ``error_clip``. Default False.

        Returns:
            str: one line, more with details.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> v = fluid.Program().global_block().create_var(name="v", shape=[2], dtype="float32")
            >>> "v" in v.to_string(True)
            True
        """
        for flag in (throw_on_error, with_details):
            if not isinstance(flag, bool):
                raise Violated("Variable.to_string: throw_on_error and with_details must be bool")
        text = _core.var_text(self._var)
        if with_details:
            text += "\n  stop_gradient: %s\n  error_clip: %s" % (self.stop_gradient, self.error_clip)
        return text

    def __str__(self) -> str:
        return self.to_string(True)

    __repr__ = __str__

    # ---- for programs that build programs

    def _set_error_clip(self, error_clip):
        self.error_clip = error_clip

    def _set_info(self, key, value):
        self.__dict__.setdefault("_info", {})[key] = value

    def _get_info(self, key):
        return self.__dict__.get("_info", {}).get(key)

    def _clone_attributes(self, other):
        """Copies the attributes that only Python holds from ``other``, the same variable of the cloned program."""
        for key, value in other.__dict__.items():
            if key not in ("block", "_var", "op"):
                self.__dict__[key] = value

    # ---- values exist only while a program runs

    def _needs_dygraph(self, what):
        raise Violated("Variable.%s requires a value: in a static program, fetch the variable with Executor.run" % what)

    def numpy(self) -> None:
        """Raises AssertionError: a Variable of a Program has no value; fetch it."""
        self._needs_dygraph("numpy()")

    def set_value(self, value: Any) -> None:
        """Raises AssertionError: a Variable of a Program has no value.

        Use ``scope.find_var(name).get_tensor().set``.
        """
        self._needs_dygraph("set_value()")

    def backward(self, backward_strategy: Any = None) -> None:
        """Raises AssertionError: in a Program, use ``append_backward``."""
        self._needs_dygraph("backward()")

    def gradient(self) -> None:
        """Raises AssertionError: in a Program, fetch ``grad_name``."""
        self._needs_dygraph("gradient()")

    def clear_gradient(self) -> None:
        """Raises AssertionError: a Program computes its gradients in each run."""
        self._needs_dygraph("clear_gradient()")

    def detach(self) -> None:
        """Raises AssertionError: in a Program, set ``stop_gradient``."""
        self._needs_dygraph("detach()")


def is_growable(var: Variable) -> bool:
    """Whether a Variable is a growable table: persistable, with an unknown number of rows."""
    return var.type == VarType.SELECTED_ROWS and var.persistable and tuple(var.shape[:1]) == (-1,)


def var_names(variables: Any) -> Any:
    """Names of a list of Variables or names."""
    return [v if isinstance(v, str) else v.name for v in variables]
