"""An import reads few modules, any module may be the first, and the rest is read when a program first uses it."""
import ast
import importlib
import inspect
import os
import pickle
import pydoc
import subprocess
import sys

import pytest
from repository import ROOT
from shares import todays

import anabranch
import anabranch.fluid as fluid

PACKAGE = os.path.join(ROOT, "python", "anabranch")
#: Modules that `import anabranch.fluid` may read beyond those of NumPy: each costs about 1 ms, or 4 without byte code.
MOST = 45
#: Runs that are one process, which forks for each line of its input.
FORKING = """
import os, sys
import numpy, anabranch.fluid
for line in sys.stdin:
    child = os.fork()
    if not child:
        try:
            exec(line)
        except BaseException as e:
            print("%s: %r" % (line.strip(), e), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""


def python(code, **more):
    done = subprocess.run([sys.executable, "-c", code], text=True, capture_output=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")), **more)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files():
    """Path of each module of the package that can be imported by itself -> its name."""
    found = {}
    for folder, _, names in os.walk(PACKAGE):
        for name in names:
            if name.endswith(".py") and name != "__main__.py":
                path = os.path.join(folder, name)
                module = os.path.relpath(path, os.path.dirname(PACKAGE))[:-3].replace(os.sep, ".")
                found[path] = module[:-len(".__init__")] if module.endswith(".__init__") else module
    return found


def tables():
    """Module -> (names under TYPE_CHECKING, names in its table of modules), of the modules that have a table."""
    found = {}
    for path, module in files().items():
        with open(path, encoding="utf-8") as file:
            tree = ast.parse(file.read())
        given = [node.value.args[1] for node in tree.body if isinstance(node, ast.Expr)
                 and isinstance(node.value, ast.Call) and ast.unparse(node.value.func) == "_on_demand.give"]
        if given and ast.literal_eval(given[0]):
            typed = {("." * node.level + (node.module or ""), alias.name) for part in tree.body
                     if isinstance(part, ast.If) for node in part.body for alias in node.names}
            table = {(where, name) for where, names in ast.literal_eval(given[0]).items() for name in names.split()}
            found[module] = typed, table
    return found


def test_an_import_reads_few_modules():
    read = python("import sys, numpy; before = set(sys.modules); import anabranch.fluid; "
                  "print(*sorted(set(sys.modules) - before))").split()
    assert "anabranch.fluid.framework.program" in read
    assert len(read) <= MOST, read
    others = [name for name in read if not name.startswith("anabranch") and name not in ("__future__", "atexit")]
    assert not others, "modules of Python that NumPy does not import cost up to 15 ms each"


@pytest.mark.parametrize("name", ["anabranch", "anabranch.fluid", "anabranch.fluid.layers"])
def test_a_table_says_what_type_checkers_read(name):
    typed, table = tables()[name]
    rooms = {(where, one) for where, one in typed if where == "."}
    assert typed - rooms == table, "the imports under TYPE_CHECKING and the table differ"
    package = importlib.import_module(name)
    assert all(inspect.ismodule(getattr(package, one)) for _, one in rooms)


def test_every_table_says_what_type_checkers_read():
    found = tables()
    assert len(found) > 25
    assert not [module for module, (typed, table) in found.items() if {row for row in typed if row[0] != "."} != table]


def test_any_module_can_be_the_first():
    modules = sorted(name for name in files().values() if "._trials" not in name)
    assert len(modules) > 350
    modules = todays(modules, 8)
    said = python(FORKING, input="".join("import %s\n" % module for module in modules))
    optional = ("No module named 'ray'", "No module named 'aiohttp'", "No module named 'onnx'")
    assert not [line for line in said.splitlines() if not any(o in line for o in optional)]


def test_a_module_does_not_replace_the_function_of_its_name():
    """fluid.data, layers.rnn and anabranch.batch are functions, and modules have these names."""
    lines, known = [], set(files().values())
    for package in tables():
        module = importlib.import_module(package)
        for name in vars(module).get("__all__", ()):
            inner = "%s.%s" % (package, name)
            if inner in known and not inspect.ismodule(getattr(module, name)):
                lines.append("import %s, sys; assert callable(sys.modules[%r].%s)\n" % (inner, package, name))
                lines.append("import sys; from %s import %s; assert callable(%s)\n" % (package, name, name))
    assert sorted(line.split(",")[0] for line in lines[::2]) == [
        "import anabranch.batch", "import anabranch.fluid.data", "import anabranch.fluid.layers.rnn"]
    assert python(FORKING, input="".join(lines)) == ""


@pytest.mark.parametrize("package", [anabranch, fluid, fluid.layers, fluid.layers.nn, fluid.optimizer])
def test_tools_see_all_names(package):
    name = package.__name__
    assert set(package.__all__) <= set(dir(package))
    assert set(package.__all__) <= set(python("import %s as p; print(*dir(p))" % name).split())
    seen = python("from %s import *; print(*dir())" % name).split()
    assert {one for one in package.__all__ if not one.startswith("__")} <= set(seen)
    text = pydoc.plain(pydoc.render_doc(package))
    assert not [one for one in package.__all__ if one not in text and not one.startswith("_")]


def test_functions_are_pickled_by_name():
    for function in (fluid.layers.fc, fluid.layers.relu, fluid.nets.glu, fluid.data, fluid.gradients, fluid.Executor):
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301
    assert inspect.unwrap(fluid.layers.fc).__code__.co_filename.endswith("dense.py")


def test_a_layer_is_wrapped_in_its_own_module():
    """The last statement of a module of layers: see fluid/explained.py."""
    for name in fluid.layers.__all__:
        layer = getattr(fluid.layers, name)
        if inspect.isfunction(layer):
            assert hasattr(layer, "__wrapped__"), "%s calls no explain(globals())" % layer.__module__
            assert getattr(sys.modules[layer.__module__], name) is layer


@pytest.mark.parametrize("code, text", [
    ("fluid.Executer", "module 'anabranch.fluid' has no attribute 'Executer'; did you mean Executor, executor?"),
    ("fluid.layers.conv2", "module 'anabranch.fluid.layers' has no attribute 'conv2'; did you mean conv2d, conv3d"),
    ("fluid.optimizer.Adamm", "module 'anabranch.fluid.optimizer' has no attribute 'Adamm'; did you mean Adam"),
    ("fluid.io.load_param", "module 'anabranch.fluid.io' has no attribute 'load_param'; did you mean load_params"),
    ("anabranch.Lop", "module 'anabranch' has no attribute 'Lop'; did you mean Loop?")])
def test_a_name_that_is_not_there(code, text):
    with pytest.raises(AttributeError) as raised:
        eval(code)  # noqa: S307
    assert text in str(raised.value)


def test_names_of_scripts_are_complete_in_modules_that_are_read_later():
    said = python("import anabranch.legacy, sys; import paddle.fluid as fluid\n"
                  "assert 'anabranch.fluid.layers.nn' not in sys.modules\n"
                  "assert fluid.layers.nn.LayerHelper is fluid.layer_helper.LayerHelper\n"
                  "print(fluid.dygraph.Layer)")
    assert said.splitlines()[0] == "<fluid.dygraph.Layer, which is not available>"


@pytest.mark.parametrize("name", ["fluid.layers.rnn", "fluid.data", "batch"])
def test_a_script_that_imports_the_module_of_a_function_still_has_the_function(name):
    python("import anabranch.legacy, sys; import paddle.%s, paddle\n"
           "assert callable(paddle.%s) and sys.modules['paddle.%s'] is sys.modules['anabranch.%s']" % ((name,) * 4))


def test_the_product_is_listed():
    assert {"Checkpoints", "Loop", "Predictor", "warm_start"} <= set(anabranch.__all__)
    assert anabranch.Loop.__module__ == "anabranch.loops"


def test_errors_list_the_activations_that_layers_have():
    from anabranch.fluid.layer_helper import ACTIVATIONS
    from anabranch.fluid.layers import _generated_activations
    assert ACTIVATIONS == sorted({*_generated_activations.__all__, *fluid.layers.ops.__all__, "softmax", "swish"}
                                 - {"cumsum"})
