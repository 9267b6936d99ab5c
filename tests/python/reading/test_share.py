"""``set_share``: data sets that split the same files by the hash of their lines."""
import numpy as np
import pytest

import anabranch.fluid as fluid

FORMATS = {
    "columns": ("columns comma header\nx = x\ny = y", "x,y\n", "%d,%d\n", "1,2,3\n"),
    "libsvm": ("libsvm\ny = label\nx = index", "", "%d %d:1\n", "1 x\n"),
    "multi_slot": ("", "", "1 %d 1 %d\n", "1 x 1 1\n"),
}


@pytest.fixture(params=sorted(FORMATS))
def kind(request):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield request.param


def write(path, kind, rows, bad_every=0):
    _, head, line, bad = FORMATS[kind]
    with open(path, "w") as file:
        file.write(head)
        for i in range(rows):
            file.write(bad if bad_every and i % bad_every == 0 else line % (i, i))
    return str(path)


def dataset(kind, files, share=None, threads=1):
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    block = fluid.default_main_program().global_block()
    lod = 1 if kind == "libsvm" else 0
    made.set_use_var([block.var(name) if block.has_var(name) else fluid.data(
        name, [None, 1], "int64", lod_level=level) for name, level in (("x", lod), ("y", 0))])
    made.set_format(FORMATS[kind][0])
    made.set_filelist(files)
    made.set_batch_size(64)
    made.set_thread(threads)
    if share is not None:
        made.set_share(*share)
    return made


def rows(data):
    return [int(value) for batch in data._batches() for value in np.array(batch["y"]).reshape(-1)]


def test_shares_are_disjoint_and_complete(kind, tmp_path):
    path = write(tmp_path / "a", kind, 20000)
    parts = [rows(dataset(kind, [path], share, threads)) for share, threads in (((0, 0.7), 1), ((0.7, 0.9), 3),
                                                                               ((0.9, 1), 2))]
    assert sorted(sum(parts, [])) == list(range(20000))
    assert [len(part) / 20000 for part in parts] == pytest.approx([0.7, 0.2, 0.1], abs=0.015)
    assert all(part == sorted(part) for part in parts)     # in the order of the file
    assert rows(dataset(kind, [path], (0, 0.7, 1))) != parts[0]     # another seed
    assert rows(dataset(kind, [path], (0, 1))) == list(range(20000))


def test_the_split_does_not_depend_on_files(kind, tmp_path):
    whole = write(tmp_path / "a", kind, 300)
    text = open(whole).read().splitlines(keepends=True)
    head = text[:1] if FORMATS[kind][1] else []
    first, second = str(tmp_path / "b"), str(tmp_path / "c")
    open(first, "w").writelines(head + text[200:])
    open(second, "w").writelines([line.replace("\n", "\r\n") for line in head + text[len(head):200]])
    assert sorted(rows(dataset(kind, [first, second], (0.3, 0.6)))) == rows(dataset(kind, [whole], (0.3, 0.6)))


def test_malformed_lines_of_other_shares_are_not_counted(kind, tmp_path):
    path = write(tmp_path / "a", kind, 4000, bad_every=10)
    counts = []
    for share in ((0, 0.5), (0.5, 1)):
        data = dataset(kind, [path], share)
        data.set_bad_rows("quarantine", file=str(tmp_path / "bad"))
        good = rows(data)
        found = data.statistics()
        assert found["rows"] == len(good)
        assert found["lines"] == len(good) + found["bad_rows"] + (1 if FORMATS[kind][1] else 0)
        counts.append(found["bad_rows"])
        if found["bad_rows"]:   # positions are those in the file
            text = open(path).read().splitlines()
            said = open(tmp_path / "bad").read().splitlines()
            for where, line in zip(said[::2], said[1::2]):
                assert text[int(where.split(":")[1]) - 1] == line
    assert sorted(counts) == [0, 400]      # equal lines are together


def test_the_cache_keeps_shares_apart(kind, tmp_path):
    path = write(tmp_path / "a", kind, 2000)
    found = []
    for share in ((0, 0.5), (0.5, 1), (0, 0.5)):
        data = dataset(kind, [path], share)
        data.set_cache(str(tmp_path / "cache"))
        found.append(rows(data))
    assert found[0] == found[2] and sorted(found[0] + found[1]) == list(range(2000))


@pytest.mark.parametrize("share, error", [((0.5, 0.5), "below end"), ((-0.1, 1), "from 0 to 1"), ((0, 1.1), "from 0"),
                                          ((0, "1"), "end must be a number"), ((0, 1, -1), "seed must be at least 0")])
def test_mistakes(share, error):
    with pytest.raises((ValueError, TypeError), match=error):
        fluid.DatasetFactory().create_dataset().set_share(*share)
