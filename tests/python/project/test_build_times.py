"""Build times: the launcher that records them, the tables made of its rows, and the bounds that CI checks."""
import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools"))
import build_times  # noqa: E402

UNIT = ("1.0\t2.0\t100\t%s\t/x/build/release/CMakeFiles/ab_ops_cold.dir/Unity/unity_3_cxx.cxx\t"
        "CMakeFiles/ab_ops_cold.dir/u.o\n")


def row(cpu, verdict="compiled", source="src/exec/plan.cc", target="ab_exec"):
    return build_times.Row(cpu, cpu, 100, verdict, "../../" + source, "CMakeFiles/%s.dir/%s.o" % (target, source))


# ---- the launcher


@pytest.fixture(scope="module")
def launcher(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    program = str(tmp_path_factory.mktemp("launcher") / "compile_timer")
    subprocess.run([compiler, "-o", program, os.path.join(ROOT, "cmake", "compile_timer.c")], check=True)
    return program


def launch(launcher, folder, script, *words, name="compiler"):
    fake = folder / name
    fake.write_text("#!/bin/sh\n" + script)
    fake.chmod(0o755)
    done = subprocess.run([launcher, "table.tsv", "/a/tree", str(fake), *words], cwd=str(folder), timeout=60)
    return done.returncode, build_times.read(str(folder / "table.tsv"))


def test_a_compile_becomes_a_row(launcher, tmp_path):
    burn = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; test \"$1\" = -O2\n"
    status, rows = launch(launcher, tmp_path, burn, "-O2", "-o", "a.o", "-c", "a.cc")
    assert status == 0 and len(rows) == 1
    found, = rows
    assert (found.verdict, found.source, found.object) == ("compiled", "a.cc", "a.o")
    assert 0.01 < found.cpu and found.megabytes >= 1


@pytest.mark.parametrize("script, expected", [("exit 7", 7), ("kill -9 $$", 137)])
def test_a_failure_is_passed_on_and_leaves_no_row(launcher, tmp_path, script, expected):
    assert launch(launcher, tmp_path, script, "-o", "a.o", "-c", "a.cc") == (expected, [])


@pytest.mark.parametrize("said, verdict", [("direct_cache_hit", "cached"), ("preprocessed_cache_hit", "preprocessed"),
                                           ("cache_miss", "compiled")])
def test_ccache_is_set_up_and_its_verdict_kept(launcher, tmp_path, said, verdict):
    script = "echo %s >>$CCACHE_STATSLOG; echo $CCACHE_BASEDIR $CCACHE_DEPEND >seen" % said
    status, rows = launch(launcher, tmp_path, script, "-o", "a.o", "-c", "a.cc", name="ccache")
    assert status == 0 and [found.verdict for found in rows] == [verdict]
    assert (tmp_path / "seen").read_text() == "/a/tree 1\n"


def test_a_precompiled_header_gets_a_checksum(launcher, tmp_path):
    sums = []
    for content in ("one", "one", "two"):
        assert launch(launcher, tmp_path, "echo %s >pch.gch" % content, "-o", "pch.gch", "-c", "pch.cc")[0] == 0
        sums.append((tmp_path / "pch.gch.sum").read_text())
    assert sums[0] == sums[1] != sums[2]


# ---- tables


@pytest.mark.parametrize("found, name, folder", [
    (row(1.0), "src/exec/plan.cc", "src/exec"),
    (row(1.0, source="tests/cpp/sim/files.cc", target="anabranch_tests"), "tests/cpp/sim/files.cc", "tests/cpp"),
    (build_times.Row(1.0, 1.0, 1, "compiled", "/b/CMakeFiles/ab_ops_cold.dir/Unity/unity_1_cxx.cxx",
                     "CMakeFiles/ab_ops_cold.dir/Unity/unity_1_cxx.cxx.o"), "src/ops, cold, unit 1", "src/ops"),
    (row(1.0, source="build/release/CMakeFiles/ab_base.dir/cmake_pch.hxx.cxx", target="ab_base"),
     "precompiled headers, ab_base", "precompiled headers"),
    (row(1.0, source="python3.11/site-packages/nanobind/src/nb_func.cpp", target="nanobind-static"),
     "nanobind/src/nb_func.cpp", "generated and nanobind")])
def test_names_and_folders(found, name, folder):
    assert (build_times.name_of(found), build_times.folder_of(found)) == (name, folder)


def test_a_result_from_ccache_does_not_hide_what_compiling_cost(tmp_path):
    (tmp_path / "CMakeFiles" / "ab_ops_cold.dir").mkdir(parents=True)
    (tmp_path / "CMakeFiles" / "ab_ops_cold.dir" / "u.o").write_text("")
    raw = tmp_path / "compile-times.tsv"
    raw.write_text(UNIT % "compiled" + UNIT.replace("1.0", "0.1", 1) % "cached" + "a broken row\n")
    rows = build_times.read(str(raw))
    assert [found.cpu for found in rows] == [1.0, 0.1]
    assert [found.cpu for found in build_times.latest(rows, str(tmp_path)).values()] == [1.0]
    assert not build_times.latest(rows, str(tmp_path / "elsewhere")), "the object is gone, so its row is old"


def test_the_summary_counts_this_build_only(tmp_path):
    raw = tmp_path / "compile-times.tsv"
    raw.write_text(UNIT % "compiled")
    offset = raw.stat().st_size
    assert build_times.summary(str(raw), offset, 3, True) == ""
    with raw.open("a") as file:
        file.write(UNIT.replace("1.0", "7.0", 1) % "compiled" + UNIT.replace("1.0", "0.0", 1) % "cached")
    assert build_times.summary(str(raw), offset, 65, True) == \
        "Compiled 2 files (1 from ccache) in 1:05, 7 CPU seconds"
    assert "      7.0  src/ops\n" in build_times.summary(str(raw), offset, 65, False)


# ---- bounds

TABLE = {"probe": 1.0, "total": 20.0, "src/exec": 20.0}


@pytest.mark.parametrize("seconds, scale, count", [
    ([17.9], 1.0, 0), ([18.1], 1.0, 1), ([7.0, 7.0, 7.0], 1.0, 0), ([7.5, 7.5, 7.5], 1.0, 2),
    ([35.0], 2.0, 0), ([10.0, 10.0], 0.5, 4)])
def test_bounds_follow_the_machine(seconds, scale, count):
    """A file should take 12 seconds and may, in one noisy measurement, take 18; all may take 10 % more than the table
    says, both on the table's machine."""
    rows = [row(cpu) for cpu in seconds]
    messages = build_times.judge(rows, TABLE, scale)
    grown = [text for text in messages if text.startswith("the sum")]
    too_long = [text for text in messages if "plan.cc" in text]
    assert len(grown) == (sum(seconds) > 22.0 * scale) and len(too_long) == sum(cpu > 18 * scale for cpu in seconds)
    assert bool(messages) == bool(count)


def checked(tmp_path, monkeypatch, capsys, rows):
    """(exit status, text) of a check against a table of 20 seconds, on a machine like the table's."""
    table, raw = tmp_path / "table.tsv", tmp_path / "compile-times.tsv"
    table.write_text("# comment\n" + "".join("%s\t%s\n" % pair for pair in TABLE.items()))
    raw.write_text("".join("\t".join(map(str, found)) + "\n" for found in rows))
    for found in rows:
        path = tmp_path / found.object
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    monkeypatch.setattr(build_times, "probe", lambda jobs: 1.0)
    return build_times.check(str(raw), str(table), 2), capsys.readouterr().out


def test_a_check_that_passes_and_one_that_fails(tmp_path, monkeypatch, capsys):
    files = ["src/exec/a%d.cc" % i for i in range(4)]
    assert checked(tmp_path, monkeypatch, capsys, [row(5.0, source=f) for f in files])[0] == 0
    status, text = checked(tmp_path, monkeypatch, capsys, [row(6.0, source=f) for f in files])
    assert status == 1 and "the sum grew to 24" in text and "src/exec: 24.0, in the table 20.0" in text


def test_files_from_ccache_are_not_judged(tmp_path, monkeypatch, capsys):
    rows = [row(11.0, source="src/exec/a.cc"), row(13.5, source="src/exec/b.cc"),
            row(0.1, "cached", "src/exec/c.cc")]
    status, text = checked(tmp_path, monkeypatch, capsys, rows)
    assert status == 0 and "1 of 3 files came from ccache: the sum is not judged" in text
    assert "src/exec/b.cc took 13.5; files should stay below 12.0" in text
    status, text = checked(tmp_path, monkeypatch, capsys, [row(19.0)] + rows)
    assert status == 1 and "src/exec/plan.cc: 19.0" in text


def test_a_table_that_is_missing_fails_the_check(tmp_path, capsys):
    assert build_times.check(str(tmp_path / "raw.tsv"), str(tmp_path / "none.tsv"), 1) == 1
    assert "--record-times" in capsys.readouterr().out


def test_a_recorded_table_passes_its_own_check(tmp_path, monkeypatch, capsys):
    table = str(tmp_path / "table.tsv")
    rows = [row(5.0, source="src/exec/a%d.cc" % i) for i in range(3)]
    assert checked(tmp_path, monkeypatch, capsys, rows)[0] == 0
    build_times.record(str(tmp_path / "compile-times.tsv"), table, 2)
    assert build_times.read_table(table) == {"probe": 1.0, "total": 15.0, "src/exec": 15.0}
    checked(tmp_path, monkeypatch, capsys, [row(5.0, "cached")])
    with pytest.raises(SystemExit, match="1 files came from ccache"):
        build_times.record(str(tmp_path / "compile-times.tsv"), table, 2)


def test_the_committed_table_has_what_a_check_needs():
    path = os.path.join(ROOT, "tools", "build_times.tsv")
    if not os.path.exists(path):
        pytest.skip("./dev build --record-times has not been run")
    table = build_times.read_table(path)
    folders = {name: cpu for name, cpu in table.items() if name not in ("probe", "total")}
    assert table["probe"] > 0 and abs(sum(folders.values()) - table["total"]) < 1 and folders["src/ops"] > 0


def test_the_probe_compiles_and_costs_time():
    if shutil.which("c++") is None:
        pytest.skip("there is no compiler")
    assert build_times.probe(1, rounds=1) > 0.1
