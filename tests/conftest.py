"""Makes the helpers of this folder importable from the folders below."""
import os
import sys

sys.path.insert(0, os.path.dirname(__file__))
