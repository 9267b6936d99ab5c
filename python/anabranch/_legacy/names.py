"""The names that scripts import: ``paddle`` and all its submodules are modules of this package."""
from __future__ import annotations

import atexit
import functools
import importlib
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

from .. import _absent
from ..fluid.errors import NotAllowed
from ..fluid.framework import gpu
from ..fluid.framework.version_check import FLUID_VERSION
from . import imported, libraries, loading, on_import, python2_names, six_names, standard_library, today

OLD, _NEW = "paddle", "anabranch"  # of scripts; of this package
#: Modules whose names are in another module here.
_MOVED = {"paddle.fluid.core_avx": "anabranch.fluid.core", "paddle.fluid.core_noavx": "anabranch.fluid.core"}


def here(name: str) -> str:
    """str: what this package calls a module.

    >>> here("paddle.fluid.layers")
    'anabranch.fluid.layers'
    """
    return _MOVED.get(name, _NEW + name[len(OLD):])


def real_name(name: str) -> str:
    """str: the name under which a module can be run: that of this package for one of ``paddle``.

    >>> real_name("paddle.distributed.launch"), real_name("package.train")
    ('anabranch.distributed.launch', 'package.train')
    """
    return here(name) if name.startswith(OLD + ".") else name


def give_absent(module: ModuleType) -> None:
    """Handles access to names that Fluid's table lists for a module and that the module lacks."""
    names = _absent.table.part("names").get(module.__name__)
    if not names or getattr(module, "_gives_absent", False):
        return
    others, absent = module.__dict__.get("__getattr__"), _absent.give(module.__name__, names)

    def get(name: str) -> Any:
        if others is not None:
            try:
                return others(name)
            except AttributeError:
                pass
        return absent(name)
    module.__getattr__ = get  # type: ignore[method-assign]
    module._gives_absent = True  # type: ignore[attr-defined]


def complete(module: ModuleType) -> None:
    """Adds the names that scripts import from a module of this package and that it lacks."""
    give_absent(module)
    imported.add(module)


class _Completing(importlib.machinery.SourceFileLoader):
    """Loads a module of this package, and completes it."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        complete(module)


# No finder or loader here is a subclass of a class of importlib.abc, which is slow to import.
class OwnFinder:
    """Finds modules of this package that are imported from now on and whose names are not complete."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(_NEW + ".") or fullname not in _incomplete():
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or type(spec.loader) is not importlib.machinery.SourceFileLoader:
            return spec
        spec.loader = _Completing(fullname, spec.origin or "")
        return spec


@functools.lru_cache(maxsize=1)
def _incomplete() -> frozenset[str]:
    return frozenset(_absent.table.part("names")) | frozenset(imported.table())


class _Alias:
    """Loads a module of this package under another name: it is the same object."""

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = importlib.import_module(here(spec.name))
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        old, module.__spec__ = module.__spec__, self._spec  # the import system has put its own there
        complete(module)
        _keep_functions(module, old.name if old else "")


def _keep_functions(module: ModuleType, old: str) -> None:
    """Registers the modules that have the name of a function of their package, such as ``fluid.layers.rnn``: the import
    system would replace the function with the module that it loads."""
    start = module.__name__ + "."
    for name in [name for name in sys.modules if name.startswith(start) and "." not in name[len(start):]]:
        if vars(module).get(name[len(start):]) is not sys.modules[name]:
            sys.modules.setdefault("%s.%s" % (old, name[len(start):]), sys.modules[name])


class Finder:
    """Finds ``paddle.x.y`` where this package has ``anabranch.x.y``, or Fluid's table has it."""

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        if not fullname.startswith(OLD + "."):
            return None
        try:
            module = importlib.import_module(here(fullname))
        except ModuleNotFoundError as e:
            if e.name is None or not here(fullname).startswith(e.name):
                raise
            return None
        loader: Any = _Alias()
        return importlib.machinery.ModuleSpec(fullname, loader, is_package=hasattr(module, "__path__"))


def _show_version() -> None:
    """Prints the version of the programming interface."""
    print("full_version: " + FLUID_VERSION)
    for name, number in zip(("major", "minor", "patch"), FLUID_VERSION.split(".")):
        print("%s: %s" % (name, number))
    print("rc: 0")


def check_import_scipy(os_name: str) -> None:
    """Imports SciPy on Windows, where Fluid 1.8.5 looks for missing libraries with it.

    Args:
        os_name (str): ``os.name`` of the machine.

    Raises:
        ImportError: SciPy cannot be imported on Windows.
    """
    if os_name == "nt":
        importlib.import_module("scipy.io")


def _top() -> ModuleType:
    """The module ``paddle``. It is not an alias: its version is that of the programming interface."""
    version = ModuleType(OLD + ".version", "The version of the programming interface.")
    version.__dict__.update(full_version=FLUID_VERSION, istaged=True, commit="", with_mkl="ON", rc="0",
                            mkl=lambda: "ON", show=_show_version,
                            **dict(zip(("major", "minor", "patch"), FLUID_VERSION.split("."))))
    top = ModuleType(OLD, "The names of Fluid on the engine of Anabranch.")
    top.__path__ = []
    top.__file__ = importlib.import_module(_NEW).__file__

    def get(name: str) -> Any:
        try:
            return importlib.import_module("%s.%s" % (OLD, name))
        except ModuleNotFoundError:
            raise AttributeError("module 'paddle' has no attribute %r" % name) from None
    batch = importlib.import_module(_NEW + ".batch")
    top.__dict__.update(__version__=FLUID_VERSION, version=version, batch=batch.batch,
                        check_import_scipy=check_import_scipy, __getattr__=get)
    # Both are found before the import system looks: it would replace the function with the module.
    sys.modules.update({OLD: top, version.__name__: version, OLD + ".batch": batch})
    return top


def _list_reached() -> None:
    if _absent.reached:
        sys.stderr.write("anabranch: this script used names that are not available: %s\n" % ", ".join(_absent.reached))


def install() -> None:
    """Makes ``paddle`` and all its submodules modules of this package, in this process. A second call does nothing.

    Raises:
        RuntimeError: another ``paddle`` has been imported.
    """
    if any(isinstance(finder, Finder) for finder in sys.meta_path):
        return
    if OLD in sys.modules:
        raise NotAllowed("anabranch.legacy must be imported before paddle; it is %s"
                         % getattr(sys.modules[OLD], "__file__", "there"))
    importlib.import_module(_NEW + ".fluid")
    sys.meta_path[:0] = [Finder(), OwnFinder()]
    _absent.finder.beginnings = (_NEW + ".",)
    for name in _incomplete() & set(sys.modules):
        complete(sys.modules[name])
    _top()
    gpu.take_cpu()
    for part in (on_import, today, loading, python2_names, standard_library, libraries, six_names):
        part.install()
    atexit.register(_list_reached)
