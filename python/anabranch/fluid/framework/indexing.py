"""Indexing of Variables (x[...]) with ints, slices with any step, Ellipsis, and Variables of shape [1]."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import unique_name
from ..errors import InvalidArgument, InvalidType, also
from ..plain_numbers import plain
from .context import default_programs

if TYPE_CHECKING:
    from .variable import Variable

#: Stands for the end of an axis, as in programs written by Fluid.
_END = 10000000


class Indexed:
    """Base class of Variable, with ``x[...]``."""

    def __getitem__(self, item: Any) -> Variable:
        """A part of the Variable, as NumPy's x[...] selects it.

        An int selects one index and removes the axis, a slice selects several. Indices may be Variables of shape [1].

        Raises:
            TypeError: an index is neither int, slice, Ellipsis nor Variable.
            EnforceNotMet: an index is out of range.

        Examples:
            >>> import anabranch.fluid as fluid
            >>> x = fluid.data("x", [2, 3, 4], "float32")
            >>> x[0].shape, x[:, 1:3].shape, x[..., -1].shape, x[:, ::2].shape
            ((3, 4), (2, 2, 4), (2, 3), (2, 2, 4))
        """
        return _part(self, item)


def _part(var: Any, items: Any) -> Any:
    """``var[items]``: appends the operators to the current block."""
    block = default_programs()[0].current_block()
    axes, bounds, reversed_axes = [], [], []
    removed: list[int] = []
    for axis, item in enumerate(_expanded(var, items)):
        if isinstance(item, slice):
            # `is`: a bound may be a Variable, whose == appends an op
            whole = item.start is None and item.stop is None and not isinstance(item.step, Indexed)
            if whole and item.step in (None, 1):
                continue
            if whole and item.step == -1:
                reversed_axes.append(axis - len(removed))
                continue
            bounds.append(_of_slice(var, axis, item))
        elif isinstance(item, Indexed):
            bounds.append((item, _after(block, item), 1))
            removed.append(axis)
        elif _is_place(item):
            bounds.append(_of_int(var, axis, item))
            removed.append(axis)
        else:
            raise InvalidType("%s[...]: an index must be an int, slice, Ellipsis or Variable, got %r"
                              % (var.name, item))
        axes.append(axis)
    out = _block_of(block, var, axes, bounds, removed) if axes else var
    if reversed_axes:
        source, out = out, _temporary(block, var.name + "_slice_reverse", var.dtype)
        block.append_op(type="reverse", inputs={"X": [source]}, outputs={"Out": [out]}, attrs={"axis": reversed_axes})
    return out


def _temporary(block, name, dtype):
    return block.create_var(name=unique_name.generate_with_ignorable_key(name), dtype=dtype, persistable=False)


def _number(block, value, dtype):
    number = block.create_var(dtype=dtype)
    block.append_op(type="fill_constant", outputs={"Out": [number]},
                    attrs={"shape": [1], "dtype": number.dtype, "value": float(value), "force_cpu": True})
    number.stop_gradient = True
    return number


def _after(block, place):
    """Returns place + 1 for a Variable."""
    one = _number(block, 1, place.dtype)
    result = block.create_var(dtype=place.dtype)
    block.append_op(type="elementwise_add", inputs={"X": [place], "Y": [one]}, outputs={"Out": [result]},
                    attrs={"axis": -1})
    result.stop_gradient = True
    return result


def _expanded(var, items):
    """Returns the items with Ellipsis replaced by full slices."""
    items = tuple(map(plain, items if isinstance(items, tuple) else (items,)))
    dots = [i for i, item in enumerate(items) if item is Ellipsis]
    if len(dots) > 1:
        raise InvalidType("%s[...]: at most one Ellipsis is allowed" % var.name)
    if dots:
        fill = len(var.shape) - (len(items) - 1)
        items = items[:dots[0]] + (slice(None),) * fill + items[dots[0] + 1:]
    if len(items) > len(var.shape):
        raise InvalidArgument("%s[...]: there must be at most one index for each axis (%d), got %d"
                              % (var.name, len(var.shape), len(items)))
    return items


def _is_place(value):
    return isinstance(value, Indexed) or (isinstance(value, int) and not isinstance(value, bool))


def _of_int(var, axis, item):
    extent = var.shape[axis]
    if extent >= 0 and not -extent <= item < extent:
        raise InvalidArgument("%s[...]: index %d of axis %d must be in [%d, %d)"
                              % (var.name, item, axis, -extent, extent))
    return item, item + 1 if item != -1 else _END, 1


def _of_slice(var, axis, item):
    step = 1 if item.step is None else item.step
    for value in (item.start, item.stop, step):
        if value is not None and not _is_place(value):
            raise InvalidType("%s[...]: a slice must be made of ints and Variables, got %r" % (var.name, item))
    if isinstance(step, int) and step == 0:
        raise also(InvalidArgument, AssertionError)("%s[...]: a step must not be 0" % var.name)
    backwards = isinstance(step, int) and step < 0
    start = (_END if backwards else 0) if item.start is None else item.start
    stop = (-_END if backwards else _END) if item.stop is None else item.stop
    return start, stop, step


def _block_of(block, var, axes, bounds, removed):
    strided = any(isinstance(step, Indexed) or step != 1 for _, _, step in bounds)
    op = "strided_slice" if strided else "slice"
    inputs, attrs, flags = {"Input": [var]}, {"axes": axes, "decrease_axis": removed}, [1] * len(axes)
    starts, ends, steps = ([b[i] for b in bounds] for i in range(3))
    for name, values in (("starts", starts), ("ends", ends)) + ((("strides", steps),) if strided else ()):
        attrs[name] = [-1 if isinstance(v, Indexed) else v for v in values]
        if any(isinstance(v, Indexed) for v in values):
            inputs[name.capitalize() + "TensorList"] = [
                v if isinstance(v, Indexed) else _number(block, v, "int32") for v in values]
            flags = [-1 if isinstance(v, Indexed) else flag for v, flag in zip(values, flags)]
    attrs["infer_flags"] = flags
    out = _temporary(block, var.name + "_" + op, var.dtype)
    block.append_op(type=op, inputs=inputs, outputs={"Out": [out]}, attrs=attrs)
    return out
