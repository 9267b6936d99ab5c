"""MultiSlot text: the parser agrees with the slow reference; what is wrong is said exactly; policies count exactly."""
import os
import sys

import pytest
from dataset_cases import dataset, numbers, write
from repository import ROOT

import anabranch.fluid as fluid

sys.path.insert(0, os.path.join(ROOT, "tools"))
import fuzz_multislot  # noqa: E402


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


SCHEMA = [("x", True, 2), ("label", False, 1), ("words", False, 0)]
LINES = [
    b"2 1 2 1 0 1 7",
    b"",
    b" ",
    b"\r",
    b"2",
    b"2 1",
    b"2 1 2",
    b"2 1 2 1 0 0",
    b"2 1 2 1 0 -1 7",
    b"2 1 2 1 0 2 7",
    b"2 1 2 1 0 1 7 8",
    b"2 1 2 1 0 1 7 ",
    b"2 1 2 1 0 1 7\t\r",
    b"2 1 2 1 0 1 7\r\r",
    b"  2\t1   2 1 0 1 7",
    b"3 1 2 3 1 0 1 7",
    b"2 1 x 1 0 1 7",
    b"2 1 2 1 1.5 1 7",
    b"2 1 2 1 0 1 7x",
    b"2 1 2 1 0 99999999999999999999 7",
    b"2 1 2 1 0 1 99999999999999999999",
    b"2 1e39 2 1 0 1 7",
    b"2 nan -inf 1 0 1 7",
    b"2 1 2 1 0 1 7\x00",
    b"\x00",
    b"2 1 2 1 0 1 \xff",
    b"+2 1 2 1 0 1 7",
    b"2 +1 -2 1 +0 1 -7",
    b"2 0x1p1 .5 1 0 1 7",
    b"2 1 2 1 0 3 1234567890123456 12345678901234567 18446744073709551615",
    b"2 0.1234567 123456.7 1 0 1 7",
    b"2 8388608.5 4194304.25 1 0 1 7",
    b"2 16777217 16777219 1 0 1 7",
]


@pytest.mark.parametrize("text", LINES, ids=range(len(LINES)))
def test_agrees_with_the_reference(text):
    for whole in (text, text + b"\n", LINES[0] + b"\n" + text + b"\n" + LINES[0]):
        assert fuzz_multislot.difference(SCHEMA, whole) is None
        assert fuzz_multislot.difference(SCHEMA, whole, drop_zeros=True) is None


@pytest.mark.parametrize("seed", range(8))
def test_fuzz(seed):
    lines, found = fuzz_multislot.fuzz(seed, 4000)
    assert lines and found is None, found


def test_message_names_file_line_column_and_slot(tmp_path):
    path = write(tmp_path / "part-0", range(10))
    with open(path, "a") as file:
        file.write("2 1 1.5 1 0 2 12 x3\n")
    for thread in (1, 4):
        for kind in ("QueueDataset", "InMemoryDataset"):
            with pytest.raises(ValueError) as caught:
                made = dataset(kind, [path], thread=thread)
                getattr(made, "load_into_memory", lambda: None)()
                list(made._batches())
            text = str(caught.value)
            assert "%s:11:18: slot words: a value is not an integer" % path in text
            assert "2 1 1.5 1 0 2 12 x3" in text and "skip" in text


def test_line_numbers_far_into_a_file(tmp_path):
    path = write(tmp_path / "part-0", range(40000))
    lines = open(path).read().split("\n")
    lines[33333] = "rubbish\x1b[31m"
    (tmp_path / "part-0").write_text("\n".join(lines))
    for ordered in (True, False):
        with pytest.raises(ValueError, match=r"part-0:33334:1: slot x: .*rubbish\\x1b\[31m"):
            list(dataset("QueueDataset", [path], thread=3)._batches(ordered))


def _spoiled(tmp_path, rows=9000, every=100):
    path = write(tmp_path / "spoiled", range(rows))
    lines = open(path).read().split("\n")
    bad = range(every - 1, rows, every)
    for n in bad:
        lines[n] = "bad line %d" % n
    (tmp_path / "spoiled").write_text("\n".join(lines))
    return path, [n for n in range(rows) if n not in bad], list(bad)


@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
@pytest.mark.parametrize("thread", (1, 5))
def test_skip_counts_exactly(tmp_path, kind, thread):
    path, good, bad = _spoiled(tmp_path)

    def read(limit):
        made = dataset(kind, [path, path], 64, thread)
        made.set_bad_rows("skip", limit)
        getattr(made, "load_into_memory", lambda: None)()
        statistics = made.statistics() if kind == "InMemoryDataset" else None
        got = numbers(made._batches())
        return got, statistics or made.statistics()

    got, statistics = read(None)
    assert got == good * 2
    assert statistics["bad_rows"] == 2 * len(bad)
    assert statistics["rows"] == 2 * len(good) and statistics["lines"] == 18000 and statistics["files"] == 2
    assert read(2 * len(bad))[0] == got
    with pytest.raises(ValueError, match="more than %d bad lines" % (2 * len(bad) - 1)):
        read(2 * len(bad) - 1)
    with pytest.raises(ValueError, match="spoiled:100:1: slot x"):
        read(0)


@pytest.mark.parametrize("thread", (1, 3))
def test_quarantine(tmp_path, thread):
    path, good, bad = _spoiled(tmp_path)
    refused = tmp_path / "refused"
    made = dataset("QueueDataset", [path], 64, thread)
    made.set_bad_rows("quarantine", file=str(refused))
    assert numbers(made._batches()) == good
    lines = refused.read_text().split("\n")
    assert lines[1:-1:2] == ["bad line %d" % n for n in bad]
    assert lines[0].startswith("# %s:100:1: slot x: " % path)
    made.set_bad_rows("quarantine", file=str(tmp_path / "no" / "folder"))
    with pytest.raises(RuntimeError, match="no/folder"):
        list(made._batches())


def test_batches_before_a_bad_line_are_given_out(tmp_path):
    path, good, bad = _spoiled(tmp_path, 40000, 30000)
    got = []
    for thread in (1, 4):
        made, before = dataset("QueueDataset", [path], 10, thread), []
        with pytest.raises(ValueError):
            for batch in made._batches():
                before += numbers([batch])
        assert before == good[:len(before)] and 20000 < len(before) < 30000
        got.append(before)
    assert got[0] == got[1]


def test_odd_files(tmp_path):
    good = "2 1 1.5 1 1 2 2 3"
    for text, rows in (("", 0), (good, 1), (good + "\n", 1), ((good + "\r\n") * 2, 2), ((good + "\n") * 3, 3)):
        (tmp_path / "a").write_bytes(text.encode())
        assert numbers(dataset("QueueDataset", [tmp_path / "a"])._batches()) == [1] * rows
    for text in ("\n", good + "\n\n", "\x00", good + "\n" + good[:-1], "\r\n"):
        (tmp_path / "a").write_bytes(text.encode())
        with pytest.raises(ValueError, match="a:[12]:"):
            list(dataset("QueueDataset", [tmp_path / "a"])._batches())


def test_a_line_longer_than_allowed(tmp_path):
    good = "2 1 1.5 1 1 2 2 3\n"
    with open(tmp_path / "a", "w") as file:
        file.write(good)
        for _ in range(40):
            file.write("7 " * 500000)                  # 40 MB, above the limit of 16 MiB
        file.write("\n" + good * 30000)                # more than what is read at once
    made = dataset("QueueDataset", [tmp_path / "a"])
    with pytest.raises(ValueError, match="a:2:1: the line is too long"):
        list(made._batches())
    made.set_bad_rows("skip")
    assert numbers(made._batches()) == [1] * 30001
    assert made.statistics()["bad_rows"] == 1


def test_the_longest_line_there_may_be(tmp_path):
    good, limit = "2 1 1.5 1 1 2 2 3\n", 16 << 20
    for before in (0, 1, 20000):                       # wherever chunks of the file start
        for length in (limit - 1, limit, limit + 1):
            with open(tmp_path / "a", "w") as file:
                file.write(good * before + ("7 " * (limit // 2 + 1))[:length] + "\n" + good)
            made = dataset("QueueDataset", [tmp_path / "a"])
            words = "1: the line is too long" if length > limit else "49: something follows the last slot"
            with pytest.raises(ValueError, match="a:%d:%s" % (before + 1, words)):
                list(made._batches())


def test_a_long_line_that_is_allowed(tmp_path):
    with open(tmp_path / "a", "w") as file:
        file.write("2 1 1.5 1 1 1000000" + " 7" * 1000000 + "\n")
    batch, = dataset("QueueDataset", [tmp_path / "a"])._batches()
    assert batch["words"].lod() == [[0, 1000000]]


def test_an_unfinished_pass_ends_its_threads(tmp_path):
    path = write(tmp_path / "a", range(60000))
    before = len(os.listdir("/proc/self/task"))   # other tests have left pools of workers
    for _ in range(30):
        stream = dataset("QueueDataset", [path] * 4, thread=4)._batches()
        next(stream)
        stream.close()
    assert len(os.listdir("/proc/self/task")) < before + 16


def test_slots_that_are_too_many(tmp_path):
    (tmp_path / "a").write_text(" ".join(["1 5"] * 500) + "\n")
    many = [fluid.data("s%d" % i, [None, 1], "int64", lod_level=i % 2) for i in range(500)]
    batch, = dataset("QueueDataset", [tmp_path / "a"], use_vars=many)._batches()
    assert len(batch) == 500
