"""Errors of calls: an argument that a public function does not have, that is missing, or that is given twice.

Python detects these before the function starts, and its TypeError names no near argument. ``explain`` wraps public
functions, constructors and methods, so that such a call raises InvalidType with the function, the argument and
similar names. ``Executor.run`` is called in every step and therefore does not pay for a wrapper: it collects unknown
names itself and passes them to ``refuse``.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypedDict, TypeVar

from .._other_names import near_argument
from .errors import InvalidType

if TYPE_CHECKING:
    from typing_extensions import Unpack as Unpack

_Function = TypeVar("_Function", bound=Callable[..., Any])


class Nothing(TypedDict):
    """The type of arguments that type checkers refuse."""


#: Function -> function of the arguments of a call, positional and by name.
Preparation = Callable[[Callable[..., Any]], Callable[[Any, Any], tuple[Any, Any]]]
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_CONSTRUCTORS = ("__init__", "__new__")
_OURS = "anabranch."
#: Methods of every step, which are not wrapped.
_EVERY_STEP = frozenset({"Executor.run", "Predictor.run", "Predictor.run_rows"})


def explain(module: dict[str, Any], prepared: Preparation | None = None) -> None:
    """Wraps the public functions of a module, and the constructors and public methods of its public classes. The module
    calls it as its last statement, so that every importer gets the wrapped ones.

    Args:
        module (dict): ``globals()`` of the module. Its public functions are those of ``__all__``, or all.
        prepared (callable, optional): makes from a function another one, which checks the arguments of each call and
            returns those that the call gets.
    """
    own = [name for name, value in module.items()
           if not name.startswith("_") and getattr(value, "__module__", None) == module["__name__"]]
    for name in own:
        if inspect.isclass(module[name]):
            explain_class(module[name], prepared)
        elif inspect.isfunction(module[name]) and name in module.get("__all__", own):
            module[name] = checked(module[name], 0, prepared)


def explain_class(cls: type, prepared: Preparation | None = None) -> None:
    """Wraps the constructor and the public methods of a class and of its bases in this package."""
    for base in cls.__mro__:
        if not base.__module__.startswith(_OURS) or base.__module__ == "anabranch._core":
            continue
        for name, value in list(vars(base).items()):
            if (name.startswith("_") and name not in _CONSTRUCTORS) or "%s.%s" % (base.__name__, name) in _EVERY_STEP:
                continue
            if inspect.isfunction(value):
                setattr(base, name, checked(value, 1, prepared))
            elif isinstance(value, staticmethod):
                setattr(base, name, staticmethod(checked(value.__func__, int(name == "__new__"))))
            elif isinstance(value, classmethod):
                setattr(base, name, classmethod(checked(value.__func__, 1)))


def checked(function: Callable[..., Any], bound: int = 0, prepared: Preparation | None = None) -> Callable[..., Any]:
    """Returns the function with the errors of this module; itself if it is wrapped already, or
    takes no arguments (such as ``global_scope``) and is not a constructor.

    Args:
        function (callable): a function.
        bound (int): number of its first arguments that are not of the caller: 1 for ``self`` or ``cls``.
        prepared (callable, optional): as for :func:`explain`.
    """
    takes_nothing = function.__code__.co_argcount == bound and not function.__code__.co_kwonlyargcount and not (
        function.__code__.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS))
    if hasattr(function, "_explains_calls") or (takes_nothing and function.__name__ not in _CONSTRUCTORS):
        return function
    prepare = prepared(function) if prepared is not None else None

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if prepare is not None:
            args, kwargs = prepare(args, kwargs)
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            # An error from inside the function has further frames below this one.
            text = None if _is_from_inside(error) else problem(function, args, kwargs, bound)
            if text is None:
                raise
        raise InvalidType(text)

    call._explains_calls = True  # type: ignore[attr-defined]
    return call


def _is_from_inside(error: TypeError) -> bool:
    inner = error.__traceback__ and error.__traceback__.tb_next
    return inner is not None and "contextlib" not in inner.tb_frame.f_code.co_filename


def problem(function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any],
            bound: int = 0) -> str | None:
    """str: what is wrong with the arguments of a call; None if they fit the signature.

    >>> def fc(input, size, act=None):
    ...     pass
    >>> print(problem(fc, (), {"activation": "relu"}))
    fc: there is no argument 'activation'; did you mean act?
    >>> problem(fc, (1,), {})
    'fc: size must be given'
    """
    parameters = list(inspect.signature(function).parameters.values())[bound:]
    kinds = {p.kind for p in parameters}
    names = [p.name for p in parameters if p.kind in _BY_NAME]
    positions = [p.name for p in parameters if p.kind in _BY_POSITION]
    label, args = _label(function, args[:bound]), args[bound:]
    unknown = [name for name in kwargs if name not in names]
    if unknown and inspect.Parameter.VAR_KEYWORD not in kinds:
        return _unknown(label, unknown[0], names)
    if len(args) > len(positions) and inspect.Parameter.VAR_POSITIONAL not in kinds:
        return "%s: there must be at most %d positional argument%s, got %d" % (
            label, len(positions), "" if len(positions) == 1 else "s", len(args))
    given = positions[:len(args)]
    twice = [name for name in given if name in kwargs]
    if twice:
        return "%s: %s must be given once, got it by position and by name" % (label, twice[0])
    missing = [p.name for p in parameters if p.default is p.empty and p.kind in (*_BY_POSITION, *_BY_NAME)
               and p.name not in given and p.name not in kwargs]
    return "%s: %s must be given" % (label, " and ".join(missing)) if missing else None


def collects_unknown(function: _Function) -> _Function:
    """Hides the last parameter, ``**unknown``, from the signature of a function that is called in every step."""
    signature = inspect.signature(function)
    shown = [p for p in signature.parameters.values() if p.name != "unknown"]
    function.__signature__ = signature.replace(parameters=shown)  # type: ignore[attr-defined]
    return function


def refuse(function: Callable[..., Any], unknown: Mapping[str, Any]) -> NoReturn:
    """Raises InvalidType for arguments that ``function`` does not have."""
    names = [p.name for p in inspect.signature(function).parameters.values() if p.kind in _BY_NAME and p.name != "self"]
    raise InvalidType(_unknown(_label(function), next(iter(unknown)), names))


def _unknown(label: str, name: str, names: list[str]) -> str:
    similar = near_argument(name, names)
    listed = "" if similar else "\n  arguments: " + ", ".join(names) if names else "; it has no arguments"
    return "%s: there is no argument %r%s%s" % (label, name, similar, listed)


def _label(function: Callable[..., Any], bound: tuple[Any, ...] = ()) -> str:
    """The name that callers know: that of the class of this package for a constructor, Class.method for a method."""
    if function.__name__ in _CONSTRUCTORS and bound:
        cls = bound[0] if isinstance(bound[0], type) else type(bound[0])
        return next(base.__name__ for base in cls.__mro__ if base.__module__.startswith(_OURS))
    return function.__qualname__.rpartition("<locals>.")[2]
