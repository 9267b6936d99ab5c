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


def of_user(path, share, form="columns comma header\nx = x\ny = y", threads=1):
    made = dataset("columns", [path], None, threads)
    made.set_format(form)
    made.set_share(*share[:2], column=share[2])
    return rows(made)


def users(path, header="user,x,y\n", user="u%d", every=7):
    with open(path, "w") as file:
        file.write(header + "".join((user + ",%d,%d\n") % (i % 700 // every * every, i, i) for i in range(7000)))
    return str(path)


@pytest.fixture
def programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def test_a_share_by_a_column_has_all_lines_of_its_texts(programs, tmp_path):
    path = users(tmp_path / "a")
    shares = [(0, 0.6, "user"), (0.6, 1, "user")]
    parts = [of_user(path, share, threads=threads) for share, threads in zip(shares, (1, 3))]
    assert sorted(sum(parts, [])) == list(range(7000))
    found = [{row % 700 // 7 for row in part} for part in parts]
    assert found[0].isdisjoint(found[1]) and len(found[0] | found[1]) == 100
    assert len(found[0]) == pytest.approx(60, abs=15)
    quoted = users(tmp_path / "b", user='"u%d"')
    assert of_user(quoted, shares[0]) == parts[0]
    numbered = users(tmp_path / "c", header="")
    assert of_user(numbered, (0, 0.6, 0), "columns comma\nx = 1\ny = 2") == parts[0]


def test_malformed_lines_are_counted_in_one_share(programs, tmp_path):
    path = users(tmp_path / "a")
    with open(path, "a") as file:
        file.write("u1,2\n" * 5 + 'u1,"2\n' * 5 + "u1,2,3,4\n")
    bad = []
    for share in (0, 0.5, "user"), (0.5, 1, "user"):
        made = dataset("columns", [path])
        made.set_share(*share[:2], column=share[2])
        made.set_bad_rows("skip")
        rows(made)
        bad.append(made.statistics()["bad_rows"])
    assert sum(bad) == 11


@pytest.mark.parametrize("form, column, message", [
    ("columns comma header\nx = x\ny = y", "usr", "set_share: the header has no column usr: user, x, y.*did you mean"),
    ("columns comma\nx = 1\ny = 2", "user", "column must be a number from 0, because the format has no header"),
    ("", "user", "column must be None for lines of this format"),
])
def test_a_column_that_lines_do_not_have(programs, tmp_path, form, column, message):
    with pytest.raises(ValueError, match=message):
        of_user(users(tmp_path / "a"), (0, 0.5, column), form)


def test_libsvm_lines_have_no_column(programs, tmp_path):
    made = dataset("libsvm", [write(tmp_path / "b", "libsvm", 3)])
    made.set_share(0, 0.5, column="user")
    with pytest.raises(ValueError, match="column must be None for lines of this format"):
        rows(made)


def test_columns_of_a_wrong_type(programs):
    for column in 1.5, True, "":
        with pytest.raises(TypeError, match="column must be a name"):
            fluid.DatasetFactory().create_dataset().set_share(0, 0.5, column=column)


def test_a_share_by_a_column_of_a_table(programs, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    import anabranch
    path = users(tmp_path / "a.csv")
    table = pyarrow.table({"user": ["u%d" % (i % 700 // 7 * 7) for i in range(7000)], "x": list(range(7000)),
                           "y": list(range(7000))})
    parquet.write_table(table, str(tmp_path / "a.parquet"))
    schema = anabranch.Schema()
    schema.integer("x"), schema.integer("y"), schema.text("user").hash(100)
    found = []
    for file in path, str(tmp_path / "a.parquet"):
        made = dataset("columns", [file])
        made.set_format(schema)
        made.set_share(0, 0.6, column="user")
        found.append(rows(made))
    assert found[0] == found[1] and 0 < len(found[0]) < 7000
    made.set_share(0, 0.6, column="x")
    assert len(rows(made)) == pytest.approx(4200, abs=150)
    schema = anabranch.Schema()
    schema.integer("x"), schema.integer("y")
    made.set_format(schema)
    made.set_share(0, 0.6, column="user")      # which the schema does not use
    assert rows(made) == found[0]
    made.set_share(0, 0.6, column="usr")
    with pytest.raises(ValueError, match="set_share: the header has no column usr"):
        rows(made)
