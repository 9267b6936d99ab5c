"""``import paddle`` in a process that a script under ``anabranch run`` starts, such as the pipe command of a data set.

The folder of this file is on the ``PYTHONPATH`` of such a process. An interpreter that does not have this package finds
what it would find without this file.
"""
import os
import sys

del sys.modules[__name__]  # names.install() puts its own module here
try:
    from anabranch._legacy import names
except ImportError:
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [path for path in sys.path if os.path.abspath(path) != folder]
    __import__("paddle")
else:
    names.install()
