"""Layers generated from the declarations of operators. The names of ``fluid.layers.layer_function_generator``."""
from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..errors import InvalidValue
from ..framework.operator import _schema
from ..layer_helper import LayerHelper
from ..wrapped_decorator import wrap_decorator


def _slots(op_type):
    schema = _schema(op_type)
    if schema is None:
        raise InvalidValue("there is no operator %s" % op_type)
    return schema


def __getattr__(name: str) -> Any:
    """Gives OpProtoHolder, whose module is imported at first use."""
    if name == "OpProtoHolder":
        from ..framework import OpProtoHolder
        return OpProtoHolder
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


def generate_layer_fn(op_type: str) -> Callable[..., Any]:
    """Returns a layer that appends this operator. Inputs are passed by the lower-case names of their slots or in their
    order.

    >>> import anabranch.fluid as fluid
    >>> with fluid.program_guard(fluid.Program()):
    ...     x = fluid.data("x", [2, 2])
    ...     generate_layer_fn("scale")(x=x, scale=2.0).shape
    (2, 2)
    """
    inputs, outputs = _slots(op_type)

    def layer(*args: Any, **kwargs: Any) -> Any:
        helper = LayerHelper(op_type, **kwargs)
        given = {slot: kwargs.pop(slot.lower(), None) for slot in inputs}
        given.update(zip((slot for slot in inputs if given[slot] is None), args))
        given = {slot: value if isinstance(value, (list, tuple)) else [value]
                 for slot, value in given.items() if value is not None}
        if not given:
            raise InvalidValue("%s: an input must be given: %s" % (op_type, ", ".join(s.lower() for s in inputs)))
        dtype = next(iter(given.values()))[0].dtype
        made = {slot: [kwargs.pop(slot.lower(), None) or helper.create_variable_for_type_inference(dtype)]
                for slot, (_, optional) in outputs.items() if not optional or slot.lower() in kwargs}
        act, _ = kwargs.pop("act", None), kwargs.pop("name", None)
        helper.append_op(type=op_type, inputs=given, outputs=made, attrs=kwargs)
        first = next(iter(made.values()))[0]
        return helper.append_activation(first) if act else first
    layer.__name__ = op_type
    return layer


def generate_activation_fn(op_type: str) -> Callable[..., Any]:
    """Returns a layer ``(x, name=None)`` that appends this operator.

    >>> generate_activation_fn("relu").__name__
    'relu'
    """
    made = generate_layer_fn(op_type)

    def layer(x: Any, name: str | None = None) -> Any:
        return made(x, name=name)
    layer.__name__ = op_type
    return layer


@wrap_decorator
def deprecated(func_or_class: Any) -> Any:
    """Decorator: a call of the function warns that it is deprecated."""
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        warnings.warn("%s is old, and may be gone in a later version" % func_or_class.__name__, DeprecationWarning,
                      stacklevel=2)
        return func_or_class(*args, **kwargs)
    return wrapped


def autodoc(comment: str = "") -> Callable[..., Any]:
    """Decorator that prepends a comment to the documentation of a layer."""
    def decorate(func: Any) -> Any:
        func.__doc__ = comment + (func.__doc__ or "")
        return func
    return decorate


def templatedoc(op_type: str | None = None) -> Callable[..., Any]:
    """Decorator of layers that leaves ``${comment}`` and similar placeholders unchanged."""
    return lambda func: func
