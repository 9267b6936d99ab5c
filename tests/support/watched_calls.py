"""Stands between the cases of layer_cases/ and an implementation of Fluid, and reports every call of a case.

Runs on Python 3.7 and later.
"""
import contextlib
import functools
import inspect
import sys
import types

#: Modules whose calls of methods are reported.
CASES = ("layer_cases", "refusal_cases")
#: Functions that are watched next to those of fluid.layers, fluid.nets and fluid.contrib.layers.
MORE = ("data", "embedding", "gradients", "one_hot", "backward.append_backward", "backward.gradients")
#: Classes of fluid.layers whose constructors and methods are watched.
CLASSES = ("While Switch IfElse DynamicRNN StaticRNN Categorical MultivariateNormalDiag Normal Uniform GRUCell "
           "LSTMCell BeamSearchDecoder BasicDecoder TrainingHelper GreedyEmbeddingHelper SampleEmbeddingHelper").split()


class _Module:
    """A module whose functions report their calls."""

    def __init__(self, module, path, on_call):
        self._module, self._path, self._on_call = module, path, on_call

    def __getattr__(self, name):
        value = getattr(self._module, name)
        path = self._path + (name,)
        if isinstance(value, types.ModuleType):
            return _Module(value, path, self._on_call)
        if not inspect.isfunction(value) or not _is_watched(path):
            return value
        return functools.partial(_reported, ".".join(path[1:] if path[0] == "layers" else ("fluid",) + path), value,
                                 self._on_call)


def _is_watched(path):
    return path[:-1] in (("layers",), ("nets",), ("contrib", "layers")) or ".".join(path) in MORE


def _reported(label, function, on_call, *args, **kwargs):
    bound = inspect.signature(function).bind(*args, **kwargs)
    return on_call(label, function, bound)


def _method(label, function, on_call):
    """A method that reports its calls, but those of the implementation itself."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def method(*args, **kwargs):
        if sys._getframe(1).f_globals["__name__"].partition(".")[0] not in CASES:
            return function(*args, **kwargs)
        return on_call(label, function, signature.bind(*args, **kwargs))

    return method


@contextlib.contextmanager
def watched(fluid, on_call):
    """The modules fluid and fluid.layers for a case. ``on_call(label, function, bound arguments)`` makes each call."""
    before = []
    for cls in [getattr(fluid.layers, name) for name in CLASSES]:
        for name, value in list(vars(cls).items()):
            if inspect.isfunction(value) and (name == "__init__" or not name.startswith("_")):
                before.append((cls, name, value))
                label = cls.__name__ if name == "__init__" else "%s.%s" % (cls.__name__, name)
                setattr(cls, name, _method(label, value, on_call))
    try:
        yield _Module(fluid, (), on_call), _Module(fluid.layers, ("layers",), on_call)
    finally:
        for cls, name, value in before:
            setattr(cls, name, value)
