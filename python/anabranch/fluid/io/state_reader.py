"""Reader of the pickles of ``fluid.save``, which accepts only the opcodes that such files hold.

The file never decides what is called: this module builds dicts, strings, numbers and arrays itself. It also counts the
memory of live values, so reading takes the size of the file for the arrays and a fixed amount for everything else.
"""
from __future__ import annotations

import codecs
import math
from typing import Any

import numpy as np

from ..errors import InvalidArgument, ResourceExhausted
from .state_opcodes import OPCODES, Damaged, opcodes

_KINDS = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8")
_MOST_BYTES = 40 << 20  # of names, containers and values in progress, without the elements of arrays
_LONGEST_TUPLE = 64
_CHUNK = 1 << 20


class _Span:
    """A range of the file, read on demand. ``utf8`` marks a text; in arrays, its characters stand for bytes."""

    __slots__ = ("end", "start", "utf8")

    def __init__(self, start, end, utf8):
        self.start, self.end, self.utf8 = start, end, utf8


class _Dtype:
    __slots__ = ("dtype",)

    def __init__(self, code):
        if code.lstrip("<>=|") not in _KINDS:
            raise Damaged("arrays of dtype %r are not accepted" % code)
        self.dtype = np.dtype(code)


class _Array:
    """An array, which is empty until its state is read."""

    __slots__ = ("array",)

    def __init__(self):
        self.array = None


_MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
_NAMES = {("_codecs", "encode"): "encode", ("numpy", "dtype"): "dtype", ("numpy", "ndarray"): "ndarray",
          ("__builtin__", "bytes"): "bytes", ("builtins", "bytes"): "bytes", ("collections", "OrderedDict"): "dict",
          **{(module, "_reconstruct"): "reconstruct" for module in _MULTIARRAY},
          **{(module, "scalar"): "scalar" for module in _MULTIARRAY}}


class _Name:
    """An accepted name, with the kind of value that a call of it creates."""

    __slots__ = ("makes",)

    def __init__(self, module, name):
        self.makes = _NAMES.get((module, name))
        if self.makes is None:
            raise Damaged("%s.%s is not accepted in a file of parameters" % (module, name))


class _Machine:
    """The stack machine of the opcodes, with the memory that each value on its stack keeps alive."""

    def __init__(self, data):
        self.bytes_ = data
        self.data = memoryview(data)
        self.values, self.sizes, self.marks, self.memo = [], [], [], {}
        self.memo_count = 0
        self.alive = 0
        self.elements = len(data) + _CHUNK  # bytes of arrays that may still be created
        self.recalled = set()

    def run(self):
        for name, argument in opcodes(self.bytes_):
            if name == "get" and argument not in self.recalled:
                self.recalled.add(argument)
                self.keep(100)
        does = {name: getattr(self, name) for name in OPCODES}
        for name, argument in opcodes(self.bytes_):
            does[name](argument)
        value, _ = self.pop()
        return self.finished(value)

    # ---- the stack

    def keep(self, size):
        self.alive += size
        if self.alive > _MOST_BYTES:
            raise Damaged("it needs more than %d bytes in addition to its arrays" % _MOST_BYTES)

    def push(self, value, size=64):
        self.alive += size
        if self.alive > _MOST_BYTES:
            self.keep(0)
        self.values.append(value)
        self.sizes.append(size)

    def pop(self):
        if not self.values or (self.marks and len(self.values) <= self.marks[-1]):
            raise Damaged("an opcode finds no value")
        self.alive -= self.sizes[-1]
        return self.values.pop(), self.sizes.pop()

    def pop_many(self, count):
        begin = len(self.values) - count
        if begin < (self.marks[-1] if self.marks else 0):
            raise Damaged("an opcode finds no value")
        values, size = self.values[begin:], sum(self.sizes[begin:])
        del self.values[begin:], self.sizes[begin:]
        self.alive -= size
        return values, size

    def pop_mark(self):
        if not self.marks:
            raise Damaged("an opcode finds no mark")
        count = len(self.values) - self.marks[-1]
        values, size = self.pop_many(count)
        self.marks.pop()
        self.alive -= 64
        return values, size

    def top(self, kind):
        if not self.values or not isinstance(self.values[-1], kind):
            raise Damaged("an opcode finds no %s" % kind.__name__.strip("_").lower())
        return self.values[-1]

    # ---- values

    def skip(self, _):
        pass

    def mark(self, _):
        self.keep(64)
        self.marks.append(len(self.values))

    def none(self, _):
        self.push(None)

    def true(self, _):
        self.push(True)

    def false(self, _):
        self.push(False)

    def number(self, argument):
        self.push(argument)

    def long(self, argument):
        self.push(int.from_bytes(self.data[argument[0]:argument[1]], "little", signed=True), 400)

    def text(self, argument):
        self.push(_Span(*argument, True), 100)

    def bytes(self, argument):
        self.push(_Span(*argument, False), 100)

    def dict(self, _):
        self.push({}, 240)

    def empty_tuple(self, _):
        self.push(())

    def tuple(self, _):
        self.make_tuple(*self.pop_mark())

    def tuple1(self, _):
        self.make_tuple(*self.pop_many(1))

    def tuple2(self, _):
        self.make_tuple(*self.pop_many(2))

    def tuple3(self, _):
        self.make_tuple(*self.pop_many(3))

    def make_tuple(self, items, size):
        nested = [item for item in items if isinstance(item, tuple)]
        if len(items) > _LONGEST_TUPLE or any(isinstance(i, (tuple, dict)) for inner in nested for i in inner):
            raise Damaged("a tuple must be a shape or a part of an array")
        self.push(tuple(items), 64 + 8 * len(items) + size)

    # ---- memoized values

    def put(self, number):
        if not self.values:
            raise Damaged("an opcode finds no value")
        self.memo_count += 1
        if number in self.recalled:
            self.keep(self.sizes[-1])
            self.memo[number] = self.values[-1]

    def memoize(self, _):
        self.put(self.memo_count)

    def get(self, number):
        if number not in self.memo:
            raise Damaged("memo %d is not defined" % number)
        self.push(self.memo[number], 16)

    # ---- names and calls

    def global_(self, argument):
        self.push(_Name(*argument))

    def stack_global(self, _):
        (module, name), _ = self.pop_many(2)
        self.push(_Name(self.string(module), self.string(name)))

    def reduce(self, _):
        (name, arguments), _ = self.pop_many(2)
        if not isinstance(name, _Name) or not isinstance(arguments, tuple):
            raise Damaged("only a name can be called")
        self.push(getattr(self, "make_" + name.makes, self.make_nothing)(*arguments), 250)

    def make_nothing(self, *_):
        raise Damaged("this name cannot be called")

    def make_encode(self, text, encoding):
        if not isinstance(text, _Span) or not text.utf8 or self.string(encoding) not in ("latin1", "latin-1"):
            raise Damaged("a text must be in latin1")
        return text

    def make_bytes(self):
        return _Span(0, 0, False)

    def make_dict(self):
        return {}

    def make_dtype(self, code, *_):
        return _Dtype(self.string(code))

    def make_reconstruct(self, *_):
        return _Array()

    def make_scalar(self, dtype, raw):
        made = _Array()
        self.fill(made, (), dtype, False, raw)
        return made

    # ---- containers and states

    def setitem(self, _):
        self.set_items(*self.pop_many(2))

    def setitems(self, _):
        self.set_items(*self.pop_mark())

    def set_items(self, items, size):
        into = self.top(dict)
        if len(items) % 2:
            raise Damaged("a key has no value")
        self.keep(size + 50 * len(items) + sum(i.end - i.start for i in items if isinstance(i, _Span)))
        for key, value in zip(items[::2], items[1::2]):
            into[self.string(key)] = self.finished(value)

    def build(self, _):
        state, _ = self.pop()
        if not isinstance(state, tuple):
            raise Damaged("a state must be a tuple")
        if self.values and isinstance(self.values[-1], _Dtype):
            order = self.string(state[1])
            if order not in ("<", ">", "=", "|"):
                raise Damaged("%r is not a byte order" % order)
            made = self.values[-1]
            made.dtype = made.dtype.newbyteorder(order) if order in "<>" else made.dtype
            return
        _, shape, dtype, fortran, raw = state
        self.fill(self.top(_Array), shape, dtype, fortran, raw)

    def fill(self, made, shape, dtype, fortran, raw):
        if not isinstance(dtype, _Dtype) or not isinstance(raw, _Span) or not isinstance(shape, tuple):
            raise Damaged("an array must be plain")
        if not all(isinstance(n, int) and n >= 0 for n in shape):
            raise Damaged("a shape is invalid")
        size = math.prod(shape) * dtype.dtype.itemsize
        self.elements -= size
        if size > raw.end - raw.start or self.elements < 0:
            raise Damaged("an array has more elements than the file")
        flat = np.empty(size, "uint8")
        self.copy(raw, flat)
        if dtype.dtype.kind == "b":
            np.minimum(flat, 1, out=flat)
        if not dtype.dtype.isnative:
            flat.view(dtype.dtype.newbyteorder("=")).byteswap(inplace=True)
        array = flat.view(dtype.dtype.newbyteorder("="))
        made.array = array.reshape(shape, order="F" if fortran else "C")

    def copy(self, raw, to):
        decoder = codecs.getincrementaldecoder("utf-8")()
        have = 0
        for begin in range(raw.start, raw.end, _CHUNK):
            end = min(begin + _CHUNK, raw.end)
            part = self.data[begin:end]
            if raw.utf8:
                part = decoder.decode(part, final=end == raw.end).encode("latin1")
            if have + len(part) > len(to):
                raise Damaged("an array has fewer elements than its data")
            to[have:have + len(part)] = np.frombuffer(part, "uint8")
            have += len(part)
        if have != len(to):
            raise Damaged("an array has more elements than its data")

    def string(self, span):
        if not isinstance(span, _Span):
            raise Damaged("a text is missing")
        return str(self.data[span.start:span.end], "utf-8" if span.utf8 else "latin1")

    def finished(self, value):
        if isinstance(value, _Array):
            if value.array is None:
                raise Damaged("an array has no data")
            return value.array
        if isinstance(value, _Span):
            return self.string(value)
        if value is None or isinstance(value, (bool, int, float, dict)):
            return value
        raise Damaged("a value must be an array, text, number or dict")

    def stop(self, _):
        if self.marks or len(self.values) != 1:
            raise Damaged("the file ends too early")


def load_state(data: Any, what: Any) -> Any:
    """The dict of a pickle that ``dump_state`` or Fluid 1.8.5 wrote. ``what`` names the file in errors.

    Raises:
        EnforceNotMet: the bytes are damaged, or hold anything except names, texts, numbers and arrays.
    """
    try:
        state = _Machine(data).run()
    except Damaged as e:
        raise InvalidArgument("%s is not a file of parameters, or is damaged: %s" % (what, e)) from None
    except MemoryError:
        raise ResourceExhausted("out of memory for the arrays of %s" % what) from None
    except (ValueError, TypeError, OverflowError) as e:  # raised by numpy, or by the arguments of a call
        raise InvalidArgument("%s is not a file of parameters, or is damaged: %s" % (what, str(e)[:200])) from None
    if not isinstance(state, dict):
        raise InvalidArgument("%s must hold a dict of arrays, got a %s" % (what, type(state).__name__))
    return state
