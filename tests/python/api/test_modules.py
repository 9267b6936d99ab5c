"""Every module and listed name of Fluid that is here at all is found where Fluid has it, and none vanishes."""
import importlib
import json
import os
import shutil
import subprocess
import sys

import pytest
from repository import DATA, ROOT

import anabranch.fluid as fluid
from anabranch import _core

sys.path.insert(0, os.path.join(ROOT, "tools"))

import generate_modules  # noqa: E402

with open(os.path.join(DATA, "names_here.json")) as _file:
    NAMES = json.load(_file)


@pytest.mark.parametrize("tool", ["generate_layers.py", "generate_modules.py"])
def test_what_is_written_is_up_to_date(tool):
    command = [sys.executable, os.path.join(ROOT, "tools", tool), "--check"]
    done = subprocess.run(command, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def copy(tmp_path):
    """A copy of what the tools read and write; copy(...) runs a command there."""
    for folder in ("python", "tools"):
        shutil.copytree(os.path.join(ROOT, folder), tmp_path / folder, symlinks=True,
                        ignore=shutil.ignore_patterns("__pycache__", "mutants", "_core*"))
    (tmp_path / "python" / "anabranch" / os.path.basename(_core.__file__)).symlink_to(os.path.realpath(_core.__file__))
    for path in ("docs", "tests/data"):
        (tmp_path / path).mkdir(parents=True)

    def run(*command):
        done = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True,
                              env=dict(os.environ, PYTHONPATH="python"))
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.split()

    run.path = tmp_path
    return run


def test_a_row_of_the_table_becomes_a_layer(copy):
    table = copy.path / "tools" / "layer_table.py"
    table.write_text(table.read_text().replace('Layer("erf(x)"),', 'Layer("erf(x)"), Layer("l1_norm(x, name=None)"),'))
    assert [os.path.basename(path) for path in copy("tools/generate_layers.py")] == ["_generated_functions.py"]
    copy("tools/generate_modules.py")
    for tool in ("generate_layers.py", "generate_modules.py"):
        copy("tools/" + tool, "--check")
    copy("-c", "import anabranch.fluid as fluid; fluid.layers.l1_norm(fluid.data('x', [2, 3]))")


def test_a_layer_may_move_to_another_file(copy):
    layers = copy.path / "python" / "anabranch" / "fluid" / "layers"
    (layers / "pool.py").rename(layers / "pooling.py")
    copy("tools/generate_modules.py")
    copy("tools/generate_modules.py", "--check")
    copy("-c", "from anabranch.fluid.layers import nn, pooling; assert nn.pool2d is pooling.pool2d")


@pytest.mark.parametrize("module", sorted(NAMES))
def test_names_are_there(module):
    """data/names_here.json is the list of what this package once had: a name that vanishes fails."""
    found = importlib.import_module(module)
    assert [name for name in NAMES[module] if not hasattr(found, name)] == []


@pytest.mark.parametrize("module", sorted(generate_modules.table()))
def test_a_name_is_where_fluid_has_it(module):
    for name in generate_modules.table()[module]:
        expected = generate_modules.find(module, name)
        if expected is not None:
            assert getattr(importlib.import_module(generate_modules.here(module)), name) is expected


def test_new_names_are_kept():
    """New names are added to the list: tools/generate_modules.py does it."""
    assert generate_modules.names_here() == NAMES


def _promised(text):
    """The dtypes that the first argument of a docstring promises."""
    argument = text[text.index("Args:"):].split("\n")[1]
    return {word.strip(".,;()") for word in argument.split()} & {
        "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"}


@pytest.mark.parametrize("layer", fluid.layers.__all__)
def test_no_dtype_is_promised_without_a_kernel(layer):
    text = getattr(fluid.layers, layer).__doc__
    ops = _ops_of(layer)
    if "Args:" not in text or not ops:
        return
    kernels = [set(_core.op_info(op)["dtypes"]) for op in ops]
    # an op without kernels for its dtypes takes any
    assert not all(kernels) or _promised(text) <= set().union(*kernels)


#: Layers whose operator has another name.
OPS = {"where": ["where_index"], "fc": ["mul"], "topk": ["top_k"], "accuracy": ["top_k"], "log_softmax": ["softmax"],
       "dynamic_lstm": ["lstm"], "dynamic_gru": ["gru"], "hsigmoid": ["hierarchical_sigmoid"], "sums": ["sum"],
       "smooth_l1": ["smooth_l1_loss"], "has_inf": ["isinf"], "has_nan": ["isnan"]}


def _ops_of(layer):
    """Operators that may stand for a layer."""
    return OPS.get(layer) or [op for op in (layer, layer + "2", layer + "_v2") if op in _core.op_types()]


def test_programs_reach_modules_without_an_import():
    """As ``fluid.layers.nn``: Fluid's packages import their modules."""
    code = "\n".join(["import anabranch, anabranch.fluid",
                      *sorted(set(NAMES) - {"anabranch.fluid.layers.rnn"})])       # a function in Fluid
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert "anabranch.fluid.layers.nn" in code and done.returncode == 0, done.stderr
