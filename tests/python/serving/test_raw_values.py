"""Values of raw rows are the texts of a file; those that a file cannot hold, or would spell otherwise, are refused."""
import json
import math
import random
from decimal import Decimal

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid


def fed(kind, value, split=None, step=None):
    """The values of a feature of the column c, as lists."""
    schema = anabranch.Schema()
    feature = getattr(schema, kind)("c", split=split)
    if step:
        getattr(feature, step[0])(*step[1:])
    return np.array(schema.feed([{"c": value}])["c"]).tolist()


HASH = ("hash", 1000)
MISSING = ("missing", -1)


@pytest.mark.parametrize("value", [5.0, -0.0, 100000.0, 1e22, np.float32(7), Decimal("5.0"), Decimal("1E+2"), math.inf])
def test_a_float_is_not_an_integer(value):
    with pytest.raises(ValueError, match="column c: a value is not an integer, got \"%s\"" % str(value).replace(
            "+", r"\+")):
        fed("integer", value, step=MISSING)


def test_a_float_is_the_text_that_str_returns():
    draw = random.Random(5)
    numbers = [1e16, 1e15, 123456789012345680.0, 1e-4, 1e-5, 0.0001234, 100000.0, -0.0, 1e22, 1.5e300, 5e-324, 0.1]
    numbers += [draw.gauss(0, 1) * 10.0 ** draw.randint(-20, 20) for _ in range(100)]
    for number in numbers:
        for split in ".e+-01":  # a list shows how the number is spelled
            assert outcome(number, split) == outcome(str(number), split), (number, split)


def outcome(value, split):
    try:
        return fed("number", value, split, ("missing", -7))
    except ValueError as error:
        return str(error)


@pytest.mark.parametrize("kind, step", [("integer", MISSING), ("number", MISSING), ("text", HASH)])
def test_dates_and_floats_of_80_bits_are_refused(kind, step):
    dates = [np.datetime64("2020-01-01T00", "ns"), np.datetime64("2020-01-01"), np.timedelta64(5, "ns"),
             np.datetime64("NaT")]
    for date in dates:
        with pytest.raises(ValueError, match="row 0: column c: a date must be written as the text or the number"):
            fed(kind, date, step=step)
    schema = anabranch.Schema()
    getattr(getattr(schema, kind)("c"), step[0])(step[1])
    with pytest.raises(ValueError, match=r"column c: a date must be written .*, got datetime64\[ns\]"):
        schema.feed({"c": np.array(dates[:1])})
    for rows in ([{"c": np.longdouble(1.5)}], {"c": np.array([1.5], np.longdouble)}):
        with pytest.raises(ValueError, match="row 0: column c: a value must be a str, bytes, a number or None"):
            schema.feed(rows)


@pytest.mark.parametrize("kind, step", [("integer", MISSING), ("number", MISSING), ("text", HASH)])
def test_an_integer_that_python_does_not_write_is_refused(kind, step):
    with pytest.raises(ValueError, match="row 0: column c: an integer with this many digits must be written as a str"):
        fed(kind, 10 ** 5000, step=step)


@pytest.mark.parametrize("separator, values", [(",", ["a\nb", "\n", b"a\n", ["a", "b\n"]]),
                                               ("\t", ["a\nb", "a\tb", "\t", b"\t", ["a\t"]])])
def test_a_text_that_no_line_holds_is_refused(separator, values, tmp_path):
    schema = anabranch.Schema(separator)
    schema.text("c", split="|").hash(1000)
    schema.cross(["d", "c"], 50)
    schema.number("n").missing(0)
    for value in values:
        with pytest.raises(ValueError, match="row 0: column c: a text must not contain (a line feed|the separator)"):
            schema.feed([{"c": value, "d": "x", "n": 1}])
    with pytest.raises(ValueError, match="row 0: column d: a text must not contain a line feed, .*got \"a\nb\""):
        schema.feed([{"c": "", "d": "a\nb", "n": 1}])
    assert len(schema.feed([{"c": "a\r,b", "d": "\r", "n": 1}])["c"].lod()[0]) == 2


def test_a_list_of_a_column_that_features_split_differently_is_refused():
    schema = anabranch.Schema()
    schema.text("c", split="|").hash(1000)
    schema.text("c", "other", split=";").hash(1000)
    with pytest.raises(ValueError, match="row 0: column c: features split the column in different ways.*got list"):
        schema.feed([{"c": ["a", "b"]}])
    assert len(np.array(schema.feed([{"c": "a|b"}])["c"])) == 2


@pytest.mark.parametrize("text", ["\udc80", "\udcff\u00e9", "\ud800", "nul\0", "\U0001f600"])
def test_hash_ids_of_any_text(text):
    assert anabranch.hash_ids([text], "c", 1000).tolist() == fed("text", text, step=HASH)[0]


@pytest.mark.parametrize("add", [
    lambda s, text: s.number(text), lambda s, text: s.text("c", text), lambda s, text: s.text("c").hash(9, text),
    lambda s, text: s.text("c").missing(text), lambda s, text: s.text("c").vocabulary(["a", text]),
    lambda s, text: s.cross(["c", text], 9), lambda s, text: s.cross(["c", "d"], 9, salt=text)])
def test_a_schema_takes_only_valid_unicode(add):
    schema = anabranch.Schema()
    with pytest.raises(ValueError, match=r"Schema: names, words and other texts must be valid Unicode, got the "
                                         r"surrogate '\\udce9' in .*: if it comes from a file, convert the file"):
        add(schema, "ros\udce9")
    assert "\udce9" not in schema.to_json()


# ---- JSON

def served(schema, text):
    """The inputs that a server makes of a request, or its error."""
    from anabranch.serving import tensors
    try:
        rows = tensors.read(text if isinstance(text, bytes) else text.encode(), tensors.JSON, [], 1 << 20,
                            lambda rows: schema.feed(rows))
    except ValueError as error:
        return str(error)
    return {name: np.array(value).tolist() for name, value in rows.items()}


NUMBERS = ["1e99999999999999999999", "-1e99999999999999999999", "1e-99999999999999999999", "9" * 5000, "-" + "9" * 5000,
           "0." + "3" * 900, "-0", "-0.0", "1E5", "1.0", "100000.0", "5e0", "12345678901234567890"]


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_of_json_keeps_its_text(text):
    schema = anabranch.Schema()
    schema.number("c").clip(-100, 100)
    schema.number("c", "list", split="e").missing(3).clip(-100, 100)
    assert served(schema, '{"rows": [{"c": %s}]}' % text) == {
        name: np.array(value).tolist() for name, value in schema.feed([{"c": text}]).items()}
    schema = anabranch.Schema()
    schema.integer("c").clip(-100, 100)
    expected = served(schema, json.dumps({"rows": [{"c": text}]}))
    assert served(schema, '{"rows": [{"c": %s}]}' % text) == expected


def test_a_text_takes_integers_of_json_and_no_other_numbers():
    schema = anabranch.Schema()
    schema.text("c").hash(1000)
    for text in ("7", "9" * 5000, "-0", "12345678901234567890"):
        assert served(schema, '{"rows": [{"c": %s}]}' % text) == {"c": [anabranch.hash_ids([text], "c", 1000).tolist()]}
    for text in ("7.0", "1e5", "1e99999999999999999999"):
        assert "row 0: column c: text must be a str or an int" in served(schema, '{"rows": [{"c": %s}]}' % text)


def test_the_name_of_rows_may_be_spelled_in_any_way():
    schema = anabranch.Schema()
    schema.integer("c").clip(-100, 100)
    for body in (r'{"r\u006fws": [{"c": "7"}]}', '{"rows": [{"c": "7"}]}'.encode("utf-16"),
                 b'\xef\xbb\xbf{"rows": [{"c": "7"}]}'):
        assert served(schema, body) == {"c": [[7]]}
    assert "either inputs or rows, got both" in served(schema, r'{"r\u006fws": [], "inputs": {}}')


def test_a_name_that_occurs_twice_is_refused():
    schema = anabranch.Schema()
    schema.integer("c").clip(-100, 100)
    assert 'the body has the name "c" more than once' in served(schema, '{"rows": [{"c": 1, "d": 2, "c": 3}]}')


def test_a_model_takes_rows_by_number(tmp_path):
    schema = anabranch.Schema(header=False)
    schema.number(1, "x").missing(2)
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
        inputs = schema.inputs()
        y = fluid.layers.fc(inputs["x"], 1, param_attr=fluid.initializer.Constant(2.0))
        executor = fluid.Executor()
        executor.run(fluid.default_startup_program())
        fluid.io.save_inference_model(str(tmp_path), ["x"], [y], executor, schema=schema)
    rows = anabranch.Predictor(str(tmp_path)).run_rows([["", 1.5], [b"", None], [7, "4"]])
    assert rows[0].tolist() == [[3], [4], [8]]
