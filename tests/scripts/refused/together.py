"""Runs the tests of this folder; names as arguments choose files."""
import glob
import os
import sys
import unittest
import warnings

import paddle.fluid  # noqa: F401

HERE = os.path.dirname(os.path.abspath(__file__))


def main(names):
    sys.path.insert(0, HERE)
    names = names or sorted(os.path.basename(path)[:-3] for path in glob.glob(os.path.join(HERE, "*.py")))
    warnings.simplefilter("ignore")
    found = unittest.defaultTestLoader.loadTestsFromNames([name for name in names if name != "together"])
    result = unittest.TextTestRunner(sys.stdout).run(found)
    return 0 if result.wasSuccessful() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
