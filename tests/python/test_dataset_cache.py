"""The cache of parsed files: the same batches, made anew whenever it might not be."""
import os

import numpy as np
import pytest
from dataset_cases import dataset, numbers, write

import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def _cached(tmp_path, files, kind="QueueDataset", thread=2, command="cat", **settings):
    made = dataset(kind, files, 100, thread, **settings)
    made.set_cache(str(tmp_path / "cache"))
    made.set_pipe_command(command)
    return made


def _entries(tmp_path):
    return {name: os.stat(tmp_path / "cache" / name).st_mtime_ns for name in os.listdir(tmp_path / "cache")}


@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
@pytest.mark.parametrize("ordered", (True, False))
def test_the_second_pass_reads_the_cache(tmp_path, kind, ordered):
    files = [write(tmp_path / "a", range(30000)), write(tmp_path / "b", range(30000, 50000))]
    made = _cached(tmp_path, files, kind)

    def read():
        getattr(made, "load_into_memory", lambda: None)()
        statistics = made.statistics() if kind == "InMemoryDataset" else None
        got = numbers(made._batches(ordered))
        return got if ordered else sorted(got), statistics or made.statistics()

    got, first = read()
    assert got == list(range(50000))
    before = _entries(tmp_path)
    assert len(before) == 2
    got, second = read()
    assert got == list(range(50000)) and _entries(tmp_path) == before
    assert {k: first[k] for k in ("lines", "rows", "bytes", "files")} == \
        {k: second[k] for k in ("lines", "rows", "bytes", "files")}


def test_what_makes_it_anew(tmp_path):
    path = write(tmp_path / "a", range(100))
    assert len(numbers(_cached(tmp_path, [path])._batches())) == 100
    write(tmp_path / "a", range(200))                  # another text
    assert numbers(_cached(tmp_path, [path])._batches()) == list(range(200))
    assert len(_entries(tmp_path)) == 1
    assert numbers(_cached(tmp_path, [path], command="head -n 50")._batches()) == list(range(50))
    assert numbers(_cached(tmp_path, [path], command="head -n 50")._batches()) == list(range(50))
    with pytest.raises(ValueError):                    # other slots
        list(_cached(tmp_path, [path], use_vars=[fluid.data("z", [None, 3])])._batches())
    assert numbers(_cached(tmp_path, [path])._batches()) == list(range(200))


def test_times_of_change_count(tmp_path):
    path = write(tmp_path / "a", range(10))
    assert numbers(_cached(tmp_path, [path])._batches()) == list(range(10))
    stamp = os.stat(path)
    write(tmp_path / "a", range(9, -1, -1))            # as many bytes
    assert os.stat(path).st_size == stamp.st_size
    assert numbers(_cached(tmp_path, [path])._batches()) == list(range(9, -1, -1))


def test_bad_rows_come_from_the_cache_too(tmp_path):
    path = write(tmp_path / "a", range(20000))
    with open(path, "a") as file:
        file.write("bad\n" + "2 5 5.5 1 1 3 6 7 8\n")
    texts = []
    for _ in range(2):
        with pytest.raises(ValueError) as caught:
            numbers(_cached(tmp_path, [path])._batches())
        texts.append(str(caught.value))
        made = _cached(tmp_path, [path])
        made.set_bad_rows("skip", 1)
        assert len(numbers(made._batches())) == 20001 and made.statistics()["bad_rows"] == 1
    assert texts[0] == texts[1] and "a:20001:1" in texts[0]


def test_an_unfinished_pass_leaves_nothing(tmp_path):
    path = write(tmp_path / "a", range(200000))
    stream = _cached(tmp_path, [path], thread=1)._batches()
    next(stream)
    stream.close()
    assert not os.listdir(tmp_path / "cache")
    with pytest.raises(fluid.core.EnforceNotMet):
        numbers(_cached(tmp_path, [path], command="cat; exit 3")._batches())
    assert not os.listdir(tmp_path / "cache")


def test_damage_is_found(tmp_path):
    path = write(tmp_path / "a", range(3000))
    good = numbers(_cached(tmp_path, [path])._batches())
    name, = _entries(tmp_path)
    entry = tmp_path / "cache" / name
    whole = entry.read_bytes()
    rng = np.random.RandomState(1)
    for at in list(rng.randint(0, len(whole), 60)) + list(range(len(whole) - 40, len(whole))):
        broken = bytearray(whole)
        broken[at] ^= 1 << rng.randint(8)
        entry.write_bytes(bytes(broken))
        try:
            assert numbers(_cached(tmp_path, [path])._batches()) == good         # not used, or not harmed: the magic
        except ValueError as error:
            assert "cache is damaged" in str(error)
    for size in (0, 7, 100, len(whole) - 1):
        entry.write_bytes(whole[:size])
        assert numbers(_cached(tmp_path, [path])._batches()) == good


def test_instance_ids_are_kept(tmp_path):
    (tmp_path / "a").write_text("1 u1 2 1 1.5 1 1 1 7\n1 u1 2 3 3.5 1 1 1 17\n")
    for _ in range(2):
        made = _cached(tmp_path, [tmp_path / "a"], "InMemoryDataset")
        made.set_merge_by_lineid(2)
        made.load_into_memory()
        made.global_shuffle()
        batch, = made._batches()
        assert np.array(batch["words"]).ravel().tolist() == [7, 17]


def test_a_missing_text(tmp_path):
    with pytest.raises(LookupError, match="nowhere does not exist"):
        list(_cached(tmp_path, [tmp_path / "nowhere"])._batches())
