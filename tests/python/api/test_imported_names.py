"""``anabranch run``: names that modules of Fluid 1.8.5 imported from others can be imported from there."""
import os
import subprocess
import sys

from repository import ROOT

SCRIPT = """
from paddle.fluid.layers.nn import LayerHelper, Variable, utils
from paddle.fluid.layers.tensor import LayerHelper as L2, convert_np_dtype_to_dtype_, check_dtype
from paddle.fluid.layers import LayerHelper as L3, unique_name
from paddle.fluid.optimizer import framework, Variable as V2, program_guard
from paddle.fluid.io import core, Program, Parameter, np, os
from paddle.fluid import core as c, fleet
from paddle.fluid.framework import core as c2
from paddle.dataset.common import paddle as top
import paddle.fluid.layers as layers
import paddle
print(layers.nn.LayerHelper is L2 is L3, c is c2 is core, layers.control_flow.Variable is V2, top is paddle)
import json
from anabranch._legacy import imported
import importlib
broken = []
for module, names in imported.table().items():
    for name in names:
        try:
            getattr(importlib.import_module(module.replace("anabranch", "paddle", 1)), name)
        except ImportError as e:  # an installed library
            broken += [(module, name)] if (e.name or "").startswith(("paddle", "anabranch")) else []
        except AttributeError:
            broken.append((module, name))
print(broken)
try:
    layers.nn.no_such
except AttributeError as e:
    print(e)
"""


def test_names_are_found_where_fluid_imported_them(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", "script.py"], cwd=tmp_path, env=environment,
                          text=True, capture_output=True, timeout=120)
    assert done.stdout.splitlines() == [
        "True True True True", "[]", "module 'anabranch.fluid.layers.nn' has no attribute 'no_such'"], done.stderr
