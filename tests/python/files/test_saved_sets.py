"""A save of several files is one thing: all of them are new, or all are the old ones, and nothing else lies about."""
import hashlib
import os
import resource
import shutil
import signal
import subprocess
import sys

import faults
import numpy as np
import pytest

import anabranch.fluid as fluid


class Net:
    """A net with a growable table, so that each kind of file is there."""

    def __init__(self):
        self.main, self.startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            x = fluid.data("x", [None, 64])
            ids = fluid.data("ids", [None, 1], "int64")
            rows = fluid.embedding(ids, [-1, 64], is_sparse=True, param_attr=fluid.GrowableTable("table"))
            rows = fluid.layers.reshape(rows, [-1, 64])
            self.y = fluid.layers.fc(fluid.layers.fc(x + rows, 256), 1)
            loss = fluid.layers.mean(self.y)
            fluid.optimizer.SGD(0.1).minimize(loss)
        self.exe = fluid.Executor()
        self.exe.run(self.startup)

    def step(self):
        feed = {"x": np.ones((3, 64), "float32"), "ids": np.arange(3).reshape(3, 1)}
        self.exe.run(self.main, feed=feed)


@pytest.fixture
def net():
    with fluid.scope_guard(fluid.Scope()):
        made = Net()
        made.step()
        yield made


def snap(folder):
    found = {}
    for name in sorted(os.listdir(folder)):
        if os.path.isfile(os.path.join(folder, name)):
            with open(os.path.join(folder, name), "rb") as f:
                found[name] = hashlib.sha256(f.read()).hexdigest()
    return found


SAVES = {
    "save": lambda net, folder: fluid.save(net.main, folder + "/net"),
    "persistables": lambda net, folder: fluid.io.save_persistables(net.exe, folder, net.main),
    "one file": lambda net, folder: fluid.io.save_persistables(net.exe, folder, net.main, filename="all"),
    "inference": lambda net, folder: fluid.io.save_inference_model(folder, ["x", "ids"], [net.y], net.exe, net.main),
}


@pytest.fixture(params=sorted(SAVES))
def saved(request, net, tmp_path):
    """(save, folder, what lies there); the values have changed since."""
    folder = str(tmp_path / "saved")
    SAVES[request.param](net, folder)
    before = snap(folder)
    assert len(before) > 1
    net.step()
    yield (lambda: SAVES[request.param](net, folder)), folder, before


def test_a_full_disk_changes_nothing(saved):
    save, folder, before = saved
    largest = max(os.path.getsize(os.path.join(folder, name)) for name in before)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest // 2, resource.RLIM_INFINITY))
    try:
        with pytest.raises(fluid.core.EnforceNotMet) as caught:
            save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    assert caught.value.kind == "ResourceExhausted" and "cannot write" in str(caught.value)
    assert snap(folder) == before
    save()
    after = snap(folder)
    assert sorted(after) == sorted(before) and after != before


def test_a_target_that_cannot_be_replaced_changes_nothing(saved):
    save, folder, before = saved
    last = sorted(before)[-1]
    os.remove(os.path.join(folder, last))
    os.mkdir(os.path.join(folder, last))
    with pytest.raises(fluid.core.EnforceNotMet, match="cannot replace"):
        save()
    assert snap(folder) == {name: value for name, value in before.items() if name != last}


FAULTY = """
import sys
sys.path.insert(0, %r)
import test_saved_sets as t, anabranch.fluid as fluid
net = t.Net()
net.step()
try:
    t.SAVES["save"](net, sys.argv[1])
    print("saved")
except fluid.core.EnforceNotMet as e:
    print(e.kind)
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")
@pytest.mark.parametrize("call", ["rename", "fsync"])
def test_an_error_of_the_disk_changes_nothing(net, tmp_path, call):
    library = faults.library(str(tmp_path))
    folder = str(tmp_path / "saved")
    SAVES["save"](net, folder)
    before = snap(folder)
    ends = []
    for at in range(1, 5):
        done = subprocess.run([sys.executable, "-c", FAULTY % os.path.dirname(__file__), folder],  # noqa: S603
                              capture_output=True, text=True, timeout=60, check=False,
                              env=faults.environment(library, call, at))
        ends.append(done.stdout.strip())
        assert ends[-1] == "Unavailable", (at, done.stderr)
        assert snap(folder) == before, at


@pytest.mark.parametrize("kills", [6])
def test_a_killed_save_leaves_no_litter_for_ever(net, tmp_path, kills):
    folder = str(tmp_path / "saved")
    loop = FAULTY.replace("try:", "print('ready', flush=True)\nwhile True:").split('    print("saved")')[0]
    for k in range(kills):
        child = subprocess.Popen([sys.executable, "-c", loop % os.path.dirname(__file__), folder],  # noqa: S603
                                 stdout=subprocess.PIPE, env=dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path)))
        child.stdout.readline()
        signal.sigtimedwait([], 0.05 + 0.004 * k)
        child.send_signal(signal.SIGKILL)
        child.communicate(timeout=30)
    SAVES["save"](net, folder)
    assert sorted(os.listdir(folder)) == ["net.pdmodel", "net.pdopt", "net.pdparams", "net.table.pdtable"]


def test_folders_that_cannot_be_written_are_named(net):
    with pytest.raises(fluid.core.EnforceNotMet, match="/proc/nowhere") as caught:
        fluid.save(net.main, "/proc/nowhere/net")
    assert caught.value.kind == "Unavailable"


def test_missing_files(net, tmp_path, monkeypatch):
    for missing in (lambda: fluid.load(net.main, str(tmp_path / "no"), net.exe),
                    lambda: fluid.io.load_program_state(str(tmp_path / "no")),
                    lambda: fluid.DataFeedDesc(str(tmp_path / "no"))):
        with pytest.raises(FileNotFoundError) as caught:
            missing()
        assert isinstance(caught.value, fluid.core.EnforceNotMet)
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5"})
    try:
        assert fluid.io.load_program_state(str(tmp_path / "no")) == {}
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})


def test_descriptions_of_feeds_are_text(tmp_path):
    (tmp_path / "feed").write_bytes(b'name: "\xff\xfe"')
    with pytest.raises(ValueError, match="UTF-8, byte 7") as caught:
        fluid.DataFeedDesc(str(tmp_path / "feed"))
    assert isinstance(caught.value, fluid.core.EnforceNotMet)
