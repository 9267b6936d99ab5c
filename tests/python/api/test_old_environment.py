"""Scripts of Python 2 and 3.7, of NumPy 1.19 and of older libraries run under ``anabranch run``."""
import os
import subprocess
import sys
import zipfile

import pytest
from repository import DATA, PYTHON, SUPPORT

ENVIRONMENT = dict(os.environ, PYTHONPATH=PYTHON)

#: What CPython 3.7 printed with NumPy 1.19, and Python 2 for the last rows.
PRINTED = {
    "formatted": "1.0 3 [3]", "formatted alone": "1.0", "rounded mean": "[2.5, 2.5, 2.5, 2.5]",
    "mean as a number": "[True, {2.5: 1}]", "arithmetic": "['5.0', [1.0], 0]",
    "float": "1.0", "int": "2", "math": "1.0",
    "stored": "[2.0, 3.0]", "stored outside the range": "[255, 44]", "ragged": "['O', (2,), (2,), [3]]",
    "copy": "[1, 2]", "outside the range": "[255, 44]", "stacked iterator": "(2, 2)", "bytes": "[1]", "array": "1",
    "removed functions": "[[[1, 1], [2, 2]], 'float32', True]",
    "methods": "[3, 2]", "printed": "[0.5, 3]", "types": "[True, inf, 6, True, (1, 1)]", "histogram": "[1.0, 1.0]",
    "percentile": "2",
    "keywords": "[(1,), [False, True], (2, 2), [[2.0, 0.0], [0.0, 2.0]], 2, 2, '[1]', None]",
    "scalar types": "[dtype('int32'), dtype('float32'), dtype('float64'), 4, <class 'numpy.float32'>, True, "
                    "<class 'numpy.int32'>, <class 'numpy.int64'>, <class 'numpy.float32'>, 'd', True]",
    "functions": "[2, [0, 1], 3, (2,), 1, 4, (2, 1), [1], None]",
    "modules of numpy": "[[0, 1, 0], [1, 1], True, b'a', 2.0]",
    "set items": "[[[5.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 5.0]], [[0.0, 0.0], [5.0, 0.0]]]",
    "random": "[1, [1]]", "collections": "True", "modules": "[True, 2, b'YQ==\\n']",
    "argspec": "['dtype']", "arguments of a layer": "['input', 'use_cudnn']",
    "arguments of a method": "['self', 'program', 'feed']",
    "json": "[1]", "thread": "False", "six": "[True, [(1, 2)], 'str', 'urlopen']",
    "dict": "[[(1, 2)], True, 1]", "xrange": "[0, 1]", "slice": "[1]", "lists": "[2, (1, 2), (1, 2), [1]]",
    "division": "0.5", "version": "['ON', '0', 0.0]"}


def run(folder, script, code=0):
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", script], cwd=folder, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    text = run(tmp_path_factory.mktemp("old"), os.path.join(SUPPORT, "old_environment.py")).stdout
    return dict(line.split(": ", 1) for line in text.splitlines())


@pytest.mark.parametrize("name", sorted(PRINTED))
def test_an_old_expression_has_its_old_value(name, printed):
    assert printed[name] == PRINTED[name]


def test_every_expression_is_compared(printed):
    assert set(printed) == set(PRINTED)


@pytest.fixture
def python2(tmp_path):
    for name in ("main", "half"):
        with open(os.path.join(DATA, "python2", name + ".py.txt")) as file:
            (tmp_path / (name + ".py")).write_text(file.read())
    return tmp_path


def test_a_program_of_python_2_runs_with_its_modules(python2):
    pytest.importorskip("lib2to3")
    done = run(python2, "main.py")
    assert done.stdout.splitlines() == [
        "division 3 3 3.5", "b 2 a 1 ", "a 3 [(1, 2)] [(1, 2)]", "caught bad", "True 1 511 10 5 True", "3 3.0 abc",
        "[3, 2, 1] True 6", "[1, 2, 3] abc [1, 2, 3] [(1, 2)]", "3"]
    assert "to stderr" in done.stderr


@pytest.mark.parametrize("text", ["print('a'\n", "x = = 1\n"])
def test_a_file_of_neither_version_shows_the_error_of_python_3(text, tmp_path):
    (tmp_path / "script.py").write_text(text)
    assert "SyntaxError" in run(tmp_path, "script.py", 1).stderr.splitlines()[-1]


KEPT = """
import os
try:
    xrange
    print("Python 2")
except NameError:
    print("Python 3")
try:
    import cPickle as pickle
except ImportError:
    import pickle
print(pickle.__name__, 1 / 2)
class Net(object):
    def iteritems(self):
        return "own"
print(Net().iteritems())
try:
    Net().has_key(1)
except AttributeError as e:
    print(e)
import json.tool
print(type(json.__loader__).__name__, __file__)
"""


def test_a_file_that_runs_on_both_versions_keeps_its_meaning(tmp_path):
    (tmp_path / "script.py").write_text(KEPT)
    assert run(tmp_path, "script.py").stdout.splitlines() == [
        "Python 3", "pickle 0.5", "own", "'Net' object has no attribute 'has_key'", "SourceFileLoader script.py"]


def test_a_module_that_lists_its_names_finds_its_own(tmp_path):
    (tmp_path / "nets.py").write_text("import math\ndef lenet(x):\n    return '%d' % x\n")
    (tmp_path / "run.py").write_text("print(eval('unicode')('a'), xrange(2))\n")
    (tmp_path / "script.py").write_text("""
from nets import *
import nets, run
print(sorted(name for name in dir() if not name.startswith("_")))
print(sorted(name for name in vars(nets) if not name.startswith("_")), nets.lenet(2))
""")
    assert run(tmp_path, "script.py").stdout.splitlines() == [
        "a range(0, 2)", "['lenet', 'math', 'nets', 'run']", "['lenet', 'math'] 2"]


def test_names_that_libraries_have_removed_are_there(tmp_path):
    pytest.importorskip("yaml")
    pytest.importorskip("PIL")
    (tmp_path / "script.py").write_text("""
import yaml
import PIL.Image as Image
from PIL import ImageDraw
print(yaml.load("a: 1"), yaml.load("a: 1", Loader=yaml.SafeLoader), Image.ANTIALIAS == Image.LANCZOS)
print(len(ImageDraw.Draw(Image.new("RGB", (4, 4))).textsize("ab")))
""")
    assert run(tmp_path, "script.py").stdout.splitlines() == ["{'a': 1} {'a': 1} True", "2"]


def test_an_error_shows_the_line_of_the_script(tmp_path):
    (tmp_path / "script.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("def f():\n    return [][0]\n\n\nf()\n")
    lines = run(tmp_path, "script.py", 1).stderr.splitlines()
    assert lines[-1] == "IndexError: list index out of range"
    assert any('other.py", line 2, in f' in line for line in lines) and not any("_legacy" in line for line in lines)


LATE = """
import sys
import paddle.fluid as fluid
slow = {"email", "fractions", "html.parser", "http.client", "importlib.metadata", "lib2to3", "numpy.random",
        "numpy.testing", "ssl", "unittest", "urllib.request", "xml.etree.ElementTree", "zipfile"}
print(sorted(slow & set(sys.modules)))
import numpy as np
import random
import urllib
from urllib import urlopen
import xml.etree.cElementTree as tree
from fractions import gcd
from html.parser import HTMLParser
print(urllib.request.urlopen is urlopen, urllib.quote("a b"), tree.fromstring("<a/>").tag, gcd(4, 6))
print(HTMLParser().unescape("&lt;"), random.sample({1}, 1), np.random.random_integers(1, 1))
np.testing.assert_array_equal(x=[1], y=[1])
print(type(np.random.__loader__).__name__, hasattr(urllib, "none"))
"""


def test_modules_that_are_slow_to_import_are_changed_when_the_script_imports_them(tmp_path):
    (tmp_path / "script.py").write_text(LATE)
    assert run(tmp_path, "script.py").stdout.splitlines() == [
        "[]", "True a%20b a 2", "< [1] 1", "SourceFileLoader False"]


@pytest.mark.parametrize("name", ["script.py", "script.zip"])
def test_an_archive_runs_under_any_name(name, tmp_path):
    with zipfile.ZipFile(tmp_path / name, "w") as archive:
        archive.writestr("__main__.py", "import sys\nprint(__name__, sys.argv[1:])\n")
    assert run(tmp_path, name).stdout == "__main__ []\n"


def test_a_script_may_hold_the_bytes_of_an_archive(tmp_path):
    (tmp_path / "script.py").write_bytes(b"print(len(b'PK\5\6'))\n")
    assert run(tmp_path, "script.py").stdout == "4\n"
