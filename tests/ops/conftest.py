"""Makes op_case importable from the files of this folder."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
