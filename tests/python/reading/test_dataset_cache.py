"""The cache of parsed files: the same batches, made again whenever it might not be."""
import os
import struct

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


def test_changes_that_renew_the_cache(tmp_path):
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
    write(tmp_path / "a", range(9, -1, -1))            # the same number of bytes
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
    for command in ("cat", "head -n 3000; sleep 100"):      # the second one is waited for when the pass ends
        stream = _cached(tmp_path, [path], thread=1, command=command)._batches()
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


def _fold(a, b):
    product = a * b
    return (product & (2 ** 64 - 1)) ^ (product >> 64)


def _checksum(data):
    odd, other = 0x9e3779b97f4a7c15, 0xe7037ed1a0b428db
    h = _fold(20201 ^ odd, ((len(data) + 1) & (2 ** 64 - 1)) ^ other)
    for i in range(0, len(data), 8):
        h = _fold(h ^ int.from_bytes(data[i:i + 8], "little") ^ odd, other)
    return _fold(h ^ odd, other)


HEAD_FORM = "<5Q4q"
HEAD = struct.calcsize(HEAD_FORM)


def _words(block, at, value):
    """The block with one of its 32-bit words changed, counted from the end of its head."""
    return block[:HEAD + 4 * at] + struct.pack("<I", value) + block[HEAD + 4 + 4 * at:]


def _head(block, **changed):
    names = ("words", "starts", "ins_ids", "contents", "bad", "lines", "skipped", "bytes", "missing")
    fields = dict(zip(names, struct.unpack(HEAD_FORM, block[:HEAD])), **changed)
    return struct.pack(HEAD_FORM, *(fields[n] for n in names)) + block[HEAD:]


def _bad_row(line=0, rows=0, column=1, slot=0, reason=0):
    return struct.pack("<qqqiiiiQ", line, rows, column, slot, reason, 0, 0, 3) + b"abc"


# A sample: two floats, one id (two words), a count, that many ids.
FORGED = {
    "a row far outside": lambda b, words: _words(b, words + 1, 0x40000000),
    "rows that run backwards": lambda b, words: _words(b, words + 1, 0),
    "a list of 2^28 ids": lambda b, words: _words(b, 4, 0x10000000),
    "a list that reads on": lambda b, words: _words(b, 4, 5000),
    "a list that is too short": lambda b, words: _words(b, 4, 0),
    "rows without words": lambda b, words: _head(b, words=0)[:HEAD] + b[HEAD + 4 * words:],
    "an unknown slot": lambda b, words: _head(b, bad=1) + _bad_row(slot=1000000),
    "an unknown reason": lambda b, words: _head(b, bad=1) + _bad_row(reason=99),
    "a bad row after the rows": lambda b, words: _head(b, bad=1) + _bad_row(rows=1 << 40),
    "skipped lines of no file": lambda b, words: _head(b, skipped=-1),
    "missing values of no rows": lambda b, words: _head(b, missing=-1),
    "a bad row of no line": lambda b, words: _head(b, bad=1) + _bad_row(line=-5),
    "bytes after it": lambda b, words: b + b"more",
    "names without rows": lambda b, words: _head(b, ins_ids=1) + struct.pack("<Q", 1) + b"x",
}


@pytest.mark.parametrize("what", sorted(FORGED))
@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
def test_forged_entries_are_refused(tmp_path, what, kind):
    """Right checksums prove nothing: anyone who can write to the folder can make them."""
    made = _cached(tmp_path, [write(tmp_path / "a", range(100))], kind)

    def read():
        getattr(made, "load_into_memory", lambda: None)()
        return numbers(made._batches())

    assert read() == list(range(100))
    entry, = (tmp_path / "cache").iterdir()
    good = entry.read_bytes()
    index_at, entries, key_bytes, _, magic = struct.unpack("<5Q", good[-40:])
    at, size, checksum = struct.unpack("<3Q", good[index_at:index_at + 24])
    block, key = good[at:at + size], good[index_at + 24:index_at + 24 + key_bytes]
    assert entries == 1 and _checksum(block) == checksum
    forged = FORGED[what](block, struct.unpack("<Q", block[:8])[0])
    end = struct.pack("<3Q", 8, len(forged), _checksum(forged)) + key
    tail = struct.pack("<5Q", 8 + len(forged), 1, key_bytes, _checksum(end), magic)
    entry.write_bytes(good[:8] + forged + end + tail)
    with pytest.raises(ValueError, match="cache"):
        read()
    entry.write_bytes(good)
    assert read() == list(range(100))
