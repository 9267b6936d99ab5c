"""What ``anabranch doctor`` tries: each function says in a line what it saw, or raises."""
from __future__ import annotations

from collections.abc import Callable

from .nets import NotTried
from .on_disk import data, files
from .processes import cluster
from .single import kernels, known, repetition, replicas, threads, training

__all__ = ["TRIALS", "NotTried"]

#: Name -> trial. The first line of its docstring says what it covers.
TRIALS: dict[str, Callable[[], str]] = {
    "kernels": kernels, "training": training, "known": known, "repetition": repetition, "threads": threads,
    "replicas": replicas, "files": files, "data": data, "cluster": cluster}
