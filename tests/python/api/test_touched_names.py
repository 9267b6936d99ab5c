"""Names that public scripts reach for, besides documented ones: each is there, or on the page of absent names.

data/touched_names.tsv lists them with their state. touched_names.py looks each one up as a script does.
"""
import json
import os
import subprocess
import sys

import pytest
from repository import DATA, PYTHON, ROOT, SUPPORT

ENVIRONMENT = dict(os.environ, PYTHONPATH=PYTHON)
with open(os.path.join(DATA, "touched_names.tsv")) as _file:
    STATES = dict(reversed(line.split("\t")) for line in _file.read().splitlines())
with open(os.path.join(ROOT, "docs", "absent.md"), encoding="utf-8") as _file:
    PAGE = _file.read().splitlines()


def python(*command):
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_name_is_as_the_list_says():
    assert len(STATES) == 201
    assert json.loads(python("-m", "anabranch", "run", os.path.join(SUPPORT, "touched_names.py"))) == STATES


def on_page(name):
    module, _, last = name.rpartition(".")
    return any(line.startswith("| `%s` | " % name) or "`%s`" % module in line and "`%s`" % last in line
               for line in PAGE)


@pytest.mark.parametrize("name", sorted(name for name, state in STATES.items() if state == "absent"))
def test_an_absent_name_is_on_the_page(name):
    assert on_page(name) or on_page(name.rpartition(".")[0])  # a method with its class


def run(code):
    return python("-c", "import anabranch.legacy, paddle, paddle.fluid as fluid\n" + code).splitlines()


REFUSED = """
def refused(use):
    try:
        use()
    except NotImplementedError as e:
        print(str(e).partition(" is not available")[0])
"""


def test_classes_can_be_subclassed_and_raise_when_they_are_called():
    assert run(REFUSED + """
class Net(fluid.dygraph.Layer):
    layers = 2
    def __init__(self):
        super(Net, self).__init__("net")
class Deeper(Net, fluid.dygraph.Layer):
    pass
class Old(fluid.Layer):
    pass
for cls in (Net, Deeper, Old):
    refused(cls)
print(Net.layers, issubclass(Deeper, fluid.dygraph.Layer), issubclass(Old, fluid.dygraph.Layer),
      issubclass(int, fluid.Layer), isinstance(Net, fluid.dygraph.Layer))
""") == ["fluid.dygraph.Layer", "fluid.dygraph.Layer", "fluid.Layer", "2 True False False False"]


def test_decorated_functions_raise_when_they_are_called():
    assert run(REFUSED + """
@fluid.dygraph.declarative
def forward(x):
    return x
@fluid.dygraph.jit.dygraph_to_static_func
def backward(x):
    return x
refused(lambda: forward(1)), refused(lambda: backward(1)), refused(lambda: fluid.dygraph.jit.declarative(3))
print(forward.__name__)
""") == ["fluid.dygraph.declarative", "fluid.dygraph.jit.dygraph_to_static_func", "fluid.dygraph.jit.declarative",
         "forward"]


@pytest.mark.parametrize("name, advice", [
    ("dygraph.StaticModelRunner", "load_inference_model"), ("load_dygraph", "fluid.load"),
    ("dygraph.save_dygraph", "fluid.save"), ("optimizer.LearningRateDecay", "piecewise_decay"),
    ("framework.ParamBase", "static programs"), ("Pool2D", "fluid.layers"),
    ("core.VarBase", "static programs"), ("core.Fleet", "distribute_transpiler"),
    ("contrib.QuantizeTranspiler", "slim.quantization")])
def test_a_refusal_says_what_to_use_instead(name, advice):
    """Like the page."""
    text, = run("try:\n    fluid.%s()\nexcept NotImplementedError as e:\n    print(str(e).splitlines()[0])" % name)
    assert text.startswith("fluid.%s is not available: " % name if "core" not in name else name) and advice in text


def test_names_of_the_imperative_mode_that_static_programs_use():
    assert run("""
import os
from paddle.fluid.dygraph.parallel import Env, ParallelEnv
print(ParallelEnv().nranks, ParallelEnv().local_rank, ParallelEnv().dev_id, ParallelEnv().trainer_endpoints)
os.environ.update(PADDLE_TRAINERS_NUM="4", PADDLE_TRAINER_ID="2", FLAGS_selected_gpus="3",
                  PADDLE_TRAINER_ENDPOINTS="a:1,b:2", PADDLE_CURRENT_ENDPOINT="b:2")
print(Env().nranks, Env().local_rank, Env().dev_id, Env().trainer_endpoints, Env().current_endpoint)
with fluid.dygraph.no_grad(), fluid.dygraph.base.program_desc_tracing_guard(False):
    print(fluid.dygraph.enabled(), fluid.dygraph.base.no_grad(lambda x: x + 1)(2))
""") == ["1 0 0 ['']", "4 2 3 ['a:1', 'b:2'] b:2", "False 3"]


def test_modules_of_paddle():
    assert run("""
import os, paddle.sysconfig, paddle.regularizer, paddle.common_ops_import as ops
print(os.path.isfile(paddle.__file__), any(n.startswith("_core") for n in os.listdir(paddle.sysconfig.get_lib())))
print(ops.Variable is fluid.Variable, ops.LayerHelper("fc").layer_type, ops.OpProtoHolder.instance() is not None)
try:
    paddle.sysconfig.get_include()
except NotImplementedError as e:
    print(e.args[0].split(" is ")[0])
try:
    from paddle.fluid.proto.profiler import profiler_pb2
    profiler_pb2.Profile()
except NotImplementedError as e:
    print(e.args[0].split(" is ")[0])
""") == ["True True", "True fc True", "sysconfig.get_include", "proto.profiler.profiler_pb2.Profile"]


def test_tools_of_paddle_that_no_program_needs():
    assert run(REFUSED + """
import os, paddle.libs, paddle.utils.plotcurve
from paddle.utils.image_util import load_image, ImageTransformer
from paddle.utils.preprocess_img import ImageClassificationDatasetCreater
class Transformer(ImageTransformer):
    pass
for use in (lambda: load_image("a.png"), Transformer, lambda: paddle.utils.plotcurve.plot_paddle_curve([], None, None),
            lambda: fluid.core.init_lod_tensor_blocking_queue(None, 4, False)):
    refused(use)
print(paddle.check_import_scipy("posix"), paddle.check_import_scipy(os_name=os.name))
""") == ["utils.image_util.load_image", "utils.image_util.ImageTransformer",
         "utils.plotcurve.plot_paddle_curve", "core.init_lod_tensor_blocking_queue", "None None"]


def test_an_import_does_not_load_what_only_old_scripts_use():
    code = "import sys, anabranch.fluid\nprint([m for m in %r if m in sys.modules])"
    modules = ["anabranch.common_ops_import", "anabranch.sysconfig", "anabranch.fluid.proto.profiler.profiler_pb2"]
    assert python("-c", code % modules) == "[]\n"
