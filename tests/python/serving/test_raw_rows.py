"""Raw rows: a reader, ``Schema.feed``, ``Predictor.run_rows`` and a server give the same bits for the same row."""
import json
import math
import os
import random

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid

ROWS = int(os.environ.get("ANABRANCH_FUZZ_ROWS", "4000"))


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        yield


def every_step(separator=","):
    """A schema with every type and step, of columns a, b, c (numbers), i, j (integers), t, u, v (text), y (label)."""
    made = anabranch.Schema(separator)
    made.number("a").missing(0.5).log()
    made.number(["a", "b"], "pair").log().missing(7).normalize(1.25, 3)
    made.number("b", "clipped").clip(-10, 1e6).missing(-1)
    made.number("c", "ranged").missing(0).range(-1e30, 1e30)
    ages = made.number("c", "ages").missing(-5).bucketize([-1e9, -1, 0, 0.1, 2.5, 1e20])
    made.integer("i").missing(-3).clip(-100, 100)
    made.integer("j", "j_list", split=";").missing(0)
    made.text("t").hash(1000)
    made.text("u", "u_list", split="|").hash(50, salt="t")
    made.text("v").missing("none").vocabulary(["red", "blue", "none", "été"])
    made.cross([ages, "t", made["v"]], 77)
    made.label("y")
    return made


NUMBERS = ["", "0", "-0", "1", "-1.5", "0.1", "1e5", "1E-40", "3.4028235e38", "1e39", "-1e39", "1e400", "nan", "NaN",
           "-nan", "inf", "-inf", "0x1p3", "1e-400", "16777217", "0.30000001192092896", "1.00000017881393432617187499",
           "1.00000017881393432617187501", " 1", "1 ", "+3", "--1", "1,5", "x", "1e", ".5", "5.", "9" * 400, "é"]
INTEGERS = ["", "0", "1", "-1", "7", "-0", "100", "101", "-101", "9223372036854775807", "9223372036854775808",
            "18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "1.0", "x"]
TEXTS = ["", "red", "blue", "none", "été", "a,b", 'say "x"', '"', '""', "'", "tab\there", "a|b", "|", "x" * 5000,
         "日本", "\U0001f600", "nul\0byte", " pad ", "7", "7.0", "\udc80\udcff", "line\rend", "\\n", "#", "é"]


def raw_row(draw):
    """{column: value} of every kind that a caller may give, mostly good ones."""
    def number():
        return draw.choice([lambda: draw.choice(NUMBERS), lambda: draw.gauss(0, 10), lambda: draw.randint(-99, 99),
                            lambda: None, lambda: np.float32(draw.gauss(0, 1e3)), lambda: math.nan,
                            lambda: repr(draw.uniform(-1, 1) * 10.0 ** draw.randint(-45, 37)),
                            lambda: draw.uniform(-1, 1) * 10.0 ** draw.randint(-45, 37)])()

    def integer():
        return draw.choice([lambda: draw.randint(-200, 200), lambda: draw.choice(INTEGERS[:8]), lambda: None,
                            lambda: np.int64(draw.randint(-9, 9)), lambda: draw.choice(INTEGERS)])()

    def text():
        return draw.choice([lambda: draw.choice(TEXTS), lambda: draw.randint(-9, 9), lambda: None,
                            lambda: "".join(chr(draw.choice([draw.randint(32, 126), draw.randint(160, 0xd7ff)]))
                                            for _ in range(draw.randint(0, 12)))])()
    words = [str(text() or "").replace("|", "") for _ in range(draw.randint(0, 4))]
    listed = draw.choice([words, tuple(words), "|".join(words)])
    integers = draw.choice([[draw.randint(-9, 9) for _ in range(draw.randint(1, 4))], "1;;3", "", None, 5])
    return {"a": number(), "b": number(), "c": number(), "i": integer(), "j": integers, "t": text(), "u": listed,
            "v": text(), "y": draw.choice([0, 1, 1, 0, "1", "0", 0, 1, 2, None])}


def field(value, column):
    """The text of a value in a file."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (list, tuple)):
        return (";" if column == "j" else "|").join(field(one, column) for one in value)
    return value if isinstance(value, str) else repr(value)


def write(path, rows, columns, draw):
    def quoted(text):
        if any(c in text for c in ',"\r') or draw.random() < 0.2:
            return '"%s"' % text.replace('"', '""')
        return text
    with open(path, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
        file.write(",".join(columns) + "\n")
        for row in rows:
            file.write(",".join(quoted(field(row[column], column)) for column in columns) + "\n")


def read(schema, path, threads=1):
    inputs = schema.inputs()
    made = fluid.DatasetFactory().create_dataset("QueueDataset")
    made.set_use_var(list(inputs.values()))
    made.set_format(schema)
    made.set_filelist([str(path)])
    made.set_batch_size(10 ** 6)
    made.set_bad_rows("skip")
    made.set_thread(threads)
    batches = list(made._batches())
    assert len(batches) == 1
    return batches[0], made.statistics()


def bits(value):
    """dtype, shape, offsets and bytes; of NaN, too."""
    lod = value.lod() if hasattr(value, "lod") else []
    array = np.array(value)
    return str(array.dtype), array.shape, lod, array.tobytes()


def same(one, other):
    assert list(one) == list(other)
    for name in one:
        assert bits(one[name]) == bits(other[name]), name


def is_good(schema, row):
    try:
        schema.feed([row])
    except ValueError as e:
        assert "row 0: column " in str(e), e
        return False
    return True


def model(schema, folder, names):
    """A model that returns the sum of everything it gets."""
    inputs = schema.inputs()
    parts = []
    for name in names:
        value = fluid.layers.cast(inputs[name], "float32")
        if inputs[name].lod_level:
            value = fluid.layers.sequence_pool(value, "sum")
        parts.append(fluid.layers.reduce_sum(value, 1, keep_dim=True))
    out = [fluid.layers.sums(parts), fluid.layers.concat(parts, 1)]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(folder), names, out, exe, schema=schema)
    return str(folder), exe, out


@pytest.mark.parametrize("seed", [1, 2])
def test_the_same_bits_everywhere(tmp_path, seed):
    draw = random.Random(seed)
    schema = every_step()
    rows = [raw_row(draw) for _ in range(ROWS)]
    columns = schema.columns
    draw.shuffle(columns)
    write(tmp_path / "rows.csv", rows, columns, draw)
    expected, counts = read(schema, tmp_path / "rows.csv", threads=2)
    good = [row for row in rows if is_good(schema, row)]
    assert (counts["rows"], counts["bad_rows"]) == (len(good), len(rows) - len(good))
    assert len(good) > ROWS / 10 and counts["bad_rows"] > ROWS / 10

    same(expected, schema.feed(good))
    same(expected, schema.feed({column: [row[column] for row in good] for column in columns}))
    loaded = anabranch.Schema.from_json(schema.to_json())
    same(expected, loaded.feed([{column: field(row[column], column) for column in columns} for row in good]))
    for name in ("a", "t", "u_list", "v", "j_list"):
        assert bits(schema.transform(name, [row[schema[name].columns[0]] for row in good])) == bits(expected[name])

    folder, exe, out = model(schema, tmp_path / "model", [name for name in schema if name != "y"])
    answer = exe.run(feed=expected, fetch_list=out)
    predictor = anabranch.Predictor(folder)
    for one in (predictor, predictor.clone()):
        assert [bits(value) for value in one.run_rows(good)] == [bits(value) for value in answer]
    answers = [predictor.run_rows([row]) for row in good[:200]]
    for i, value in enumerate(answer):
        assert np.concatenate([one[i] for one in answers]).tobytes() == value[:200].tobytes()


@pytest.mark.parametrize("seed", [3, 4])
def test_a_server_reads_the_same_bits(tmp_path, seed):
    pytest.importorskip("aiohttp")
    from anabranch.serving import tensors
    from anabranch.serving.model import Model
    draw = random.Random(seed)
    schema = every_step()
    rows = [row for row in (raw_row(draw) for _ in range(ROWS)) if is_good(schema, row)]
    names = [name for name in schema if name != "y"]
    served = Model(model(schema, tmp_path / "model", names)[0])

    def ask(body):
        values = tensors.read(body, tensors.JSON, served.inputs, 1 << 30, served.rows)
        return dict(zip(served.predictor.input_names, values))
    expected = schema.feed(rows, names)
    plain = [{key: value.item() if isinstance(value, np.generic) else value for key, value in row.items()}
             for row in rows]
    same(expected, ask(json.dumps({"rows": plain}).encode()))
    same(expected, ask(json.dumps({"rows": {key: [row[key] for row in plain] for key in plain[0]}}).encode()))
    # Numbers of JSON keep the digits that a double has not.
    exact = [{**plain[0], "a": text} for text in ("1.00000017881393432617187499", "1.00000017881393432617187501")]
    body = json.dumps({"rows": exact}).replace('"1.0', "1.0").replace('499"', "499").replace('501"', "501")
    same(schema.feed(exact, names), ask(body.encode()))
    assert ask(body.encode())["a"][0] != ask(body.encode())["a"][1]


def test_rows_over_http(tmp_path):
    pytest.importorskip("aiohttp")
    from serve_process import Server
    schema = anabranch.Schema()
    schema.number("price").missing(2)
    schema.text("kind").hash(10)
    folder, exe, out = model(schema, tmp_path / "model", ["price", "kind"])
    rows = [{"price": 1.5, "kind": "red", "other": [1]}, {"price": None, "kind": 7}]
    expected = anabranch.Predictor(folder).run_rows(rows)
    with Server(folder) as server:
        status, _, body = server.ask(body=json.dumps({"rows": rows}).encode())
        assert status == 200, body
        assert list(json.loads(body)["outputs"].values()) == [value.tolist() for value in expected]
        assert json.loads(server.ask("/")[2])["columns"] == ["price", "kind"]
        for rows, words in [([{"price": "x", "kind": "red"}], "row 0: column price: a value is not a number"),
                            ([{"price": 1, "knid": "red"}], "there is no column kind, got price, knid; did you mean"),
                            ([{"price": 1, "kind": 1.5}], "column kind: text must be a str or an int"),
                            ([], "there must be at least one row"), ({"price": [], "kind": []}, "at least one row"),
                            (5, "rows must be a list of dicts"), (None, "rows must be a list of dicts")]:
            status, _, body = server.ask(body=json.dumps({"rows": rows}).encode())
            assert status == 400 and words in json.loads(body)["error"]
        status, _, body = server.ask(body=json.dumps({"rows": [], "inputs": {}}).encode())
        assert status == 400 and "either inputs or rows, got both" in json.loads(body)["error"]


def test_a_server_without_a_schema_says_so(tmp_path):
    pytest.importorskip("aiohttp")
    from anabranch.serving import tensors
    from anabranch.serving.model import Model
    x = fluid.data("x", [None, 1])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["x"], [fluid.layers.relu(x)], exe)
    served = Model(str(tmp_path))
    assert "columns" not in served.described()
    with pytest.raises(LookupError, match=r"no schema for raw rows: save it with save_inference_model\(\.\.\., schema"):
        tensors.read(b'{"rows": [{"x": 1}]}', tensors.JSON, served.inputs, 1000, served.rows)


def test_a_model_replaced_by_one_without_a_schema_loses_it(tmp_path):
    schema = anabranch.Schema()
    schema.number("price").missing(2)
    inputs = schema.inputs()
    out = fluid.layers.relu(inputs["price"])
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    fluid.io.save_inference_model(str(tmp_path), ["price"], [out], exe, schema=schema)
    assert anabranch.Predictor(str(tmp_path)).run_rows({"price": [-1, None]})[0].tolist() == [[0], [2]]
    assert anabranch.Schema.load(str(tmp_path)).to_json() == schema.to_json()
    fluid.io.save_inference_model(str(tmp_path), ["price"], [out], exe, model_filename="m")
    fluid.io.save_inference_model(str(tmp_path), ["price"], [out], exe)
    predictor = anabranch.Predictor(str(tmp_path))
    assert predictor.schema is None
    with pytest.raises(LookupError, match="no schema"):
        predictor.run_rows([{"price": 1}])
    with pytest.raises(LookupError, match="__schema__.json"):
        anabranch.Schema.load(str(tmp_path))


def test_a_schema_that_does_not_fit_the_model_is_refused(tmp_path):
    x, ids = fluid.data("x", [None, 2]), fluid.data("ids", [None, 1], "int64", lod_level=1)
    out = [fluid.layers.relu(x), fluid.layers.cast(ids, "float32")]
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())

    def refused(words, feeds=("x", "ids"), **features):
        schema = anabranch.Schema()
        for name, add in features.items():
            add(schema, name)
        with pytest.raises(ValueError, match=words):
            fluid.io.save_inference_model(str(tmp_path / "m"), list(feeds), out, exe, schema=schema)
        assert not (tmp_path / "m").exists()

    def lists(s, name):
        s.text("c", name, split="|").hash(9)
    refused("the schema has no feature for the input x; there are ids", ids=lists)
    refused("no feature for the input x; did you mean x1", ids=lists, x1=lambda s, name: s.number("a", name))
    refused("2.*1 columns", ids=lists, x=lambda s, name: s.number("a", name))
    refused("feature x is int64, but variable x is float32", ids=lists, x=lambda s, name: s.integer(["a", "b"], name))
    refused("feature x: the last step of a text feature", ids=lists, x=lambda s, name: s.text(["a", "b"], name))


def test_a_damaged_schema_is_refused_when_the_model_is_loaded(tmp_path):
    schema = anabranch.Schema()
    schema.number("price").missing(2)
    folder = model(schema, tmp_path / "model", ["price"])[0]
    path = tmp_path / "model" / "__schema__.json"
    text = path.read_text()
    for old, new, words in [('"missing"', '"missing_"', "must be one of .*got missing_; did you mean missing"),
                            ("}", "", "must be JSON"), ('"price"', '"cost"', "has no feature price"),
                            ('"version": 1', '"version": 2', "reads schemas of version 1, got 2"),
                            ('"steps"', '"step"', "a key must be one of .*got step; did you mean steps"),
                            ('[["missing", 2]]', '[["missing"]]', "missing: it takes 1 to 1 arguments, got 0"),
                            ('"type": "number"', '"type": "integer"', "feature price is int64")]:
        path.write_text(text.replace(old, new, 1) if old != '"price"' else text.replace(old, new))
        with pytest.raises(Exception, match=words):
            anabranch.Predictor(folder)
    path.write_text(text)
    assert len(anabranch.Predictor(folder).run_rows([{"price": 1}])) == 2
