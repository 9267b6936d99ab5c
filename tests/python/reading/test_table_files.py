"""Files of Parquet and Arrow in data sets: the batches of the same rows in a CSV file, bit for bit, and errors."""
import csv
import os
import sys

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid

pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.dataset")
from pyarrow import feather, parquet  # noqa: E402

ROWS = 20_000     # several batches of the file


def schema():
    made = anabranch.Schema()
    made.number("price").missing(3).log()
    made.number(["small", "price"], "both").missing(-1)
    made.integer("count").missing(0)
    made.text("kind").hash(1000)
    made.text("word").vocabulary(["red", "blue", "gr\u00fcn"])
    made.text("tags", split="|").hash(100)
    made.cross(["kind", "word"], 5000)
    made.label("clicked")
    return made


def columns(rows=ROWS):
    draw = np.random.RandomState(1)

    def some(make):
        return [None if draw.rand() < 0.1 else make() for _ in range(rows)]
    return {"unused": [True] * rows, "word": some(lambda: str(draw.choice(["red", "blue", "gr\u00fcn", 'q"u,o']))),
            "price": some(lambda: float(draw.choice([0.1, 1e-30, 12.5, 3e38, draw.rand()]))),
            "small": pa.array(some(lambda: float(np.float32(draw.normal()))), pa.float32()),
            "kind": pa.array(some(lambda: "k%d" % draw.randint(50))).dictionary_encode(),
            "count": some(lambda: int(draw.randint(-5, 100))), "clicked": draw.randint(0, 2, rows),
            "tags": some(lambda: [str(draw.choice(["new", "old"])) for _ in range(draw.randint(1, 4))])}


def dataset(path, format_of_lines, threads=1, batch=256, **settings):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        made = fluid.DatasetFactory().create_dataset("QueueDataset")
        made.set_use_var(list(format_of_lines.inputs().values()))
    made.set_format(format_of_lines)
    made.set_filelist([str(path)])
    made.set_batch_size(batch)
    made.set_thread(threads)
    for name, value in settings.items():
        getattr(made, name)(*value)
    return made


def values(made):
    """The bytes of each input over all batches, and the statistics."""
    found = {}
    for batch in made._batches():
        for name, value in batch.items():
            found.setdefault(name, []).append((np.array(value).tobytes(), value.lod()))
    return found, made.statistics()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tables")
    table = pa.table(columns())
    parquet.write_table(table, path / "a.parquet", row_group_size=7000)
    feather.write_feather(table, path / "a.arrow", compression="uncompressed")
    with open(path / "a.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in table.to_pylist():
            small = row["small"] if row["small"] is None else str(np.float32(row["small"]))
            writer.writerow(dict(row, small=small, tags="|".join(row["tags"] or [])).values())
    return path


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
@pytest.mark.parametrize("threads", [1, 3])
def test_the_batches_of_the_csv_file(name, threads, folder):
    expected, counts = values(dataset(folder / "a.csv", schema()))
    found, own = values(dataset(folder / name, schema(), threads))
    assert found == expected
    assert own["lines"] == ROWS == counts["lines"] - 1          # without a header
    assert [own[key] for key in ("rows", "missing", "files")] == [
        counts[key] for key in ("rows", "missing", "files")]
    assert own["rows"] == ROWS and own["bytes"] == pytest.approx(os.path.getsize(folder / name), abs=10)


def test_a_column_of_lists_may_also_be_one_text(tmp_path):
    tags = [["new", "sale"], [], None, ["old"]] * 300
    feather.write_feather(pa.table({"tags": tags, "kind": ["a"] * 1200}), tmp_path / "a.arrow")
    with open(tmp_path / "a.csv", "w") as file:
        file.write("tags,kind\n" + "".join("%s,a\n" % "|".join(one or []) for one in tags))
    made = anabranch.Schema()
    made.cross(["tags", "kind"], 1000, name="both")
    made.text("tags", "whole").hash(1000)
    made.text("tags", split="|").hash(1000)
    assert values(dataset(tmp_path / "a.arrow", made))[0] == values(dataset(tmp_path / "a.csv", made))[0]


@pytest.mark.parametrize("large", [False, True])
def test_lists_and_integers_that_are_hashed(large, tmp_path):
    draw = np.random.RandomState(5)
    words = ["", "a", "b", "gr\u00fcn", "a longer text than a view holds"]
    lists = [None if draw.rand() < 0.1 else [None if draw.rand() < 0.1 else str(draw.choice(words))
                                             for _ in range(draw.randint(0, 4))] for _ in range(3000)]
    pairs = [["x%d" % draw.randint(9), "y"] for _ in range(3000)]
    whole = [None if draw.rand() < 0.1 else int(draw.randint(-2 ** 62, 2 ** 62)) for _ in range(3000)]
    positive = [int(value) + 2 ** 63 for value in draw.randint(0, 2 ** 62, 3000)]
    kind = (pa.large_list if large else pa.list_)(pa.large_string() if large else pa.string())
    table = pa.table({"lists": pa.array(lists, kind), "pairs": pa.array(pairs, kind), "whole": pa.array(whole),
                      "positive": pa.array(positive, pa.uint64())})
    parquet.write_table(table, tmp_path / "a.parquet")
    feather.write_feather(table, str(tmp_path / "a.arrow"))
    with open(tmp_path / "a.csv", "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.column_names)
        for row in zip(lists, pairs, whole, positive):
            writer.writerow(["|".join(item or "" for item in one or []) if isinstance(one, list) or one is None else one
                             for one in row])
    made = anabranch.Schema()
    made.text("lists", split="|").hash(1000)
    made.text("pairs", split="|", values=2).hash(1000)
    made.text("whole").hash(10 ** 9)
    made.text("positive").hash(10 ** 9)
    expected = values(dataset(tmp_path / "a.csv", made))[0]
    for name in "a.parquet", "a.arrow":
        assert values(dataset(tmp_path / name, made))[0] == expected
    odd = table.set_column(0, "lists", pa.array([*lists[:-1], ["a|b"]], kind))
    parquet.write_table(odd, tmp_path / "odd.parquet")
    with pytest.raises(ValueError, match="an item of a list contains the separator"):
        values(dataset(tmp_path / "odd.parquet", made))


def test_shares_are_all_rows(folder):
    rows = [values(dataset(folder / "a.parquet", schema(), set_share=share))[1]["rows"]
            for share in ((0, 0.8), (0.8, 1), (0.8, 1))]
    assert rows[0] + rows[1] == ROWS and rows[1] == rows[2] and abs(rows[1] - 0.2 * ROWS) < 0.03 * ROWS


def test_a_program_trains_and_evaluates(folder):
    made = schema()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        inputs = made.inputs()
        chance = fluid.layers.fc(inputs["both"], 2, act="softmax")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(chance, inputs["clicked"]))
        fluid.optimizer.Adam(0.01).minimize(loss)
        data = fluid.DatasetFactory().create_dataset("InMemoryDataset")
        data.set_use_var(list(inputs.values()))
        data.set_format(anabranch.Schema.from_json(made.to_json()))
        data.set_filelist([str(folder / "a.parquet")])
        data.load_into_memory()
        data.local_shuffle()
        exe = fluid.Executor()
        exe.run(fluid.default_startup_program())
        assert exe.train_from_dataset(fluid.default_main_program(), data).rows == ROWS


def test_bad_rows_are_named_and_counted(tmp_path):
    table = {"price": pa.array([1.0, None, 2.0, 3.0]), "kind": ["a", "b", "c", "d"], "clicked": [0, 1, 7, 1]}
    parquet.write_table(pa.table(table), tmp_path / "a.parquet")
    made = anabranch.Schema()
    made.number("price")
    made.text("kind").hash(10)
    made.label("clicked")
    with pytest.raises(ValueError, match=r"a.parquet:2:1: slot price: a value is missing.*: ,b,1|: b,1"):
        values(dataset(tmp_path / "a.parquet", made))
    found, counts = values(dataset(tmp_path / "a.parquet", made, set_bad_rows=("skip",)))
    assert (counts["rows"], counts["bad_rows"]) == (2, 2)
    values(dataset(tmp_path / "a.parquet", made, set_bad_rows=("quarantine", None, str(tmp_path / "bad"))))
    assert "a.parquet:3:7: slot clicked" in (tmp_path / "bad").read_text()


def number(name="price"):
    made = anabranch.Schema()
    made.number(name)
    return made


def text(name):
    made = anabranch.Schema()
    made.text(name).hash(10)
    return made


def two_splits():
    made = anabranch.Schema()
    made.text("tags", "some", split="|").hash(10)
    made.text("tags", "others", split=";").hash(10)
    return made


@pytest.mark.parametrize("make, error, message", [
    (lambda path: dataset(path, two_splits()), ValueError, "column tags: features split the column in different ways"),
    (lambda path: dataset(path, number("prise")), ValueError, "no column prise: .*price.*did you mean price"),
    (lambda path: dataset(path, text("price")), ValueError, "column price: text must be text or integers"),
    (lambda path: dataset(path, number("tags")), ValueError, "column tags: the column is not a list"),
    (lambda path: dataset(path, number("unused")), NotImplementedError, "column unused has the Arrow type b"),
    (lambda path: dataset(path, number(), set_cache=("cache",)), NotImplementedError, "files of Parquet have no cache"),
    (lambda path: dataset(path, number(), set_format=("columns comma header\nprice = price",)), ValueError,
     "is a file of Parquet, which has columns instead of lines: set_format must be given an anabranch.Schema"),
])
def test_mistakes(make, error, message, folder):
    with pytest.raises(error, match=message):
        values(make(folder / "a.parquet"))


def test_a_damaged_file_is_an_error(folder, tmp_path):
    (tmp_path / "a.parquet").write_bytes((folder / "a.parquet").read_bytes()[:5000])
    with pytest.raises(ValueError, match="a.parquet: .*arquet"):
        values(dataset(tmp_path / "a.parquet", number()))


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_damage_between_the_rows_ends_the_pass(name, tmp_path):
    table = pa.table({"price": np.random.RandomState(1).randint(0, 50, 200_000) * 1.5})
    if name == "a.parquet":
        parquet.write_table(table, tmp_path / name, use_dictionary=False)
    else:
        feather.write_feather(table, tmp_path / name, compression="lz4")
    data = bytearray((tmp_path / name).read_bytes())
    data[len(data) // 2:len(data) // 2 + 2000] = b"\xff" * 2000
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match="%s: .*(snappy|LZ4)" % name):
        values(dataset(tmp_path / name, number()))


def test_names_and_shapes_of_files(tmp_path):
    """A column with a dot in its name, another one whose name is its start, and no rows."""
    made = anabranch.Schema()
    made.text("a.b", "first").hash(100)
    made.number("a", "second")
    rows = {"a": [1.0, 2.0], "a.b": ["x", "y"], "a.c": [1, 2]}
    with open(tmp_path / "a.csv", "w") as file:
        file.write("a,a.b\n1.0,x\n2.0,y\n")
    expected, _ = values(dataset(tmp_path / "a.csv", made))
    for count in (2, 0):
        table = pa.table(rows).slice(0, count)
        parquet.write_table(table, tmp_path / "a.parquet")
        feather.write_feather(table, tmp_path / "a.arrow")
        for name in ("a.parquet", "a.arrow"):
            found, counts = values(dataset(tmp_path / name, made))
            assert found == (expected if count else {}) and counts["rows"] == count


def test_without_pyarrow_the_error_says_what_to_install(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(RuntimeError, match="a.parquet: the package pyarrow.*pip install pyarrow"):
        values(dataset(folder / "a.parquet", number()))


def test_a_stream_that_is_dropped_ends(folder):
    made = dataset(folder / "a.parquet", schema(), batch=16)
    stream = made._open()
    assert stream.next() is not None
    made._stream = None
    del stream      # its threads may wait for the interpreter meanwhile
