"""``anabranch.Schema`` over files of MultiSlot and libsvm lines: the bits of reader, rows and server, and mistakes.
tests/trials/raw_rows.py compares random schemas and lines."""
import json

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.serving import tensors
from anabranch.serving.model import Model

SLOTS = "3 0.5 1.5 2 1 red 3 7 8 7 1 1\n3 0 -1 9  1 blue\t2 9  7 1 0\n"
SLOT_ROWS = [{"size": [0.5, 1.5, 2], "kind": "red", "words": [7, 8, 7]},
             {"size": "0 -1 9", "kind": "blue", "words": ["9", "7"]}]
PAIRS = "1 qid:4 1:0.5 3:2 40:1 77:0.25\n0 qid:5 2:-1 # 3:7\n"
PAIR_ROWS = [{1: 0.5, 3: 2, "index 40-": [40, 77], "value 40-": [1, 0.25]},
             {"2": "-1", 3: None, "index 40-": [], "value 40-": []}]


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


def of_slots():
    made = anabranch.Schema.multislot(["size", "kind", "words", "clicked"])
    made.number("size", split=" ", values=3).clip(0, 5).log()
    made.text("kind").vocabulary(["red", "blue"])
    words = made.text("words", split=" ").hash(1000, salt="word")
    assert words.size == 1000
    made.cross(["kind", made["kind"]], 50, name="both")
    made.label("clicked")
    return made


def of_pairs():
    made = anabranch.Schema.libsvm()
    made.number(range(1, 4), "dense").normalize(1, 2)
    made.number(3, "filled").missing(7).bucketize([0, 5])
    made.text("index 40-", "ids", split=" ").hash(1000)
    made.number("value 40-", "weights", split=" ")
    made.integer("qid")
    made.label("label", name="clicked")
    return made


def read(made, folder, text, **settings):
    """(values by feature, statistics) of a pass."""
    (folder / "lines").write_text(text)
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var(list(made.inputs().values()))
    data.set_format(made)
    data.set_filelist([str(folder / "lines")])
    data.set_batch_size(1000)
    for name, arguments in settings.items():
        getattr(data, name)(*arguments)
    batch, = data._batches()
    return batch, data.statistics()


def bits(value):
    return np.array(value).dtype, np.array(value).tobytes(), value.lod() if hasattr(value, "lod") else []


def refused(made, folder, text):
    with pytest.raises(ValueError) as error:
        read(made, folder, text)
    return str(error.value).splitlines()[0]


CASES = [(of_slots, SLOTS, SLOT_ROWS, {"clicked"}), (of_pairs, PAIRS, PAIR_ROWS, {"clicked", "qid"})]


@pytest.mark.parametrize("make, text, rows, labels", CASES)
def test_a_reader_and_rows_give_the_same_bits(tmp_path, make, text, rows, labels):
    made = make()
    batch, counts = read(made, tmp_path, text)
    assert (counts["rows"], counts["bad_rows"]) == (2, 0)
    names = [name for name in made if name not in labels]
    again = anabranch.Schema.from_json(made.to_json())
    for given in (rows, {key: [row.get(key, row.get(str(key))) for row in rows] for key in rows[0]}):
        fed = again.feed(given, names)
        for name in names:
            if given is rows or name != "dense":    # the columns lack 2
                assert bits(fed[name]) == bits(batch[name]), name


def test_values_of_slots(tmp_path):
    batch, _ = read(of_slots(), tmp_path, SLOTS)
    found = {name: np.array(value).tolist() for name, value in batch.items()}
    np.testing.assert_allclose(found["size"], np.log1p([[0.5, 1.5, 2], [0, 0, 5]]), rtol=1e-6)
    assert found["kind"] == [[1], [2]] and found["clicked"] == [[1], [0]]
    assert batch["words"].lod() == [[0, 3, 5]]
    assert found["words"] == anabranch.hash_ids(["7", "8", "7", "9", "7"], "word", 1000)[:, None].tolist()


def test_values_of_pairs(tmp_path):
    batch, counts = read(of_pairs(), tmp_path, PAIRS)
    found = {name: np.array(value).tolist() for name, value in batch.items()}
    assert found["dense"] == [[-0.25, -0.5, 0.5], [-0.5, -1, -0.5]]
    assert found["filled"] == [[1], [2]] and counts["missing"] == 1
    assert found["clicked"] == [[1], [0]] and found["qid"] == [[4], [5]]
    assert batch["ids"].lod() == batch["weights"].lod() == [[0, 2, 3]]
    assert found["weights"] == [[1], [0.25], [0]]
    assert found["ids"][:2] == anabranch.hash_ids(["40", "77"], "index 40-", 1000)[:, None].tolist()


@pytest.mark.parametrize("make, text, rows, labels", CASES)
def test_a_model_gives_the_same_scores(tmp_path, make, text, rows, labels):
    made = make()
    inputs = made.inputs(*[name for name in made if name not in labels])
    parts = []
    for value in inputs.values():
        wide = fluid.layers.cast(value, "float32")
        parts.append(fluid.layers.sequence_pool(wide, "sum") if value.lod_level else wide)
    score = fluid.layers.concat(parts, 1)
    executor = fluid.Executor()
    executor.run(fluid.default_startup_program())
    expected, = executor.run(feed=made.feed(rows, list(inputs)), fetch_list=[score])
    folder = str(tmp_path / "model")
    fluid.io.save_inference_model(folder, list(inputs), [score], executor, schema=made)
    predictor = anabranch.Predictor(folder)
    assert predictor.run_rows(rows)[0].tobytes() == expected.tobytes()
    model = Model(folder)
    request = json.dumps({"rows": rows}).encode()
    served, = model.predictor.run(tensors.read(request, tensors.JSON, model.inputs, 1 << 30, model.rows))
    assert served.tobytes() == expected.tobytes()


BAD_LINES = [
    (of_slots, "1 1 1 red 1 7 1 1\n", "lines:1:3: slot size: the number of values is not that of the variable's shape"),
    (of_slots, "3 1 1 1\n", "lines:1:8: the line ends too early: 3 1 1 1"),
    (of_slots, SLOTS + "3 0 0 0 2 red blue 1 7 1 1", "lines:3:9: slot kind: the number of values is not that of"),
    (of_slots, "size,kind,words,clicked\n", "lines:1:1: the number of values is not a number: size,kind"),
    (of_slots, "3 0 0 0 1 red 0 1 1\n", "lines:1:15: the number of values is 0: pad empty slots"),
    (of_slots, "3 0 0 0 1 red 1 7 1 2\n", "lines:1:21: slot clicked: a value is out of range"),
    (of_slots, "3 0 0 0 1 red 1 7 1 1 1\n", "lines:1:23: something follows the last slot"),
    (of_slots, "3 0 x 0 1 red 1 7 1 1\n", "lines:1:5: slot size: a value is not a number"),
    (of_pairs, "1 qid:1 3:1 3:2\n", "lines:1:13: the line has two values for this index"),
    (of_pairs, "1 qid:1 3\n", "lines:1:9: not index:value"),
    (of_pairs, "1 qid:1 -3:1\n", "lines:1:9: not index:value"),
    (of_pairs, "1 qid:1 3:\n", "lines:1:9: not index:value"),
    (of_pairs, "qid:1 3:1\n", "lines:1:1: a value is not a number"),
    (of_pairs, "1 3:1\n", "slot qid: a value is missing"),
    (of_pairs, "1 qid:1 3:x\n", "lines:1:11: slot dense: a value is not a number"),
    (of_pairs, "1 qid:1 3:nan\n", "slot dense: a value is missing"),
    (of_pairs, "2 qid:1 3:1\n", "lines:1:1: slot clicked: a value is out of range"),
    (of_pairs, "\n", "lines:1:1: the line ends too early")]


@pytest.mark.parametrize("make, text, message", BAD_LINES)
def test_malformed_lines(tmp_path, make, text, message):
    assert message in refused(make(), tmp_path, text)


BAD_ROWS = [
    (of_slots, "kind", {"kind": "red blue"}, "column kind: the number of values is not that of the variable's shape, "
     'got "red blue" (feature kind)'),
    (of_slots, "kind", {"kind": ""}, "column kind: a value is missing"),
    (of_slots, "words", {"words": []}, "column words: a value is missing"),
    (of_slots, "words", {"words": ["a", ""]}, "column words: a value of the list is empty"),
    (of_slots, "words", {"words": ["a b"]}, "column words: a value of a list contains the separator"),
    (of_slots, "words", {"words": "a\tb"}, "column words: a text must not contain a tab"),
    (of_slots, "size", {"size": [1, 2]}, "column size: the number of values is not that of the variable's shape"),
    (of_slots, "size", {"sizes": [1, 2]}, "there is no column size, got sizes; did you mean sizes?"),
    (of_slots, "size", [1, 2], "must be a dict, because the schema has the names of the columns"),
    (of_pairs, "dense", [1, 2], "must be a dict"),
    (of_pairs, "ids", {"index 40-": [39]}, "column index 40-: an index is outside of the range of the column"),
    (of_pairs, "ids", {"index 40-": ["040"]}, "an index must be an integer in digits"),
    (of_pairs, "ids", {}, "there is no column index 40-"),
    (of_pairs, "dense", {3: "nan"}, "column 3: a value is missing")]


@pytest.mark.parametrize("make, name, row, message", BAD_ROWS)
def test_malformed_rows(make, name, row, message):
    with pytest.raises(ValueError) as error:
        make().feed([row], [name])
    assert message in str(error.value)


def test_lists_of_pairs_have_the_same_length():
    with pytest.raises(ValueError, match="column index 40- must have as many items as column value 40-, got 1 and 2"):
        of_pairs().feed([{"index 40-": [40], "value 40-": [1, 2]}], ["ids", "weights"])


def slots(**other):
    return json.dumps({"version": 1, "lines": "multislot", "slots": ["a"], "features": [], **other})


MISTAKES = [
    (lambda: anabranch.Schema.multislot("a b"), "slots must be a list of str"),
    (lambda: anabranch.Schema.multislot([]), "slots must name the slots of a line in their order, got none"),
    (lambda: anabranch.Schema.multislot(["a", "a"]), "two slots have the name a"),
    (lambda: anabranch.Schema.multislot(["a"], header=True), "there is no argument 'header'"),
    (lambda: anabranch.Schema.libsvm(header=True), "there is no argument 'header'"),
    (lambda: anabranch.Schema.from_json(slots(header=True)), "multislot lines have no header"),
    (lambda: anabranch.Schema.from_json(slots(lines="lines")), "lines must be"),
    (lambda: anabranch.Schema.multislot(["price"]).number("prize"), "the lines have no slot prize; there are price"),
    (lambda: anabranch.Schema.multislot(["a"]).number(0), r"must be the name of a slot \(a\), got 0"),
    (lambda: anabranch.Schema.multislot(["a"]).number("a", split="\t"), "split must not be a tab"),
    (lambda: anabranch.Schema.multislot(["a"]).number("a", values=3), "split must be given, too"),
    (lambda: anabranch.Schema.multislot(["a"]).number("a", split=" ", values=0), "values"),
    (lambda: anabranch.Schema.libsvm().number("price"), 'a column of libsvm lines is an index'),
    (lambda: anabranch.Schema.libsvm().number("index 9-3", split=" "), 'a column of libsvm lines is an index'),
    (lambda: anabranch.Schema.libsvm().number(-1), "a column"),
    (lambda: anabranch.Schema.libsvm().number("value"), 'column "value" is a list: add split=" "'),
    (lambda: anabranch.Schema.libsvm().number(3, split=" "), 'only the columns "index" and "value" are lists'),
    (lambda: anabranch.Schema.libsvm().cross(["label", "index"], 9), 'is a list: add split')]


@pytest.mark.parametrize("make, message", MISTAKES)
def test_mistakes_in_a_schema(make, message):
    with pytest.raises((ValueError, TypeError), match=message):
        made = make()
        made._schema.inputs()


def test_a_table_needs_columns(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet
    parquet.write_table(pyarrow.table({"a": [1]}), tmp_path / "a.parquet")
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    made = anabranch.Schema.multislot(["a"])
    made.integer("a")
    data.set_use_var(list(made.inputs().values()))
    data.set_format(made)
    data.set_filelist([str(tmp_path / "a.parquet")])
    with pytest.raises(ValueError, match=r"describes MultiSlot lines, but this file has columns"):
        list(data._batches())


def test_a_share_and_a_cache_of_lines(tmp_path):
    text = "".join("%d qid:1 %d:1\n" % (i % 2, i % 7) for i in range(200))
    whole, _ = read(of_pairs(), tmp_path, text)
    cached = [read(of_pairs(), tmp_path, text, set_cache=[str(tmp_path / "cache")])[0] for _ in range(2)]
    with fluid.program_guard(fluid.Program()):
        parts = [read(of_pairs(), tmp_path, text, set_share=share)[1]["rows"] for share in ([0, 0.5], [0.5, 1])]
    assert sum(parts) == 200 and min(parts) > 50
    for one in cached:
        assert all(bits(one[name]) == bits(whole[name]) for name in whole)


def test_repr_and_columns():
    assert of_pairs().columns == [1, 2, 3, "index 40-", "value 40-", "qid", "label"]
    assert anabranch.Schema.from_json(of_pairs().to_json()).to_json() == of_pairs().to_json()
