"""Files of Hadoop, by a command that keeps them in a folder, and of this machine: both by the same calls."""
import os
import stat
import threading
import zipfile

import pytest

from anabranch.distributed.fs_wrapper import BDFS, LocalFS
from anabranch.fluid.contrib import HDFSClient, multi_download, multi_upload
from anabranch.fluid.incubate.fleet.utils import fleet_barrier_util
from anabranch.fluid.incubate.fleet.utils.hdfs import HDFSClient as FleetClient

#: ``hadoop fs``: paths hdfs:/x are files in the folder FAKE_ROOT.
HADOOP = r"""#!/bin/bash
shift
while [[ $1 == -D* ]]; do echo "$1" >>"$FAKE_ROOT.settings"; shift; done
for a in "$@"; do args+=("${a/#hdfs:/$FAKE_ROOT}"); done
set -- "${args[@]}"
list() {
  find "$1" -mindepth 1 $2 | sort | while read -r f; do
    [ -d "$f" ] && kind=drwxr-xr-x || kind=-rw-r--r--
    echo "$kind 1 me us 3 $(date -r "$f" '+%Y-%m-%d %H:%M') hdfs:${f#$FAKE_ROOT}"
  done
}
case $1 in
  -test) [ $2 "$3" ] ;;
  -ls) if [ "$2" = -R ]; then list "$3"; else echo "Found some items"; list "$2" "-maxdepth 1"; fi ;;
  -mkdir) mkdir -p "$3" ;;
  -rm) rm -r "$4" ;;
  -mv) mv "$2" "$3" ;;
  -put) [ -f "$FAKE_ROOT.down" ] && { echo "no name node" >&2; exit 255; }; cp -r "$2" "$3" ;;
  -get) cp -r "$2" "$3" ;;
  -cat) cat "$2" ;;
  *) exit 9 ;;
esac
"""


@pytest.fixture(params=["hadoop", "local"])
def kind(request, tmp_path, monkeypatch):
    """(HADOOP_HOME or None, first part of paths, folder where the files are)"""
    root = tmp_path / "root"
    root.mkdir()
    monkeypatch.chdir(tmp_path)
    if request.param == "local":
        return None, str(root), root
    hadoop_home = tmp_path / "hadoop_home"
    (hadoop_home / "bin").mkdir(parents=True)
    script = hadoop_home / "bin" / "hadoop"
    script.write_text(HADOOP)
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("FAKE_ROOT", str(root))
    return str(hadoop_home), "hdfs:", root


def client_of(kind, make=HDFSClient):
    return make(kind[0], {"fs.default.name": "hdfs://x", "hadoop.job.ugi": "a,b"})


def fill(root, *names):
    for i, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
        os.utime(path, (1e9 + 3600 * i, 1e9 + 3600 * i))


def test_questions(kind):
    client, (_, at, root) = client_of(kind), kind
    fill(root, "d/b", "d/a", "d/e/c")
    assert client.is_exist(at + "/d") and client.is_dir(at + "/d") and client.is_exist(at + "/d/a")
    assert not client.is_exist(at + "/x") and not client.is_dir(at + "/d/a") and client.ls(at + "/x") == []
    assert sorted(client.ls(at + "/d")) == [at + "/d/a", at + "/d/b", at + "/d/e"]
    assert client.lsr(at + "/d") == [at + "/d/b", at + "/d/a", at + "/d/e/c"]
    assert sorted(client.lsr(at + "/d", only_file=False, sort=False))[2] == at + "/d/e"
    if kind[0]:
        assert "-Dhadoop.job.ugi=a,b" in open(str(root) + ".settings").read()
        assert client.pre_commands[:2] == [kind[0] + "/bin/hadoop", "fs"]


def test_changes(kind, tmp_path):
    client, (_, at, root) = client_of(kind), kind
    fill(tmp_path, "here", "other")
    assert client.makedirs(at + "/a/b") and client.makedirs(at + "/a/b")
    assert client.upload(at + "/a/f", str(tmp_path / "here")) and (root / "a/f").read_text() == "here"
    assert client.upload(at + "/a/f", str(tmp_path / "other"), overwrite=True) and (root / "a/f").read_text() == "other"
    with pytest.raises(ValueError, match="nowhere"):
        client.upload(at + "/a/f", "nowhere")
    assert client.rename(at + "/a/f", at + "/a/g") and not client.rename(at + "/a/f", at + "/a/h")
    fill(root, "a/k")
    assert not client.rename(at + "/a/g", at + "/a/k")
    assert client.rename(at + "/a/g", at + "/a/k", overwrite=True) and (root / "a/k").read_text() == "other"
    assert client.download(at + "/a/k", str(tmp_path / "back")) and (tmp_path / "back").read_text() == "other"
    assert client.delete(at + "/a") and not client.is_exist(at + "/a") and client.delete(at + "/a")


def test_a_zip_file_is_unpacked(kind, tmp_path):
    _, at, root = kind
    with zipfile.ZipFile(str(root / "z.zip"), "w") as archive:
        archive.writestr("inner/f", "text")
    assert client_of(kind).download(at + "/z.zip", str(tmp_path / "z.zip"), unzip=True)
    assert (tmp_path / "inner" / "f").read_text() == "text"


def test_trainers_share_the_files(kind, tmp_path):
    client, (_, at, root) = client_of(kind), kind
    fill(root, *("data/%d/f%d" % (i % 2, i) for i in range(5)))
    got = [multi_download(client, at + "/data", str(tmp_path / ("t%d" % i)), i, 2) for i in range(2)]
    assert sorted(len(g) for g in got) == [2, 3]
    assert sorted(open(p).read() for g in got for p in g) == sorted("data/%d/f%d" % (i % 2, i) for i in range(5))
    with pytest.raises(ValueError):
        multi_download(client, at + "/data", "x", 2, 2)
    multi_upload(client, at + "/copy", str(tmp_path / "t0"))
    assert len(client.lsr(at + "/copy")) == 3


@pytest.mark.parametrize("kind", ["hadoop"], indirect=True)
def test_an_upload_that_fails_is_told(kind, tmp_path, monkeypatch):
    hadoop_home, at, root = kind
    monkeypatch.setattr("anabranch.fluid.file_systems._PAUSE_S", 0.0)
    fill(tmp_path, "root.down", "here")
    client = HDFSClient(hadoop_home, {})
    assert client.upload(at + "/f", str(tmp_path / "here"), retry_times=3) is False
    (tmp_path / "up").mkdir()
    fill(tmp_path, "up/f")
    with pytest.raises(RuntimeError, match="up/f"):
        multi_upload(client, at + "/g", str(tmp_path / "up"))


def test_a_command_that_is_not_there_is_named():
    with pytest.raises(RuntimeError, match="/nowhere/bin/hadoop"):
        HDFSClient("/nowhere", {}).is_exist("hdfs:/x")
    with pytest.raises(TypeError):
        HDFSClient(None, "settings")


def test_the_client_of_fleets(kind, tmp_path):
    client, (_, at, root) = client_of(kind, FleetClient), kind
    fill(root, "d/a", "d/b.tmp")
    assert client.is_file(at + "/d/a") and not client.is_file(at + "/d")
    assert client.cat(at + "/d/a") == "d/a" and client.cat(at + "/x") == ""
    assert client.lsr(at + "/d", excludes=[".tmp"]) == [at + "/d/a"]
    fill(tmp_path, "up/f")
    assert client.upload_dir(at + "/to", str(tmp_path / "up")) and (root / "to/up/f").read_text() == "up/f"
    assert not client.upload_dir(at + "/to", str(tmp_path / "up"))
    assert client.upload_dir(at + "/to", str(tmp_path / "up"), overwrite=True)
    assert FleetClient.split_files(list("abcde"), 1, 2) == ["d", "e"]
    with pytest.raises(ValueError):
        FleetClient.split_files([], 2, 2)


def test_file_systems_of_checkpoints(kind, tmp_path, monkeypatch):
    hadoop_home, at, root = kind
    if hadoop_home:
        monkeypatch.setenv("HADOOP_HOME", hadoop_home)
    fs = BDFS("hdfs://x", "a,b") if hadoop_home else LocalFS()
    assert fs.need_upload_download() is bool(hadoop_home)
    fs.mkdir(at + "/c/d")
    fill(tmp_path, "here")
    fs.upload(str(tmp_path / "here"), at + "/c/f")
    assert sorted(fs.ls_dir(at + "/c")) == ["d", "f"] and fs.list_dirs(at + "/c") == ["d"] and fs.stat(at + "/c/f")
    fs.mv(at + "/c/f", at + "/c/g")
    fs.download(at + "/c/g", str(tmp_path / "back"))
    fs.rmr(at + "/c")
    assert not fs.stat(at + "/c") and (tmp_path / "back").read_text() == "here"


def test_hadoop_must_be_named(monkeypatch):
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    with pytest.raises(ValueError, match="HADOOP_HOME"):
        BDFS("hdfs://x", "a,b")


def test_trainers_wait_for_each_other_by_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, value in {"PADDLE_TRAINERS_NUM": "2", "PADDLE_TRAINER_ID": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HADOOP_HOME", raising=False)
    monkeypatch.setenv("FLAGS_barrier_deadline_s", "0.3")
    with pytest.raises(RuntimeError, match="1 of 2 trainers have reached epoch 4"):
        fleet_barrier_util.check_all_trainers_ready(str(tmp_path / "ready"), 4)
    monkeypatch.setenv("FLAGS_barrier_deadline_s", "20")
    timer = threading.Timer(0.2, lambda: fill(tmp_path, "ready/5/ready.5.1.done"))
    timer.start()
    fleet_barrier_util.check_all_trainers_ready(str(tmp_path / "ready"), 5)
    timer.join()
