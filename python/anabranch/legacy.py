"""Scripts written for Fluid, as they are: ``import anabranch.legacy`` as first line, or ``anabranch run script.py``.

After the import of this module

- ``paddle``, ``paddle.fluid``, ``paddle.dataset`` ... are the modules of this package (``_legacy/names.py``);
- what Fluid had and is not here can be imported; its first use raises, and all that was reached for is listed when
  the process ends;
- ``numpy.float``, ``numpy.int`` and the like are there again, and fetched arrays of one element are numbers at any
  rank (``_legacy/today.py``);
- names and behaviour of Python 3.7 and of older libraries are there again; under ``anabranch run`` the script and the
  modules it imports may also be Python 2 (``_legacy/python2.py``, ``_legacy/rewriting.py``);
- a script that asks for a GPU is given the CPU, with one warning.

>>> import anabranch.legacy
>>> import paddle.fluid as fluid
>>> fluid.layers.fc.__module__.partition(".")[0]
'anabranch'
"""
from ._legacy.names import install as _install

_install()
