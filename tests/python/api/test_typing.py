"""A user's program passes mypy --strict, and an editor completes what it reaches: layers, arguments, methods."""
import inspect
import os
import re
import subprocess
import sys

import jedi
import pytest
from shares import todays

import anabranch
import anabranch.fluid as fluid

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAMS = sorted(name for name in os.listdir(os.path.join(HERE, "typed")) if name.endswith(".py"))
PACKAGE = os.path.dirname(os.path.dirname(anabranch.__file__))

#: Installed packages are followed in silence; ours is not installed here.
CONFIG = "[mypy]\nstrict = True\nfollow_imports = silent\nfollow_imports_for_stubs = True\n"


WRONG = """import anabranch.fluid as fluid
x = fluid.data('x', [None, 4], 'float32')
fluid.layers.fc(x, size='10')
fluid.layers.leaky_relu(x, slope=0.1)
fluid.layers.no_such_layer(x)
x.no_such_method()
reveal_type(fluid.layers.relu(x) + 1)
"""


@pytest.mark.slow(8)
def test_mypy_accepts_the_programs_and_finds_what_is_wrong(tmp_path):
    """One run for all of them: mypy reads the package once."""
    wrong, config = tmp_path / "wrong.py", tmp_path / "mypy.ini"
    wrong.write_text(WRONG)
    config.write_text(CONFIG)
    programs = [os.path.join(HERE, "typed", name) for name in PROGRAMS]
    command = [sys.executable, "-m", "mypy", "--config-file", str(config), "--cache-dir", str(tmp_path), str(wrong)]
    done = subprocess.run(command + programs, env=dict(os.environ, MYPYPATH=PACKAGE), capture_output=True, text=True)
    found = [line for line in done.stdout.splitlines() if re.search(r": (error|note): ", line)]
    assert found and all("wrong.py:" in line for line in found), done.stdout + done.stderr
    assert re.search(r"\(checked %d source files\)" % (len(programs) + 1), done.stdout), done.stdout
    for expected in ('3: error: Argument "size" to "fc" has incompatible type "str"',
                     '4: error: Unexpected keyword argument "slope"',
                     '5: error: Module has no attribute "no_such_layer"',
                     '6: error: "Variable" has no attribute "no_such_method"',
                     '7: note: Revealed type is "anabranch.fluid.framework.variable.Variable"'):
        assert expected in done.stdout, done.stdout


@pytest.mark.parametrize("program", PROGRAMS)
def test_runs(program):
    done = subprocess.run([sys.executable, os.path.join(HERE, "typed", program)], capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE))
    assert done.returncode == 0, done.stderr


def _completions(code):
    project = jedi.Project(HERE, added_sys_path=[PACKAGE])
    script = jedi.Script("import anabranch.fluid as fluid\n" + code, project=project)
    return {c.name for c in script.complete()}


def test_layers_complete():
    assert set(fluid.layers.__all__) <= _completions("fluid.layers.")


def test_variables_complete():
    members = {name for name in dir(fluid.Variable) if not name.startswith("_")}
    for made in ("fluid.data('x', [4])", "fluid.layers.relu(fluid.data('x', [4]))", "fluid.layers.fc(None, 3)"):
        assert members <= _completions("x = %s\nx." % made), made


@pytest.mark.parametrize("layer", todays(fluid.layers.__all__, 4))
def test_arguments_complete(layer):
    function = getattr(fluid.layers, layer)
    if inspect.isclass(function):
        function = function.__init__
    required = [p.name for p in inspect.signature(function).parameters.values()
              if p.name != "self" and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    offered = _completions("fluid.layers.%s(" % layer)
    assert {name + "=" for name in required} <= offered
