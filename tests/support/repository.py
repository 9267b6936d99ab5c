"""Where the parts of the repository are, for tests of any folder."""
import os

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ROOT = os.path.dirname(TESTS)
PYTHON = os.path.join(ROOT, "python")       # the folder of the package
DATA = os.path.join(TESTS, "data")          # recorded results
SUPPORT = os.path.join(TESTS, "support")    # modules that tests share, and programs that they start
