"""Scripts written for Fluid, as they are: ``import anabranch.legacy`` as first line, or ``anabranch run script.py``.

After the import of this module

- ``paddle``, ``paddle.fluid``, ``paddle.dataset`` ... are the modules of this package (``_legacy/names.py``);
- names of Fluid that this package does not have can be imported; their first use raises an error, and a list of them
  is printed when the process ends;
- ``numpy.float``, ``numpy.int`` and similar names work again, and fetched arrays of one element are numbers at any
  rank (``_legacy/today.py``);
- names and behavior of Python 3.7 and of older libraries work again; under ``anabranch run``, the script and the
  modules that it imports may also be written for Python 2 (``_legacy/python2.py``, ``_legacy/rewriting.py``);
- a script that requests a GPU runs on the CPU, with one warning.

>>> import anabranch.legacy
>>> import paddle.fluid as fluid
>>> fluid.layers.fc.__module__.partition(".")[0]
'anabranch'
"""
from ._legacy.names import install as _install

_install()
