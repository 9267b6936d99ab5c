"""load_persistables_for_increment: variables from one place, a table from another, all or nothing."""
import os

import numpy as np
import pytest
from delta_runs import Clicks

import anabranch.fluid as fluid
from anabranch.checkpoints import folders
from anabranch.fluid.contrib.utils.lookup_table_utils import load_persistables_for_increment as load


@pytest.fixture
def run(tmp_path):
    """(folder of checkpoints, the model after each step)."""
    clicks, states = Clicks(), []
    clicks.step(999, rows=1000, keys=10 ** 5)
    made = clicks.run(tmp_path / "run", every=10 ** 6, keep=9)
    for _ in made.epochs(1):
        for number in made.steps(range(3)):
            clicks.step(number)
            made.save()
            states.append(clicks.state())
    return str(tmp_path / "run"), states


def loaded(*args):
    clicks = Clicks()
    with fluid.scope_guard(clicks.scope):
        load(args[0], clicks.exe, clicks.main, *args[1:])
        return clicks.state()


def test_a_table_of_another_moment(run):
    folder, states = run
    state = loaded(folders.path(folder, 1), "clicks", folders.path(folder, 3) + "/values.clicks")
    assert state == dict(states[0], clicks=states[2]["clicks"])
    state = loaded(folder, "clicks", folders.path(folder, 2) + "/values.clicks")
    assert state == dict(states[2], clicks=states[1]["clicks"])


def test_files_of_save_persistables(run, tmp_path):
    clicks = Clicks()
    with fluid.scope_guard(clicks.scope):
        for number in (1, 2):
            clicks.step(number)
            fluid.io.save_persistables(clicks.exe, str(tmp_path / ("saved%d" % number)), clicks.main)
        table = clicks.main.global_block().var("clicks")
        after = clicks.state()
        load(str(tmp_path / "saved1"), clicks.exe, clicks.main, table, str(tmp_path / "saved2" / "clicks"))
        assert clicks.state()["clicks"] == after["clicks"] and clicks.state()["w"] != after["w"]
        load(str(tmp_path / "saved1"), clicks.exe, clicks.main, "w", str(tmp_path / "saved2" / "w"))
        assert clicks.state()["w"] == after["w"]


def test_nothing_changes_unless_all_can_be_read(run, tmp_path):
    folder, _ = run
    clicks = Clicks()
    before = clicks.state()
    with open(os.path.join(folders.path(folder, 2), "values.clicks.changes"), "r+b") as file:
        file.seek(400)
        file.write(b"damage")
    np.zeros(3, "float32").tofile(str(tmp_path / "w"))
    for args, message in (
            (("clicks", folders.path(folder, 3) + "/values.clicks"), "values.clicks.changes"),
            (("clicks", folders.path(folder, 9) + "/values.clicks"), "checkpoint-000009"),
            (("nothing", folder), "no persistable variable 'nothing'"),
            (("w", str(tmp_path / "w")), "variable w")):
        with fluid.scope_guard(clicks.scope), pytest.raises((ValueError, LookupError), match=message):
            load(folders.path(folder, 1), clicks.exe, clicks.main, *args)
    with pytest.raises(TypeError, match="program must be a Program"):
        load(folder, clicks.exe, "main", "clicks", folder)
    assert clicks.state() == before
