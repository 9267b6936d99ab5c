"""The modules whose docstrings are documentation."""
import doctest

MODULES = ["layers", "initializer", "regularizer", "clip", "optimizer", "nets", "metrics", "input"]
RUNNER_FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
