"""Names that installed libraries have removed: they are added when the library is imported."""
from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .on_import import when_imported


def _add(owner: Any, **names: Any) -> None:
    for name, value in names.items():
        if not hasattr(owner, name):
            setattr(owner, name, value)


def _yaml(yaml: ModuleType) -> None:
    """``load`` without a loader, as before PyYAML 6."""
    def with_loader(original: Any) -> Any:
        @functools.wraps(original)
        def load(stream: Any, Loader: Any = None) -> Any:
            return original(stream, yaml.FullLoader if Loader is None else Loader)
        return load
    for name in ("load", "load_all"):
        setattr(yaml, name, with_loader(getattr(yaml, name)))


def _image(image: ModuleType) -> None:
    """Filters that Pillow 10 removed."""
    resampling, transpose = image.Resampling, image.Transpose
    _add(image, ANTIALIAS=resampling.LANCZOS, LINEAR=resampling.BILINEAR, CUBIC=resampling.BICUBIC,
         **{item.name: item for item in (*resampling, *transpose)})


def _image_draw(module: ModuleType) -> None:
    def textsize(self: Any, text: Any, font: Any = None, *args: Any, **kwargs: Any) -> tuple[int, int]:
        left, top, right, bottom = self.textbbox((0, 0), text, font, *args, **kwargs)
        return int(right), int(bottom)
    _add(module.ImageDraw, textsize=textsize)


def _image_font(module: ModuleType) -> None:
    def getsize(self: Any, text: Any, *args: Any, **kwargs: Any) -> tuple[int, int]:
        left, top, right, bottom = self.getbbox(text, *args, **kwargs)
        return int(right), int(bottom)
    for name in ("FreeTypeFont", "ImageFont", "TransposedFont"):
        _add(getattr(module, name), getsize=getsize)


def _pandas(pandas: ModuleType) -> None:
    """Methods that pandas 2 removed."""
    def append(self: Any, other: Any, ignore_index: bool = False, verify_integrity: bool = False,
               sort: bool = False) -> Any:
        if isinstance(other, dict):
            other = pandas.Series(other)
        if isinstance(self, pandas.DataFrame) and isinstance(other, pandas.Series):
            other = other.to_frame().T
        others = list(other) if isinstance(other, (list, tuple)) else [other]
        words = {"sort": sort} if isinstance(self, pandas.DataFrame) else {}
        return pandas.concat([self, *others], ignore_index=ignore_index, verify_integrity=verify_integrity, **words)

    for kind in (pandas.DataFrame, pandas.Series):
        _add(kind, append=append, iteritems=kind.items)
    import numpy
    _add(pandas, np=numpy, Int64Index=pandas.Index, Float64Index=pandas.Index)


#: Functions that add names to a module once it has been imported.
_MODULES: dict[str, Callable[[ModuleType], None]] = {
    "yaml": _yaml, "PIL.Image": _image, "PIL.ImageDraw": _image_draw, "PIL.ImageFont": _image_font,
    "pandas": _pandas}


def install() -> None:
    """Adds the names to modules that have been imported, and to those that will be, in this process."""
    for name, added in _MODULES.items():
        when_imported(name, added)
