"""Tab- and comma-separated columns, Criteo's files as they are, libsvm."""
import math

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch import _core

CRITEO = "columns tab\nlabel = 0\ndense = 1-13 log\nC* = 14-39 hash 1000001\n"


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def _read(path, schema, use_vars, kind="QueueDataset", **settings):
    made = fluid.DatasetFactory().create_dataset(kind)
    made.set_use_var(use_vars)
    made.set_filelist([str(path)])
    made.set_format(schema)
    made.set_batch_size(1000)
    for name, value in settings.items():
        getattr(made, name)(*value)
    if kind == "InMemoryDataset":
        made.load_into_memory()
    batch, = made._batches()
    return {name: np.array(value) for name, value in batch.items()}, batch


def _criteo_slots():
    return [fluid.data("label", [None, 1], "int64"), fluid.data("dense", [None, 13])] + \
        [fluid.data("C%d" % i, [None, 1], "int64") for i in range(1, 27)]


@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
def test_criteo_as_it_is(tmp_path, kind):
    rows = [["1"] + [str(i) for i in range(13)] + ["%08x" % (i * 7919) for i in range(26)],
            ["0"] + [""] * 13 + [""] * 26,
            ["0", "-2"] + ["5"] * 12 + ["%08x" % (i * 7919) for i in range(26)]]
    (tmp_path / "day_0").write_text("".join("\t".join(row) + "\n" for row in rows))
    got, _ = _read(tmp_path / "day_0", CRITEO, _criteo_slots(), kind)
    assert got["label"].ravel().tolist() == [1, 0, 0]
    expected = [[math.log1p(i) for i in range(13)], [0] * 13, [0] + [math.log1p(5)] * 12]
    assert np.allclose(got["dense"], expected)
    ids = np.stack([got["C%d" % i].ravel() for i in range(1, 27)])
    assert ((ids >= 0) & (ids < 1000001)).all()
    assert (ids[:, 0] == ids[:, 2]).all() and (ids[:, 0] != ids[:, 1]).all()
    assert len(set(ids[:, 1])) == 26                   # an empty field is a separate category in each column


MARK = b"\xef\xbb\xbf"
MARKED = [("", "1 7 2 0.5 1\n1 8 2 3 4\n"), ("columns comma\ni = 0\nx = 1-2\n", '7,0.5,1\n8,3,4\n'),
          ("columns comma\ni = 0\nx = 1-2\n", '"7",0.5,1\n8,3,4\n'),
          ("columns tab\ni = 0\nx = 1-2\n", "7\t0.5\t1\n8\t3\t4\n"),
          ("columns comma header\ni = i\nx = a,b\n", '"i",a,b\n7,0.5,1\n8,3,4\n'),
          ("columns comma\ni = 0 hash 1000\nx = 1-2\n", "7,0.5,1\n8,3,4\n"),
          ("libsvm\ni = label\nx = value\n", "7 1:0.5 2:1\n8 1:3 2:4\n")]


@pytest.mark.parametrize("form, text", MARKED)
@pytest.mark.parametrize("kind", ("QueueDataset", "InMemoryDataset"))
def test_a_byte_order_mark_does_not_belong_to_the_first_value(tmp_path, form, text, kind):
    lists = {"lod_level": 1} if "libsvm" in form else {}
    slots = [fluid.data("i", [None, 1], "int64"), fluid.data("x", [None, 1 if lists else 2], **lists)]
    found = []
    for name, mark in (("a", b""), ("b", MARK)):
        (tmp_path / name).write_bytes(mark + text.encode())
        read = _read(tmp_path / name, form, slots, kind, set_share=(0, 0.99999), set_bad_rows=("raise",))[0]
        found.append({slot: value.tolist() for slot, value in read.items()})
    assert found[0] == found[1] and len(found[0]["i"]) == 2
    (tmp_path / "c").write_bytes(MARK)
    made = fluid.DatasetFactory().create_dataset()
    made.set_use_var(slots)
    made.set_filelist([str(tmp_path / "c"), str(tmp_path / "b")])
    made.set_format(form)
    if "header" not in form:
        batch, = made._batches()  # a file that holds nothing else has no lines
        assert np.array(batch["i"]).tolist() == found[0]["i"]


@pytest.mark.parametrize("first", ['1,"x', '1,2,"x', '"x"y,2,3', '"'])
def test_a_first_line_whose_quotes_do_not_end_is_one_bad_row(tmp_path, first):
    form, slot = "columns comma\nx = 0\n", fluid.data("x", [None, 1])
    (tmp_path / "a").write_text(first + "\n2,3,4\n5,6,7\n")
    assert _read(tmp_path / "a", form, [slot], set_bad_rows=("skip",))[0]["x"].tolist() == [[2], [5]]
    with pytest.raises(ValueError, match=r"a:1:\d+: a quote does not end"):
        _read(tmp_path / "a", form, [slot])
    (tmp_path / "a").write_text('x,y,"z\n2,3,4\n5,6\n')
    with pytest.raises(ValueError, match=r'a:1:5: a quote does not end in the header: x,y,"z'):
        _read(tmp_path / "a", "columns comma header\nx = x\n", [slot], set_bad_rows=("skip",))


def test_hashes_are_spread_evenly(tmp_path):
    (tmp_path / "a").write_text("".join("%08x\n" % (i * 2654435761 % 2 ** 32) for i in range(20000)))
    got = []
    made = fluid.DatasetFactory().create_dataset()
    made.set_use_var([fluid.data("i", [None, 1], "int64")])
    made.set_filelist([str(tmp_path / "a")])
    made.set_format("columns tab\ni = 0 hash 100\n")
    for batch in made._batches():
        got += np.array(batch["i"]).ravel().tolist()
    counts = np.bincount(got, minlength=100)
    assert len(counts) == 100 and ((counts - 200) ** 2 / 200).sum() < 170      # 99 degrees of freedom


def test_csv(tmp_path):
    (tmp_path / "a.csv").write_text('id,price,tags,name\n7,1.5,3|4|5,"x, ""y"""\n8,,6,"x, ""y"""\r\n-1,2e3,,z\n')
    schema = """columns comma header   # a remark

                price = 1 missing -1
                id = 0
                tags = 2 split | missing 9
                name = 3 hash 50"""
    slots = [fluid.data("id", [None, 1], "int64"), fluid.data("price", [None, 1]),
             fluid.data("tags", [None, 1], "int64", lod_level=1), fluid.data("name", [None, 1], "int64")]
    got, batch = _read(tmp_path / "a.csv", schema, slots)
    assert got["id"].ravel().tolist() == [7, 8, -1]
    assert got["price"].ravel().tolist() == [1.5, -1, 2000]
    assert got["tags"].ravel().tolist() == [3, 4, 5, 6, 9] and batch["tags"].lod() == [[0, 3, 4, 5]]
    assert got["name"][0] == got["name"][1] != got["name"][2]


def test_libsvm(tmp_path):
    (tmp_path / "a").write_text("+1 3:0.5 18446744073709551615:2 # remark\n-1\n0 7:1\r\n")
    slots = [fluid.data("y", [None, 1], "int64"), fluid.data("i", [None, 1], "int64", lod_level=1),
             fluid.data("v", [None, 1], lod_level=1)]
    got, batch = _read(tmp_path / "a", "libsvm\ny = label\ni = index\nv = value\n", slots)
    assert got["y"].ravel().tolist() == [1, -1, 0]
    assert got["i"].ravel().tolist() == [3, -1, 0, 7] and got["v"].ravel().tolist() == [0.5, 2, 0, 1]
    assert batch["i"].lod() == batch["v"].lod() == [[0, 2, 3, 4]]


@pytest.mark.parametrize("line, message", [
    ("1\t2", "a:2:4: the line has the wrong number of fields"), ("1\tx\t3", "a:2:3: slot b: a value is not a number"),
    ("1\t1e99\t3", "a:2:3: slot b: a value does not fit a float32"),
    ("1.5\t2\t3", "a:2:1: slot a: a value is not an integer"),
    ("1\t2\t99999999999999999999", "a:2:5: slot c: a value does not fit 64 bits"), ("", "a:2:1: the line has")])
def test_bad_columns(tmp_path, line, message):
    (tmp_path / "a").write_text("1\t2\t3\n%s\n" % line)
    slots = [fluid.data("a", [None, 1], "int64"), fluid.data("b", [None, 1]), fluid.data("c", [None, 1], "int64")]
    schema = "columns tab\na = 0\nb = 1\nc = 2\n"
    with pytest.raises(ValueError, match=message):
        _read(tmp_path / "a", schema, slots)
    got, _ = _read(tmp_path / "a", schema, slots, set_bad_rows=("skip",))
    assert got["c"].tolist() == [[3]]


@pytest.mark.parametrize("line, message", [
    ("1 3", "a:1:3: not index:value"), ("1 x:3", "a:1:3: not index"), ("1 3:x", "a:1:3: a value is not a number"),
    ("", "a:1:1: the line ends"), ("1.5 3:1", "a:1:1: slot y: a value is not an integer"), ("1 qid:3", "not index")])
def test_bad_libsvm(tmp_path, line, message):
    (tmp_path / "a").write_text(line + "\n")
    slots = [fluid.data("y", [None, 1], "int64"), fluid.data("i", [None, 1], "int64", lod_level=1)]
    with pytest.raises(ValueError, match=message):
        _read(tmp_path / "a", "libsvm\ny = label\ni = index\n", slots)


def test_bad_quotes(tmp_path):
    for text in ('"abc\n', '"a"b,1\n'):
        (tmp_path / "a").write_text(text)
        with pytest.raises(ValueError, match="a:1:1: a quote does not end"):
            _read(tmp_path / "a", "columns comma\ni = 0 hash 9\n", [fluid.data("i", [None, 1], "int64")])


@pytest.mark.parametrize("schema, message", [
    ("", None), ("rows tab\n", "first line"), ("columns dot\n", "separator"), ("columns tab footer\n", "header"),
    ("columns tab\ni\n", "NAME = COLUMNS"), ("columns tab\ni = x\n", "names of columns need"),
    ("columns tab\ni = 5-3\n", "columns"),
    ("columns tab\ni = 0 hash\n", "an integer is missing"), ("columns tab\ni = 0 hash 0\n", "above 0"),
    ("# nothing\n", "empty"),
    ("columns tab\ni = 0 what\n", "what follows"), ("columns tab\nj = 0\n", "no line for slot i"),
    ("columns tab\ni = 0 log\n", "log"), ("columns tab\ni = 0,1\n", "2 columns"),
    ("libsvm\ni = column\n", "libsvm has"),
    ("libsvm\ni = index\n", "lod_level"), ("columns tab\ni = 0 missing 0.5\n", "must be an integer"),
    ("columns tab\ni = 0-999999999999\n", "100000")])
def test_bad_schemas(tmp_path, schema, message):
    (tmp_path / "a").write_text("1 5\n")
    slots = [fluid.data("i", [None, 1], "int64")]
    if message is None:
        assert _read(tmp_path / "a", schema, slots)[0]["i"].tolist() == [[5]]
    else:
        with pytest.raises(ValueError, match=message):
            _read(tmp_path / "a", schema, slots)


@pytest.mark.parametrize("line", [b"," * 100000, b"0," * 50000 + b"0", b"a"], ids=["empty", "zeros", "one"])
def test_slots_that_share_a_column_have_room(line):
    """Each slot takes all values of the column: more words than the line has bytes."""
    settings = _core.DataSettings()
    names = ["a", "b", "c"]
    settings.slots = [_core.Slot(name, False, False, []) for name in names]
    rules = ("%s = 0,0 split , hash %d\n" % (name, 1000003 + i) for i, name in enumerate(names))
    settings.format = "columns tab\n" + "".join(rules)
    rows, bad, _, _ = _core.parse_text(settings, b"\n".join([line] * 3))
    assert not bad and len(rows) == 3
    values = 2 * (line.count(b",") + 1)
    assert all(len(slot) == values for row in rows for slot in row)
