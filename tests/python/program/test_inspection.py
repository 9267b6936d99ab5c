"""``anabranch explain``, ``draw``, ``profile`` and ``tune``: their output for scripts and for saved models."""
import os
import re
import subprocess
import sys

import numpy
import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch.tuning import batches, table, trials

DENSE = """
import sys
import numpy
import anabranch.fluid as fluid
x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1, param_attr="w"), y))
test_program = fluid.default_main_program().clone(for_test=True)
fluid.optimizer.SGD(0.01).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
program = fluid.default_main_program()
if "parallel" in sys.argv:
    program = fluid.CompiledProgram(program).with_data_parallel(loss_name=loss.name, places=fluid.cpu_places(2))
for step in range(int(sys.argv[1])):
    rows = numpy.full((6, 8), 0.1, "float32")
    feed = {"x": rows, "y": rows[:, :1]}
    exe.run(test_program, feed=feed, fetch_list=[loss])
    exe.run(program, feed=feed, fetch_list=[loss])
print("made all steps")
"""
FILES = """
import anabranch.fluid as fluid
with open("part", "w") as part:
    part.write("1 0.5 1 1.0\\n1 1.0 1 2.0\\n" * 200)
x, y = fluid.data("x", [None, 1]), fluid.data("y", [None, 1])
loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(x, 1), y))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
dataset.set_use_var([x, y])
dataset.set_batch_size(2)
dataset.set_thread(1)
dataset.set_filelist(["part"])
exe.train_from_dataset(fluid.default_main_program(), dataset)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(DENSE)
    (tmp_path / "files.py").write_text(FILES)
    return tmp_path


def anabranch(*args, code=0):
    done = subprocess.run([sys.executable, "-m", "anabranch", *args], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout if code == 0 else done.stderr


def saved_model():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        x = fluid.data("x", [None, 4])
        y = fluid.layers.fc(x, 2, act="relu")
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        fluid.io.save_inference_model("model", ["x"], [y], exe)


def test_explain_a_script_ends_it_at_its_first_step():
    text = anabranch("explain", "train.py", "1000000", "parallel")
    assert "nodes on 2 replicas" in text and "fuse_optimizers" in text and "made all steps" not in text


def test_explain_and_draw_a_model():
    saved_model()
    explained = anabranch("explain", "model")
    assert "fuse_fc" in explained and re.search(r"^  \d+ +fused_fc +mul, elementwise_add", explained, re.M), explained
    assert not re.search(r"\b1 (nodes|replicas|threads|changes|operators)\b", explained)
    assert anabranch("draw", "--out", "model.svg", "model") == "model.svg\n"
    with open("model.svg") as picture:
        assert ">relu<" in picture.read()
    assert "there is no model" in anabranch("draw", "nothing", code=1)
    assert "no arguments" in anabranch("explain", "model", "--out", code=2)


def test_draw_a_script_and_its_graph():
    anabranch("draw", "--out", "program.dot", "train.py", "3")
    anabranch("draw", "--graph", "--out", "graph.dot", "train.py", "3", "parallel")
    with open("program.dot") as program, open("graph.dot") as graph:
        program, graph = program.read(), graph.read()
    assert "sgd" in program and "all_reduce" not in program and "all_reduce" in graph


@pytest.mark.parametrize("script", ["train.py", "files.py"])
def test_profile_writes_a_page(script):
    said = anabranch("profile", "--warm", "2", "--steps", "3", script, "1000000")
    assert said.splitlines()[-1] == "3 steps measured; written: profile.html"
    lines = said.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("Event  "))
    table = lines[head + 1:lines.index("", head)]
    assert "Sorted by total time in descending order" in lines and max(map(len, lines)) <= 80
    assert 1 <= sum(not line.startswith("and ") for line in table) <= 10 and "fused_fc" in said
    with open("profile.html") as page:
        text = page.read()
    assert "sgd" in text and "<svg" in text and "http://" not in text.replace("http://www.w3.org/2000/svg", "")


def test_profile_of_a_script_that_ends_early():
    assert anabranch("profile", "--warm", "2", "train.py", "3").splitlines()[-1].startswith("1 step measured;")
    assert "ended after 2 steps" in anabranch("profile", "--warm", "2", "train.py", "2", code=1)


def test_scripts_that_do_not_train():
    assert "there is no script none.py" in anabranch("explain", "none.py", code=1)
    assert "without a training step" in anabranch("tune", "train.py", "0", code=1)


def test_a_script_that_fails_is_shown_as_it_fails(folder):
    (folder / "wrong.py").write_text("import nothing_of_that_name\n")
    assert "nothing_of_that_name" in anabranch("explain", "wrong.py", code=1)


def test_tune_a_script():
    text = anabranch("tune", "--batches", "2", "--rounds", "1", "--seconds", "0", "train.py", "100")
    assert text.startswith("2 batches of 6 rows") and "the script, batch * 4 *" in text and "1.00" in text
    assert "not tried" not in text and "bfloat16 *" in text


def test_tune_a_pass_over_files():
    text = anabranch("tune", "--batches", "1", "--rounds", "1", "files.py")
    assert "1, 1 (the script)" in text and "reader wait" in text


# ---- the parts

WATCHED = """
import anabranch.fluid as fluid
from anabranch.looking import scripts
made = []


def see(step):
    made.append((step.program, step.loss, sorted(step.feed), step.go()))
    return made[-1][-1]


def see_one(step):
    see(step)
    raise scripts.Enough
"""


def watched(text):
    """In a separate process: scripts that are run change theirs."""
    done = subprocess.run([sys.executable, "-c", WATCHED + text], capture_output=True, text=True, timeout=120,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")))
    assert done.returncode == 0, done.stdout + done.stderr


def test_steps_are_those_that_update():
    watched("""
assert scripts.watch("train.py", ["2"], see) is False
assert len(made) == 2 and made[0][1].startswith("mean_") and made[0][2] == ["x", "y"]
""")


def test_a_script_that_catches_everything_is_ended_all_the_same(folder):
    (folder / "stubborn.py").write_text(DENSE.replace("    exe.run(program, feed=feed, fetch_list=[loss])", """
    try:
        exe.run(program, feed=feed, fetch_list=[loss])
    except:
        pass
"""))
    watched("""
assert scripts.watch("stubborn.py", ["4"], see_one) is True and len(made) == 1
""")


def test_executors_are_as_before_after_an_error(folder):
    (folder / "fails.py").write_text("raise KeyError('of the script')\n")
    watched("""
before = fluid.Executor.run
try:
    scripts.watch("fails.py", [], see)
    raise AssertionError("no error")
except KeyError as error:
    assert "of the script" in str(error)
assert fluid.Executor.run is before
""")


def lod(values, lengths):
    return fluid.create_lod_tensor(numpy.array(values, "int64").reshape(-1, 1), lengths, fluid.CPUPlace())


def test_batches_with_sequences_are_joined():
    two = [{"w": lod([1, 2, 3], [[1, 2]]), "rate": numpy.ones(1)}, {"w": lod([4], [[1]]), "rate": numpy.zeros(1)}]
    made = batches.joined(two, ["w"])
    assert made["w"].recursive_sequence_lengths() == [[1, 2, 1]] and batches.rows_of(made, ["w"]) == 3
    assert numpy.array(made["w"]).ravel().tolist() == [1, 2, 3, 4] and made["rate"].tolist() == [1]
    assert batches.halves(made, ["w"]) is None


def test_batches_are_cut():
    feed = {"x": numpy.arange(5).reshape(5, 1)}
    assert [half["x"].ravel().tolist() for half in batches.halves(feed, ["x"])] == [[0, 1], [2, 3]]
    assert batches.halves({"x": numpy.ones((1, 1))}, ["x"]) is None
    assert batches.whole([feed, feed])["x"].shape == (10, 1)
    with pytest.raises(NotImplementedError, match="must have a feed"):
        batches.whole(None)


class Measured:
    def __init__(self, setting, rows_per_s):
        self.setting, self.rows_per_s, self.step_s, self.busy = setting, rows_per_s, [0.5], [1.0]


def test_advice_is_given_where_it_learns_the_same():
    own, faster = Measured(trials.Setting(-1), 100.0), Measured(trials.Setting(2, 2), 150.0)
    larger = Measured(trials.Setting(-1, 0, 4), 400.0)
    text = table.table([own, faster, larger], [(trials.Setting(4, 4), "no")], 32)
    assert "Fastest with the same training result: 2 replicas, 2 threads" in text and "fluid.cpu_places(2)" in text
    assert text.splitlines()[1].startswith("the script, batch * 4 *") and "not tried: 4 replicas, 4 threads: no" in text
    assert "as fast as any" in table.table([own, larger], [], 32)
    assert not any(setting.replicas > 1 for setting in trials.settings(1, False, True))
