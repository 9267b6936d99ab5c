"""Makes the modules of this folder importable; programs run on the threads they are given."""

import os
import sys

from threaded_runs import threads_without_asking  # noqa: F401

sys.path.insert(0, os.path.dirname(__file__))
