"""Names of Fluid that this package does not have. They can be imported, and their first use raises an error with
advice."""
from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, NoReturn

from ._on_demand import no_attribute

#: (prefix of a name, what to use instead); the first prefix that fits counts.
_STATIC = ("this engine runs static programs: build the model with fluid.layers in a fluid.program_guard, and run it "
           "with fluid.Executor")
_QUANTIZE = "use the passes of fluid.contrib.slim.quantization, or its PostTrainingQuantization"

INSTEAD = (
    ("fluid.dygraph.checkpoint", "save and load a static program with fluid.save and fluid.load"),
    ("fluid.dygraph.load_dygraph", "load a static program with fluid.load"),
    ("fluid.dygraph.save_dygraph", "save a static program with fluid.save"),
    ("fluid.load_dygraph", "load a static program with fluid.load"),
    ("fluid.save_dygraph", "save a static program with fluid.save"),
    ("fluid.dygraph.jit", _STATIC + "; fluid.io.save_inference_model saves it for inference"),
    ("fluid.dygraph.static_runner", "fluid.io.load_inference_model loads a saved model"),
    ("fluid.dygraph.StaticModelRunner", "fluid.io.load_inference_model loads a saved model"),
    ("fluid.dygraph.learning_rate_scheduler", "use the schedules of fluid.layers, such as piecewise_decay"),
    ("fluid.optimizer.LearningRateDecay", "use the schedules of fluid.layers, such as piecewise_decay"),
    ("fluid.dygraph", _STATIC),
    ("fluid.framework.ParamBase", _STATIC),
    ("fluid.contrib.quantize", _QUANTIZE),
    ("fluid.contrib.QuantizeTranspiler", _QUANTIZE),
    ("fluid.contrib.slim.quantization", _QUANTIZE),
    ("fluid.contrib.slim", "fluid.contrib.slim.quantization quantizes models; for other compression, use "
                           "another tool"),
    ("incubate", "write the training loop with fluid.Executor, transform images with NumPy; anabranch.progress prints "
                 "a progress line"),
    *((("fluid." + name), _STATIC) for name in (
        "BCELoss", "BatchNorm", "BilinearTensorProduct", "Conv", "Dropout", "Embedding", "GRUUnit", "GroupNorm",
        "InstanceNorm", "L1Loss", "Layer", "Linear", "MSELoss", "NCE", "NLLLoss", "PRelu", "Pool2D", "SpectralNorm",
        "TreeConv", "VarBase")),
    ("complex", "compute real and imaginary parts with fluid.layers"),
    ("fluid.dataloader", "fluid.io.DataLoader.from_generator reads from a generator"),
    ("fluid.distributed", "use fleet of fluid.incubate.fleet.parameter_server.distribute_transpiler"),
    ("fluid.debugger", "fluid.debugger.pprint_program_codes and str(program) show programs as text"),
    ("utils.plotcurve", "paddle.utils.plot.Ploter draws curves of training"),
    ("utils", "paddle.dataset.image loads and crops images"),
    ("", "docs/absent.md lists what is not here"),
)

#: Names of absent modules that static programs use, and the module of this package that has them.
_HERE = {"fluid.dygraph.%s" % name: ("fluid.framework.imperative", found) for name, found in (
    ("ParallelEnv", "ParallelEnv"), ("parallel.ParallelEnv", "ParallelEnv"), ("parallel.Env", "ParallelEnv"),
    ("no_grad", "no_grad"), ("base.no_grad", "no_grad"), ("enabled", "enabled"), ("base.enabled", "enabled"),
    ("base.program_desc_tracing_guard", "program_desc_tracing_guard"))}

#: Decorators: functions that they decorate are refused when they are called.
_DECORATORS = ("declarative", "dygraph_to_static_func")

#: Names that the program has used, in that order.
reached: dict[str, None] = {}


def advice(name: str) -> str:
    """str: what to use instead of a name such as ``fluid.dygraph.Layer``."""
    return next(text for start, text in INSTEAD if name.startswith(start))


def refuse(name: str) -> NoReturn:
    """Raises a NotImplementedError that names what to use instead of a name such as ``fluid.dygraph.Layer``."""
    from .fluid.errors import Unsupported
    raise Unsupported("%s is not available: %s" % (name, advice(name)))


class _Base(type):
    """Type of the classes that stand for absent ones in the bases of a subclass."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        cls._refused(cls._name)  # type: ignore[attr-defined]


#: Classes of the absent names that have been subclassed, by name.
_bases: dict[str, _Base] = {}


class Absent:
    """Stands for an absent name. Any use of it raises an error, also in a ``with`` statement. A subclass of it raises
    an error when it is called.

    Args:
        name (str): name that it stands for, without the package.
        refused (callable, optional): called with the name of what is used; raises.

    >>> Absent("fluid.dygraph.Layer")
    <fluid.dygraph.Layer, which is not available>
    """

    def __init__(self, name: str, refused: Callable[[str], NoReturn] = refuse) -> None:
        self.__dict__.update(_name=name, _refused=refused)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)  # what tools ask of any object
        self._refused("%s.%s" % (self._name, name))

    def __setattr__(self, name: str, value: Any) -> None:
        self._refused("%s.%s" % (self._name, name))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._name.endswith(_DECORATORS) and len(args) == 1 and isinstance(args[0], FunctionType):
            return functools.wraps(args[0])(functools.partial(Absent.__call__, self, None))
        self._refused(self._name)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> Any:
        if self._name not in _bases:
            _bases[self._name] = _Base(self._name.rpartition(".")[2], (), {"_name": self._name,
                                                                            "_refused": staticmethod(self._refused)})
        return (_bases[self._name],)

    def __subclasscheck__(self, subclass: type) -> bool:
        return _bases.get(self._name) in subclass.__mro__

    def __enter__(self) -> Any:
        self._refused(self._name)

    def __exit__(self, *exc: object) -> None:
        """Is never reached: ``with`` needs both."""

    def __instancecheck__(self, instance: Any) -> bool:
        return False  # nothing can be one

    def __repr__(self) -> str:
        return "<%s, which is not available>" % self._name


class Table:
    """Absent modules and names of Fluid. Written by tools/generate_modules.py, and read on demand."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._read: dict[str, dict[str, list[str]]] = {}

    def part(self, name: str) -> dict[str, list[str]]:
        """dict: "modules" or "names" (of modules that are here): a module, as this package calls it -> names."""
        if not self._read:
            import json  # few programs need the table
            with open(self._path, encoding="utf-8") as file:
                self._read = json.load(file)
        return self._read[name]


table = Table(os.path.join(os.path.dirname(os.path.abspath(__file__)), "absent_names.json"))


def give(module: str, names: Sequence[str]) -> Callable[[str], Any]:
    """callable: a ``__getattr__`` for a module of Fluid from which ``names`` are missing here."""
    known, shown = frozenset(names), module.partition(".")[2]

    def get(name: str) -> Any:
        if "%s.%s" % (module, name) in table.part("modules"):
            return importlib.import_module("%s.%s" % (module, name))
        if name not in known:
            raise no_attribute(module, name)
        full = "%s.%s" % (shown, name)
        if full in _HERE:
            there, found = _HERE[full]
            return getattr(importlib.import_module("anabranch." + there), found)
        reached.setdefault(full)
        return Absent(full)
    return get


# Neither is a subclass of a class of importlib.abc, which is slow to import.
class _Loader:
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name, "A module of Fluid that is not available: a use of a name raises "
                                       "NotImplementedError.")
        names = table.part("modules")[spec.name]
        module.__getattr__ = give(spec.name, names)  # type: ignore[method-assign]
        module.__all__ = list(names)  # type: ignore[attr-defined]
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Does nothing, because the module is complete."""


class Finder:
    """Finds the modules that this package does not have.

    Attributes:
        beginnings (tuple of str): prefixes of the modules that are found. All modules under ``anabranch run``.
    """

    beginnings: tuple[str, ...] = ("anabranch.fluid.dygraph", "anabranch.fluid.contrib.slim")

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if not fullname.startswith(self.beginnings) or fullname not in table.part("modules"):
            return None
        inside = any(name.startswith(fullname + ".") for name in table.part("modules"))
        return ModuleSpec(fullname, _Loader(), is_package=inside)  # type: ignore[arg-type]


finder = Finder()
