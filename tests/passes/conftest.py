"""Programs run on the threads they are given."""
from threaded_runs import threads_without_asking  # noqa: F401
