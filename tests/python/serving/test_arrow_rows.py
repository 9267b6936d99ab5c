"""Tables of Arrow as raw rows: the same bits as the rows of a file, and errors that name the column."""
import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid

pa = pytest.importorskip("pyarrow")

ROWS = 500


def schema():
    made = anabranch.Schema()
    made.number("price").missing(3).log()
    made.number("small").missing(-1)
    made.integer("count").missing(0)
    made.text("kind").hash(1000)
    made.text("word").vocabulary(["red", "blue", "gr\u00fcn", "a long word of more than twelve bytes"])
    made.text("tags", split="|").hash(100)
    made.cross(["kind", "word"], 5000)
    return made


def values(seed):
    """dict: column -> Python values, None for missing ones."""
    draw = np.random.RandomState(seed)

    def some(make):
        return [None if draw.rand() < 0.15 else make() for _ in range(ROWS)]
    words = ["red", "blue", "gr\u00fcn", "a long word of more than twelve bytes", "", 'q"u,ote']
    return {"other": [True] * ROWS,
            "price": some(lambda: float(draw.choice([0.1, 1e-30, 12.5, float("nan"), 3e38, draw.rand()]))),
            "small": some(lambda: float(np.float32(draw.normal()))),
            "count": some(lambda: int(draw.randint(0, 127))), "kind": some(lambda: int(draw.randint(0, 100))),
            "word": some(lambda: str(draw.choice(words))),
            "tags": some(lambda: [str(draw.choice(["new", "old", "gr\u00fcn"])) for _ in range(draw.randint(0, 4))])}


PLAIN = {"other": pa.bool_(), "price": pa.float64(), "small": pa.float32(), "count": pa.int64(), "kind": pa.int64(),
         "word": pa.string(), "tags": pa.list_(pa.string())}
TYPES = {
    "plain": {},
    "large": {"word": pa.large_string(), "tags": pa.large_list(pa.large_string())},
    "narrow": {"price": pa.float64(), "count": pa.int8(), "kind": pa.uint8()},
    "middle": {"count": pa.int16(), "kind": pa.uint16()},
    "wide": {"count": pa.uint32(), "kind": pa.uint64()},
    "bytes": {"word": pa.binary(), "count": pa.int32()},
    "dictionary": {"word": pa.dictionary(pa.int8(), pa.string()), "kind": pa.dictionary(pa.int32(), pa.int64())},
    "views": {"word": pa.string_view() if hasattr(pa, "string_view") else pa.string()},
}


def table(kind, given):
    types = dict(PLAIN, **TYPES[kind])
    columns = []
    for name, found in given.items():
        plain = pa.array(found, PLAIN[name], from_pandas=False)
        made = types[name]
        columns.append(plain.cast(made.value_type).dictionary_encode().cast(made) if pa.types.is_dictionary(made)
                       else plain.cast(made))
    return pa.table(columns, names=list(given))


def bits(feed):
    return {name: (np.array(value).tobytes(), value.lod() if hasattr(value, "lod") else None)
            for name, value in feed.items()}


def as_rows(given):
    return [dict(zip(given, row)) for row in zip(*given.values())]


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_the_bits_are_those_of_dicts(kind, tmp_path):
    given = values(sorted(TYPES).index(kind))
    made, whole = schema(), table(kind, given)
    expected = bits(made.feed(as_rows(dict(given, tags=[tags or [] for tags in given["tags"]]))))
    assert bits(made.feed(whole)) == expected
    assert bits(made.feed(whole.to_reader(max_chunksize=7))) == expected
    assert bits(made.feed(pa.concat_tables([whole.slice(0, 13), whole.slice(13)]))) == expected
    part = slice(17, 101)
    assert bits(made.feed(whole.slice(17, 84))) == bits(made.feed(as_rows({
        name: [[] if one is None and name == "tags" else one for one in column[part]]
        for name, column in given.items()})))


def test_the_bits_are_those_of_the_reader(tmp_path):
    from pyarrow import csv
    given = values(9)
    whole = table("plain", given)
    flat = whole.set_column(whole.schema.get_field_index("tags"), "tags", pa.array(
        ["|".join(tags or []) for tags in given["tags"]]))
    path = str(tmp_path / "a.csv")
    csv.write_csv(flat, path)
    made = schema()
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        data = fluid.DatasetFactory().create_dataset("QueueDataset")
        data.set_use_var(list(made.inputs().values()))
        data.set_format(made)
        data.set_filelist([path])
        data.set_batch_size(ROWS)
        batch, = data._batches()
    for name, value in made.feed(whole).items():
        assert np.array(value).tobytes() == np.array(batch[name]).tobytes(), name


def test_columns_by_number_and_a_predictor(tmp_path):
    made = anabranch.Schema(header=False)
    made.number(1, "x").missing(7)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        y = fluid.layers.fc(made.inputs()["x"], 1, param_attr=fluid.initializer.Constant(2.0))
        executor = fluid.Executor()
        executor.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], executor, schema=made)
    rows = pa.table({"a": ["u", "v"], "b": pa.array([1.5, None])})
    assert anabranch.Predictor(str(tmp_path)).run_rows(rows)[0].tolist() == [[3.0], [14.0]]


MISTAKES = [
    ({"kind": pa.array([1.5])}, "column kind: text must be text or integers.*Arrow type g"),
    ({"word": pa.array([True])}, "column word has the Arrow type b, which is not supported"),
    ({"count": pa.array([[1]])}, "column count: the column is not a list"),
    ({"tags": pa.array([["a|b"]])}, r'row 0: column tags: a value of a list contains the separator, got "a\|b"'),
    ({"tags": pa.array([[["a"]]])}, "lists of lists"),
    ({"price": None, "pric": pa.array([1.0])}, "no column price, got .*did you mean pric"),
    ({"count": pa.array([1.5])}, "row 0: column count: a value is not an integer"),
    ({"count": pa.array([5.0])}, 'row 0: column count: a value is not an integer, got "5.0"'),
    ({"count": pa.array([100000.0], pa.float32())}, 'column count: a value is not an integer, got "100000.0"'),
    ({"word": pa.array(["a\nb"])}, "row 0: column word: a text must not contain a line feed"),
    ({"price": pa.array([1], pa.timestamp("ns"))}, "column price has the Arrow type tsn:, which is not supported"),
    ({"price": pa.array(["x"])}, "row 0: column price: a value is not a number"),
    ({"price": pa.array([float("inf")])}, "row 0: column price: a value does not fit a float32"),
]


@pytest.mark.parametrize("other, error", MISTAKES)
def test_mistakes(other, error):
    columns = {name: pa.array([None], PLAIN[name]) for name in PLAIN}
    columns.update(other)
    with pytest.raises((ValueError, NotImplementedError), match=error):
        schema().feed(pa.table({name: column for name, column in columns.items() if column is not None}))


def test_a_row_that_is_null_is_refused():
    class Rows:
        def __init__(self, rows):
            self.rows = rows

        def __arrow_c_stream__(self, requested_schema=None):
            return pa.chunked_array([self.rows]).__arrow_c_stream__(requested_schema)
    rows = pa.StructArray.from_arrays([pa.array([1.0, 2.0, 3.0])], ["x"], mask=pa.array([False, False, True]))
    made = anabranch.Schema()
    made.number("x")
    assert made.feed(Rows(rows.slice(1, 1)))["x"].tolist() == [[2.0]]
    for part, row in ((rows, 2), (rows.slice(1), 1)):
        with pytest.raises(ValueError, match="row %d: a row must have values, got null" % row):
            made.feed(Rows(part))


def test_a_dictionary_is_named_by_its_values():
    made = anabranch.Schema()
    made.text("x").hash(9)
    with pytest.raises(ValueError, match="text must be text or integers: .*got the Arrow type g"):
        made.feed(pa.table({"x": pa.array([1.5]).dictionary_encode()}))


def test_a_name_that_occurs_twice_is_refused():
    made = anabranch.Schema()
    made.number("x")
    with pytest.raises(ValueError, match="rows: the table has the column x more than once"):
        made.feed(pa.table([pa.array([1.0]), pa.array([2.0])], names=["x", "x"]))


def test_lists_of_a_column_that_features_split_differently_are_refused():
    made = anabranch.Schema()
    made.number("x", split="|")
    made.number("x", "other", split=";")
    with pytest.raises(ValueError, match="rows: column x: features split the column in different ways"):
        made.feed(pa.table({"x": pa.array([[1.0]])}))


def test_a_stream_that_fails_says_why():
    def batches():
        yield pa.record_batch({"x": [1.0]})
        raise RuntimeError("the disk is gone")
    made = anabranch.Schema()
    made.number("x")
    with pytest.raises(ValueError, match="the Arrow stream failed: .*the disk is gone"):
        made.feed(pa.RecordBatchReader.from_batches(pa.schema([("x", pa.float64())]), batches()))
