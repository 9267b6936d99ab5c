"""``anabranch run`` and ``import anabranch.legacy``: scripts for Fluid run as they are."""
import gzip
import json
import os
import subprocess
import sys

import numpy
import pytest
import small_archives
from repository import DATA, PYTHON, SUPPORT, TESTS

import anabranch.fluid as fluid

sys.path.insert(0, os.path.join(TESTS, "scripts"))
ENVIRONMENT = dict(os.environ, PYTHONPATH=PYTHON, CPU_NUM="1")


def run(tmp_path, text, *words, before=()):
    """Runs a script of this text by ``anabranch run``."""
    script = tmp_path / "script.py"
    script.write_text(text)
    return subprocess.run([sys.executable, "-m", "anabranch", "run", *before, str(script), *words], cwd=tmp_path,
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=300)


def lines(done):
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


TRAINS = """
import sys
import numpy as np
import paddle
import paddle.fluid as fluid
from paddle.fluid import layers

x = layers.data(name="x", shape=[13], dtype="float32")
y = layers.data(name="y", shape=[1], dtype="float32")
cost = layers.mean(layers.square_error_cost(layers.fc(x, 1), y))
fluid.optimizer.SGD(learning_rate=0.01).minimize(cost)
use_cuda = True
place = fluid.CUDAPlace(0) if use_cuda else fluid.CPUPlace()
exe = fluid.Executor(place)
exe.run(fluid.default_startup_program())
feeder = fluid.DataFeeder(place=place, feed_list=[x, y])
reader = paddle.batch(paddle.reader.shuffle(paddle.dataset.uci_housing.train(), buf_size=500), batch_size=4)
for data in reader():
    loss, = exe.run(feed=feeder.feed(data), fetch_list=[cost])
print("loss %f" % loss, np.float(1), sys.argv[1:])
"""


def test_a_script_that_asks_for_a_gpu_and_for_names_that_are_gone_trains(tmp_path):
    small_archives.write(str(tmp_path / "data"))
    done = run(tmp_path, TRAINS, "--epochs", "3", before=["--data", "data"])
    last = lines(done)[-1]
    assert last.startswith("loss ") and last.endswith("1.0 ['--epochs', '3']")
    assert done.stderr.count("no GPU is available") == 1
    assert "names that are not available" not in done.stderr


def test_the_same_script_by_a_first_line(tmp_path):
    small_archives.write(str(tmp_path / "data"))
    (tmp_path / "script.py").write_text("import anabranch.legacy\n" + TRAINS)
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                          env=dict(ENVIRONMENT, ANABRANCH_DATA=str(tmp_path / "data")))
    assert lines(done)[-1].startswith("loss ")


def test_its_example(tmp_path):
    script = "import doctest, anabranch.legacy\nprint(doctest.testmod(anabranch.legacy))\n"
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60)
    assert lines(done) == ["TestResults(failed=0, attempted=3)"]


def test_one_warning_for_all_wishes_for_a_gpu(tmp_path):
    done = run(tmp_path, """
import paddle.fluid as fluid
places = [fluid.CUDAPlace(0), fluid.core.CUDAPlace(1), fluid.CUDAPinnedPlace(), *fluid.cuda_places(),
          *fluid.cuda_pinned_places(1)]
y = fluid.layers.fill_constant([1], "float32", 2.0)
print(places, fluid.ParallelExecutor(use_cuda=True).run([y.name])[0].tolist(), fluid.is_compiled_with_cuda())
""")
    assert lines(done) == ["[CPUPlace, CPUPlace, CPUPlace, CPUPlace, CPUPlace] [2.0] False"]
    assert done.stderr.count("GPU") == 1


@pytest.mark.parametrize("wish", [fluid.CUDAPlace, fluid.CUDAPinnedPlace, fluid.cuda_places, fluid.cuda_pinned_places,
                                  lambda: fluid.ParallelExecutor(use_cuda=True)])
def test_without_run_a_gpu_is_refused(wish):
    with pytest.raises(fluid.core.EnforceNotMet, match="CUDA plug-in.*anabranch run"):
        wish()


def test_modules_and_classes_are_the_same_objects_under_both_names(tmp_path):
    assert lines(run(tmp_path, """
import paddle, paddle.fluid, paddle.fluid.layers.nn, paddle.fluid.core_avx
import paddle.fluid.incubate.fleet.base.role_maker as old
import anabranch.fluid, anabranch.fluid.incubate.fleet.base.role_maker as new
from paddle.batch import batch
print(paddle.fluid is anabranch.fluid, paddle.fluid.layers.nn.fc is anabranch.fluid.layers.fc, old is new,
      paddle.fluid.core_avx is anabranch.fluid.core, paddle.batch is batch)
print(paddle.__version__, paddle.version.full_version, paddle.version.major, new.__spec__.name, new.__name__)
print(paddle.compat.to_text(b"a"), hasattr(paddle, "no_such"))
""")) == ["True True True True True",
          "1.8.5 1.8.5 1 anabranch.fluid.incubate.fleet.base.role_maker anabranch.fluid.incubate.fleet.base.role_maker",
          "a False"]


def test_what_is_absent_raises_when_it_is_used_and_is_listed_at_the_end(tmp_path):
    done = run(tmp_path, r"""
import paddle.fluid as fluid
from paddle.fluid.dygraph.nn import Conv2D
from paddle.fluid.contrib.slim.quantization import QuantizationStrategy
from paddle.fluid.incubate.fleet.parameter_server.pslib import fleet
from paddle.fluid.trainer_desc import TrainerDesc
print(isinstance(3, fluid.dygraph.Layer))
for use in (lambda: Conv2D(1, 2, 3), lambda: fluid.dygraph.guard(), QuantizationStrategy, lambda: fleet.init(),
            lambda: type("Net", (), {}) and exec("class Net(fluid.dygraph.Layer): pass\nNet()", {"fluid": fluid}),
            lambda: fluid.dygraph.Linear.weight):
    try:
        use()
    except NotImplementedError as e:
        print(str(e).partition(" is not available")[0])
try:
    fluid.dygraph.no_such_name
except AttributeError as e:
    print(e)
""")
    assert lines(done) == [
        "False", "fluid.dygraph.nn.Conv2D", "fluid.dygraph.guard",
        "fluid.contrib.slim.quantization.QuantizationStrategy", "pslib.fleet.init", "fluid.dygraph.Layer",
        "fluid.dygraph.Linear.weight", "module 'anabranch.fluid.dygraph' has no attribute 'no_such_name'"]
    listed = [line for line in done.stderr.splitlines() if "names that are not available" in line]
    assert len(listed) == 1 and "fluid.dygraph.nn.Conv2D" in listed[0] and "fluid.trainer_desc.TrainerDesc" in listed[0]


def test_names_of_modules_that_are_here_but_lack_them(tmp_path):
    from anabranch import _absent
    module, names = sorted(_absent.table.part("names").items())[0]
    done = run(tmp_path, """
import importlib
name = getattr(importlib.import_module(%r.replace("anabranch", "paddle")), %r)
try:
    name()
except NotImplementedError as e:
    print(str(e).partition(" is not available")[0])
""" % (module, names[0]))
    assert lines(done) == ["%s.%s" % (module.partition(".")[2], names[0])]


def test_fetched_arrays_are_numbers_and_what_comes_of_them_is_plain(tmp_path):
    assert lines(run(tmp_path, """
import copy, pickle
import numpy as np
import paddle.fluid as fluid
x = fluid.layers.fill_constant([1, 1], "float32", 2.5)
y = fluid.layers.fill_constant([2, 3], "int64", 7)
a, b = fluid.Executor().run(fetch_list=[x, y])
print("%.1f %d" % (a, a), float(a), int(a), complex(a), round(float(a * 2), 1), b.sum())
print([a], a * 2, repr(a * 2))
try:
    float(b)
except (TypeError, ValueError) as e:
    print("not one number")
for made in (a[0], b[:1], a.view(), np.asarray(a), pickle.loads(pickle.dumps(a)), next(iter(b))):
    assert type(made) is np.ndarray, made
t, = fluid.Executor().run(fetch_list=[x], return_numpy=False)
print(type(t).__name__, np.float, np.int, np.object, np.str, np.bool in (bool, np.bool_))
""")) == ["2.5 2 2.5 2 (2.5+0j) 5.0 42",
          "[array([[2.5]], dtype=float32)] [[5.]] array([[5.]], dtype=float32)", "not one number",
          "LoDTensor <class 'float'> <class 'int'> <class 'object'> <class 'str'> True"]


def test_exit_codes_and_modules(tmp_path):
    assert run(tmp_path, "raise SystemExit(7)").returncode == 7
    failed = run(tmp_path, "import paddle.fluid as fluid\nfluid.layers.fc(1)\n")
    assert failed.returncode == 1 and "script.py" in failed.stderr
    (tmp_path / "net.py").write_text("import sys, paddle\nprint(__name__, sys.argv[1:], paddle.__name__)\n")
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "-m", "net", "--x"], cwd=tmp_path,
                          env=ENVIRONMENT, capture_output=True, text=True, timeout=60)
    assert lines(done) == ["__main__ ['--x'] paddle"]


MODULE = """
import numpy as np
a = np.zeros(2)
a[0] = np.array([2.5])
print(a, "%d" % np.array([3.0]), __name__)
"""


def test_a_module_with_old_expressions_runs_by_its_name(tmp_path):
    """runpy runs the code of a module in a new namespace, without the loader of the user's files."""
    (tmp_path / "net.py").write_text(MODULE)
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "-m", "net"], cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=60)
    assert lines(done) == ["[2.5 0. ] 3 __main__"]


def test_a_script_runs_a_module_by_runpy(tmp_path):
    (tmp_path / "net.py").write_text(MODULE)
    done = run(tmp_path, "import runpy\nrunpy.run_module('net', run_name='other')\n")
    assert lines(done) == ["[2.5 0. ] 3 other"]


BY_PATH = {
    "run_path": "print(runpy.run_path('net.py', {'start': 1})['x'], 'net' in sys.modules)",
    "main": "print(runpy.run_path('net.py', {'start': 1}, '__main__')['x'], sys.argv[0] != 'net.py')",
    "spec": """spec = importlib.util.spec_from_file_location('other', 'net.py')
module = importlib.util.module_from_spec(spec)
module.start = 1
spec.loader.exec_module(module)
print(module.x, module.__name__ == 'net')""",
    "execfile": "start = 1\nexecfile('net.py')\nprint(x, False)"}


@pytest.mark.parametrize("way", BY_PATH)
@pytest.mark.parametrize("text", ["x = list({start: 3 % 2}.iteritems())\nxrange(2)\n",
                                  "print 'two'\nx = zip([start], [3 / 2])\n"])
def test_an_old_file_is_run_by_its_path(tmp_path, way, text):
    (tmp_path / "net.py").write_text(text)
    done = run(tmp_path, "import importlib.util, runpy, sys\n%s\n" % BY_PATH[way])
    assert lines(done)[-1] == "[(1, 1)] %s" % (way == "main"), done.stderr


def test_a_traceback_of_a_module_starts_in_it(tmp_path):
    (tmp_path / "net.py").write_text("x = {}\nx[1] = {}\nraise ValueError('wrong')\n")
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "-m", "net"], cwd=tmp_path, env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=60)
    place = '  File "%s", line 3, in <module>' % (tmp_path / "net.py")
    assert done.returncode == 1
    assert done.stderr.splitlines()[1:] == [place, "    raise ValueError('wrong')", "ValueError: wrong"]


@pytest.mark.parametrize("words, text", [
    (["no_script.py"], "no script"), (["--data", "no_folder", __file__], "no folder"), ([], "required")])
def test_wrong_arguments_are_named(words, text):
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", *words], env=ENVIRONMENT, capture_output=True,
                          text=True, timeout=60)
    assert done.returncode == 2 and text in done.stderr


def test_another_paddle_that_is_there_already_is_refused(tmp_path):
    (tmp_path / "paddle.py").write_text("")
    (tmp_path / "script.py").write_text("import paddle\nimport anabranch.legacy\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 1 and "must be imported before paddle" in done.stderr


def test_a_launched_script_runs_in_the_same_way(tmp_path):
    (tmp_path / "job.py").write_text("import os, paddle\nprint('rank', os.environ['PADDLE_TRAINER_ID'])\n")
    done = subprocess.run([sys.executable, "-m", "anabranch", "launch", "--servers", "0", "--workers", "2", "job.py"],
                          cwd=tmp_path, env=dict(ENVIRONMENT, ANABRANCH_RUN="1"), capture_output=True, text=True,
                          timeout=120)
    assert done.returncode == 0, done.stderr
    assert [(tmp_path / "logs" / ("workerlog.%d" % k)).read_text().strip() for k in (0, 1)] == ["rank 0", "rank 1"]


def test_readers_give_what_those_of_fluid_gave(tmp_path):
    small_archives.write(str(tmp_path))
    command = [sys.executable, os.path.join(SUPPORT, "dataset_readers.py"), "anabranch.legacy", str(tmp_path)]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=120)
    found = json.loads(lines(done)[-1])
    with gzip.open(os.path.join(DATA, "dataset_readers.json.gz")) as file:
        recorded = json.load(file)
    assert found == recorded


def test_digits_are_found_where_archives_are(tmp_path, monkeypatch):
    import archives

    from anabranch.datasets import mnist
    archives.write(str(tmp_path))
    monkeypatch.delenv(mnist.FOLDER_VARIABLE, raising=False)
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    assert mnist.find() == str(tmp_path / "mnist")
    image, label = next(mnist.train()())
    assert image.shape == (784,) and 0 <= label < 10


def test_archives_are_never_fetched(tmp_path, monkeypatch):
    from anabranch.datasets import common, imdb
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(LookupError, match="aclImdb_v1.tar.gz, which is never fetched.*imdb"):
        imdb.word_dict()
    (tmp_path / "imdb").mkdir()
    (tmp_path / "imdb" / "aclImdb_v1.tar.gz").write_bytes(b"no archive")
    with pytest.raises(ValueError, match="no archive"):
        imdb.word_dict()
    with pytest.raises(ValueError, match="MD5"):
        common.download("http://x/aclImdb_v1.tar.gz", "imdb", "00")
    assert common.download("http://x/aclImdb_v1.tar.gz", "imdb", None).endswith("imdb/aclImdb_v1.tar.gz")


def test_a_picture_file_that_is_code_is_refused(tmp_path, monkeypatch):
    import pickle

    from anabranch.datasets import cifar
    small_archives._tar(str(tmp_path / "cifar" / "cifar-10-python.tar.gz"),
                        [("cifar-10-batches-py/data_batch_1", pickle.dumps(os.getcwd))])
    monkeypatch.setenv("ANABRANCH_DATA", str(tmp_path))
    with pytest.raises(ValueError, match="getcwd"):
        list(cifar.train10()())


def test_files_of_split_are_read_by_those_they_belong_to(tmp_path):
    from anabranch.datasets import common
    pattern = str(tmp_path / "%03d.pickle")
    common.split(lambda: range(7), 2, pattern)
    assert len(os.listdir(tmp_path)) == 4
    parts = [list(common.cluster_files_reader(str(tmp_path / "*.pickle"), 2, k)()) for k in (0, 1)]
    assert parts == [[0, 1, 4, 5], [2, 3, 6]]
    sample = (numpy.ones(3), numpy.float32(0.5), "word", {"id": 7})
    common.split(lambda: [sample], 1, str(tmp_path / "sample%d.pickle"))
    (array, *rest), = common.cluster_files_reader(str(tmp_path / "sample*"), 1, 0)()
    assert array.tolist() == [1, 1, 1] and tuple(rest) == sample[1:]
    with pytest.raises(ValueError, match="trainer_id"):
        common.cluster_files_reader(pattern, 2, 2)
    with pytest.raises(ValueError, match="line_count"):
        common.split(lambda: range(7), 0, pattern)


def test_files_that_are_code_are_refused_unless_the_script_asks_for_them(tmp_path):
    import pickle

    from anabranch.datasets import common
    (tmp_path / "0.pickle").write_bytes(pickle.dumps([os.getcwd]))
    with pytest.raises(ValueError, match="getcwd"):
        list(common.cluster_files_reader(str(tmp_path / "*"), 1, 0)())
    assert list(common.cluster_files_reader(str(tmp_path / "*"), 1, 0, pickle.load)()) == [os.getcwd]


def test_curves_are_drawn(tmp_path, monkeypatch):
    from anabranch.utils.plot import Ploter
    curves = Ploter("train", "test")
    curves.append("train", numpy.int64(1), 0.5)
    monkeypatch.setenv("DISABLE_PLOT", "True")
    curves.plot(str(tmp_path / "a.png"))
    assert not os.listdir(tmp_path)
    with pytest.raises(AssertionError, match="title"):
        curves.append("else", 1, 1)
    pytest.importorskip("matplotlib").use("Agg")
    monkeypatch.delenv("DISABLE_PLOT")
    curves.plot(str(tmp_path / "a.png"))
    assert os.listdir(tmp_path) == ["a.png"]
