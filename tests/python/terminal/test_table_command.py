"""`anabranch table`: tables of files, folders and running servers."""
import numpy as np
import pytest
from parameter_servers import Cluster
from table_rules import RULES, feed_of, held, local, network, saved

from anabranch.fluid.io.remote import pull_persistables
from anabranch.looking import table, table_data


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    local(RULES["lfu"], 1, path / "counted", steps=6)
    local(RULES["score"], 1, path / "scored", steps=6)
    (path / "other").write_bytes(b"nothing")
    return path


def test_stat_shows_sizes_rules_and_the_heaviest(folder, capsys):
    assert table.main(["stat", str(folder), "--top", "3"]) == 0
    said = capsys.readouterr().out
    assert "table counted" in said and "table scored" in said and "other" not in said
    assert "max_bytes=262144, evict=lfu" in said and "  updates   6" in said
    (one,) = table_data.read(str(folder), "counted")
    assert len(one.keys) == one.header["rows"] and one.ages.min() == 1 and one.ages.max() <= 6
    heaviest = int(np.argmax(one.counts))
    assert "heaviest  %d: %d" % (one.keys[heaviest], one.counts[heaviest]) in said
    ids = np.concatenate([np.array(feed_of(step)["ids"]).ravel() for step in range(6)])
    assert one.counts[heaviest] == (ids == one.keys[heaviest]).sum()
    (scored,) = table_data.read(str(folder / "scored"))
    assert table.weights(scored)[0] == "shows" and (scored.rows[:, 1] <= scored.rows[:, 0]).all()


def test_dump_writes_arrays_or_text(folder, tmp_path, capsys):
    (one,) = table_data.read(str(folder / "counted"))
    assert table.main(["dump", str(folder / "counted"), "--out", str(tmp_path / "t.npz")]) == 0
    arrays = np.load(tmp_path / "t.npz")
    assert np.array_equal(arrays["rows"], one.rows) and np.array_equal(arrays["keys"], one.keys)
    assert arrays["moments"].shape == one.rows.shape and len(arrays["counts"]) == len(one.keys)
    assert table.main(["dump", str(folder / "counted")]) == 0
    lines = capsys.readouterr().out.splitlines()
    key, age, numbers = lines[0].split("\t")
    assert len(lines) == len(one.keys) and (int(key), int(age)) == (one.keys[0], one.ages[0])
    assert np.array_equal(np.array(numbers.split(), "float32"), one.rows[0])


def test_diff_says_what_differs(folder, tmp_path, capsys):
    local(RULES["lfu"], 1, tmp_path / "later", steps=8)
    assert table.main(["diff", str(folder / "counted"), str(folder / "counted")]) == 0
    assert "rows that differ: 0" in capsys.readouterr().out
    assert table.main(["diff", str(folder / "counted"), str(tmp_path / "later")]) == 1
    before, after = (set(table_data.read(str(path))[0].keys.tolist())
                     for path in (folder / "counted", tmp_path / "later"))
    assert "only in the first: %d, only in the second: %d, in both: %d\n" % (
        len(before - after), len(after - before), len(before & after)) in capsys.readouterr().out
    assert table.main(["diff", str(folder), str(tmp_path / "later"), "--name", "scored"]) == 1


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:50], lambda b: b[:-1], lambda b: b"x" + b[1:],
                                    lambda b: b[:8] + bytes(8) + b[16:]])
def test_damaged_files_are_refused(folder, tmp_path, capsys, damage):
    path = tmp_path / "bad"
    path.write_bytes(damage((folder / "counted").read_bytes()))
    assert table.main(["stat", str(path)]) == 1
    assert "bad is" in capsys.readouterr().err


def test_a_running_server_is_read(monkeypatch, tmp_path):
    monkeypatch.setattr("parameter_servers.network", lambda *_: network(RULES["lfu"]))
    cluster, found = Cluster(1, 2, "adagrad", sparse=True), []

    def work(trainer, run):
        for step in range(6):
            run(feed_of(step))
        found.extend(one for endpoint in cluster.endpoints for one in table_data.read(endpoint, "table"))
        main = cluster.programs[0][0]
        pull_persistables(main, str(tmp_path), main._parameters_on_pservers.variables())

    cluster.run(work)
    assert [one.name for one in found] == ["table.block0", "table.block1"]
    (whole,) = table_data.read(str(tmp_path / "table"))
    keys = np.concatenate([one.keys for one in found])
    order = np.argsort(keys)
    assert np.array_equal(keys[order], whole.keys)
    assert np.array_equal(np.concatenate([one.rows for one in found])[order], whole.rows)
    assert all(one.found["created"] == len(one.keys) for one in found)
    assert "counts    created" in table.stat(found[0], 3)
    assert saved(cluster.server_scopes[0], tmp_path / "part", "table.block0")
    assert len(held(cluster.server_scopes[0], "table.block0").keys()) == len(found[0].keys)
