"""``anabranch.Schema``: what each step gives, which rows are malformed, and what a mistake in a schema says."""
import copy
import math

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def schema():
    return anabranch.Schema()


def values(feature, given):
    return np.array(feature._schema.transform(feature.name, given)).ravel().tolist()


def read(made, path, names=(), **settings):
    """(values by feature, statistics) of a pass."""
    data = fluid.DatasetFactory().create_dataset("QueueDataset")
    data.set_use_var(list(made.inputs(*names).values()))
    data.set_format(made)
    data.set_filelist([str(path)])
    data.set_batch_size(1000)
    for name, arguments in settings.items():
        getattr(data, name)(*arguments)
    batch, = data._batches()
    return {name: np.array(value).tolist() for name, value in batch.items()}, data.statistics()


NAN = math.nan
EXPECTED = [
    (lambda s: s.number("x"), ["1.5", 2, 0.1, "1e-50"], [1.5, 2, float(np.float32(0.1)), 0]),
    (lambda s: s.number("x").missing(7), ["", None, NAN, "nan", "-NaN", 1], [7, 7, 7, 7, 7, 1]),
    (lambda s: s.number("x").missing(7).log(), ["", 0], [float(np.log1p(np.float32(7))), 0]),
    (lambda s: s.number("x").log().missing(7), ["", -3], [7, 0]),
    (lambda s: s.number("x").clip(0, 10).missing(-1), ["", 5, 11, -4, "1e39", "-inf"], [-1, 5, 10, 0, 10, 0]),
    (lambda s: s.number("x").missing(-1).clip(0, 10), ["", 5], [0, 5]),
    (lambda s: s.number("x").normalize(1, 4), [3, 1], [0.5, 0]),
    (lambda s: s.number("x").missing(2).bucketize([1, 2, 3]), [0.5, 1, "2.9", 3, "inf", ""], None),
    (lambda s: s.integer("x"), ["-5", "18446744073709551615", 3], [-5, -1, 3]),
    (lambda s: s.integer("x").missing(9).clip(0, 5), ["", "7", "-2", "18446744073709551615"], [5, 5, 0, 5]),
    (lambda s: s.text("x").vocabulary(["b", "a"]), ["a", "b", "c", None], [2, 1, 0, 0]),
    (lambda s: s.text("x").vocabulary(["b", "a"], others=False), ["a", "b"], [1, 0]),
    (lambda s: s.text("x").missing("a").vocabulary(["b", "a"]), ["", None], [2, 2]),
    (lambda s: s.text("x", split="|").vocabulary(["b", "a"]), ["a|b", ["b"], [], "a||"], [2, 1, 1, 0, 2, 0, 0])]


@pytest.mark.parametrize("add, given, expected", EXPECTED)
def test_steps(add, given, expected):
    feature = add(schema())
    if expected is None:
        with pytest.raises(ValueError, match="row 4: column x: a value does not fit a float32"):
            values(feature, given)
        del given[4]
        expected = [0, 1, 2, 3, 2]
    assert values(feature, given) == expected


def test_hashes_are_those_of_hash_ids_and_of_formats(tmp_path):
    made = schema()
    made.text("kind").hash(1000)
    made.text("seen", split="|").hash(1000, salt="item")
    made.text("bought").hash(1000, salt="item")
    (tmp_path / "a").write_text("bought,seen,kind\nhat,shoe|hat,red\n,,7\n")
    got, _ = read(made, tmp_path / "a")
    assert got["kind"] == anabranch.hash_ids([["red"], [7]], "kind", 1000).tolist()
    assert got["bought"] == anabranch.hash_ids([["hat"], [""]], "item", 1000).tolist()
    assert got["seen"] == anabranch.hash_ids([["shoe"], ["hat"], [""]], "item", 1000).tolist()
    assert got["seen"][1] == got["bought"][0]


def test_columns_by_number_have_the_salts_of_formats(tmp_path):
    (tmp_path / "a").write_text("1\tred\t2.5\t3\n0\tblue\t\t4\n")
    made = anabranch.Schema("\t", header=False)
    made.label(0, name="y")
    made.text(1, "kind").hash(1000)
    made.number([2, 3], "size").missing(0).log()
    got, counts = read(made, tmp_path / "a")
    assert got["kind"] == anabranch.hash_ids([["red"], ["blue"]], 1, 1000).tolist()
    assert counts["missing"] == 1 and got["y"] == [[1], [0]]
    old = "columns tab\ny = 0\nkind = 1 hash 1000\nsize = 2-3 log"
    with fluid.program_guard(fluid.Program()):
        assert read(made, tmp_path / "a", set_format=(old,))[0] == got
    fed = made.feed([("1", "red", 2.5, 3), [0, "blue", None, 4]])
    assert {name: value.tolist() for name, value in fed.items()} == got
    with pytest.raises(ValueError, match="row 0: it must have a column 2, got 2 values"):
        made.feed([("1", "red")])


def test_a_cross_is_a_hash_of_all_parts():
    made = schema()
    age = made.number("age").missing(0).bucketize([18, 30])
    cross = made.cross([age, "city"], 1 << 40)
    assert (cross.name, cross.columns, cross.size) == ("age_x_city", ["age", "city"], 1 << 40)
    rows = [{"age": a, "city": c} for a, c in [(20, "a"), (29, "a"), (30, "a"), (20, "b"), ("20", "a")]]
    ids = made.feed(rows, ["age_x_city"])["age_x_city"].ravel().tolist()
    assert ids[0] == ids[1] == ids[4] and len(set(ids)) == 3
    texts = made.cross(["p", "q"], 1 << 40)
    split = [texts._schema.transform("p_x_q", {"p": [p], "q": [q]}).item() for p, q in [("ab", "c"), ("a", "bc")]]
    assert split[0] != split[1]
    salted = made.cross(["p", "q"], 1 << 40, salt="p_x_q", name="other")
    assert made.transform(salted.name, {"p": ["ab"], "q": ["c"]}).item() == split[0]


def test_bad_rows_of_a_pass(tmp_path):
    made = schema()
    made.label("y", high=3)
    made.number("x")
    made.text("kind").vocabulary(["red", "blue"], others=False)
    made.text("name").required().hash(10)
    path = tmp_path / "a"
    good = "3,1.5,red,n"
    for line, words in [("4,1,red,n", "a:3:1: slot y: a value is out of range"), (",1,red,n", "slot y: .* missing"),
                        ("-1,1,red,n", "slot y: a value is out of range"), ("1,,red,n", "a:3:3: slot x: .*missing"),
                        ("1,1e39,red,n", "slot x: a value does not fit a float32"), ("1,x,red,n", "slot x: .*a number"),
                        ("1,inf,red,n", "slot x: a value does not fit"), ("1.0,1,red,n", "slot y: .*an integer"),
                        ("1,1,green,n", "a:3:5: slot kind: a text is not in the vocabulary"),
                        ("1,1,red,", "a:3:9: slot name: a value is missing"), ("1,1,red", "wrong number of fields")]:
        path.write_text("y,x,kind,name\n%s\n%s\n" % (good, line))
        with fluid.program_guard(fluid.Program()), pytest.raises(ValueError, match=words):
            read(made, path)
        with fluid.program_guard(fluid.Program()):
            got, counts = read(made, path, set_bad_rows=("skip",))
        assert got["y"] == [[3]] and counts["bad_rows"] == 1


def test_the_header_is_checked(tmp_path):
    made = schema()
    made.number("price")
    (tmp_path / "a").write_text("id,pricee\n1,2\n")
    with pytest.raises(ValueError, match=r"the header has no column price: id, pricee; did you mean pricee\?"):
        read(made, tmp_path / "a")


def test_the_cache_knows_the_schema(tmp_path):
    (tmp_path / "a").write_text("x\n1\n9\n")
    found = []
    for high in (5, 5, 100):
        made = schema()
        made.number("x").clip(0, high)
        with fluid.program_guard(fluid.Program()):
            found.append(read(made, tmp_path / "a", set_cache=(str(tmp_path / "cache"),))[0]["x"])
    assert found == [[[1], [5]], [[1], [5]], [[1], [9]]]


BAD_LINES = ["1,x,red,1", "1,1e39,red,1", "1,,red,1", "1,11,red,1", "1,1,green,1", "1,1,,1", "1.5,1,red,1",
             "99999999999999999999,1,red,1", "1,1,red", "1,1,red,1,1", '1,1,red,"1']


@pytest.mark.parametrize("line", BAD_LINES)
def test_the_cache_keeps_bad_rows(tmp_path, line):
    made = schema()
    made.integer("i")
    made.number("x").range(0, 10)
    made.text("kind").required().vocabulary(["red", "blue"], others=False)
    path = tmp_path / "a"
    path.write_text("i,x,kind,n\n1,2,red,1\n%s\n3,4,blue,1\n" % line)
    found = []
    for _ in range(3):
        with fluid.program_guard(fluid.Program()):
            found.append(read(made, path, set_cache=(str(tmp_path / "cache"),), set_bad_rows=("skip",)))
    assert found[0][1]["bad_rows"] == 1 and found[0][0]["i"] == [[1], [3]]
    assert [got for got, _ in found] == [found[0][0]] * 3 and found[1][1]["bad_rows"] == found[2][1]["bad_rows"] == 1


def test_inputs_are_declared(tmp_path):
    made = schema()
    made.number(["w", "h"], "size")
    made.text("tags", split="|").hash(9)
    made.label("y", dtype="float32")
    found = {name: (v.shape, v.lod_level, v.dtype == fluid.core.VarDesc.VarType.FP32)
             for name, v in made.inputs().items()}
    assert found == {"size": ((-1, 2), 0, True), "tags": ((-1, 1), 1, False), "y": ((-1, 1), 0, True)}
    with fluid.program_guard(fluid.Program()):
        assert list(made.inputs("y", "size")) == ["y", "size"]
    assert [made[name].size for name in made] == [None, 9, None]
    assert len(made) == 3 and "size" in made and "w" not in made and made.columns == ["w", "h", "tags", "y"]


def test_a_data_frame_and_its_rows():
    class Frame(dict):      # what pandas has: columns with tolist()
        def __getitem__(self, name):
            return np.array(dict.__getitem__(self, name))
    made = schema()
    made.number("x").missing(0)
    made.text("t").hash(50)
    frame = Frame(x=[1.5, NAN], t=["a", "b"], z=[1, 2])
    rows = [{"x": 1.5, "t": "a"}, {"x": None, "t": "b"}]
    assert [v.tolist() for v in made.feed(frame).values()] == [v.tolist() for v in made.feed(rows).values()]


@pytest.mark.parametrize("rows, words", [
    ([{"x": 1}], r"row 0: there is no column kind, got x"), ([{}], "row 0: there is no column x, got nothing"),
    ([{"x": 1, "kidn": "a"}], r"no column kind, got x, kidn; did you mean kidn\?"),
    ([{"x": 1, "kind": "a"}, {"x": "one", "kind": "a"}], 'row 1: column x: a value is not a number, got "one"'),
    ([{"x": True, "kind": "a"}], "column x: a bool has no single spelling: .*got bool True"),
    ([{"x": 1, "kind": 7.0}], "column kind: text must be a str or an int: 7 and 7.0 differ, got float 7.0"),
    ([{"x": object(), "kind": "a"}], "column x: a value must be a str, bytes, a number or None, got object <object"),
    ([{"x": [1], "kind": "a"}], r"column x: the column is not a list \(split\), got list \[1\]"),
    ({"x": [1, 2], "kind": ["a"]}, "columns must have the same length, got 2 for x and 1 for kind"),
    ({"x": 1, "kind": "a"}, "column x must be a list or an array of values, got int"),
    (None, "rows must be a list of dicts or a dict of lists, got NoneType"),
    ("x", "rows must be a list of dicts or a dict of lists, got str"), ([5], "row 0 must be a dict .*got int"),
    ([[1, 2]], "row 0 must be a dict, because the schema has the names of the columns, got list")])
def test_bad_rows_of_python(rows, words):
    made = schema()
    made.number("x")
    made.text("kind").hash(9)
    with pytest.raises(ValueError, match=words):
        made.feed(rows)


@pytest.mark.parametrize("mistake, error, words", [
    (lambda s: s.number("x").hash(3), ValueError, "feature x: a step of numbers must be one of missing, .*got hash"),
    (lambda s: s.text("x").log(), ValueError, "feature x: a step of text must be one of .*got log"),
    (lambda s: s.integer("x").log(), ValueError, "a step of integers must be one of missing, range, clip, got log"),
    (lambda s: s.text("x").hash(3).missing("a"), ValueError, "missing cannot follow a step that gives ids"),
    (lambda s: s.number("x").bucketise([1]), AttributeError, "a feature has no step 'bucketise'; did you mean bucket"),
    (lambda s: s.number("x").normalise(1, 2), AttributeError, "did you mean normalize"),
    (lambda s: s.number("x").clip(3, 1), ValueError, "feature x: clip: the lower bound must not exceed .*3 and 1"),
    (lambda s: s.number("x").clip(low=3), TypeError, "Feature.clip: high must be given"),
    (lambda s: s.number("x").normalize(0, 0), ValueError, "the scale must be above 0, got 0"),
    (lambda s: s.number("x").bucketize([2, 1]), ValueError, "the bounds must ascend"),
    (lambda s: s.number("x").bucketize([]), ValueError, "the bounds must be a list"),
    (lambda s: s.number("x").missing("a"), ValueError, "missing: the value must be a number, got \"a\""),
    (lambda s: s.number("x").missing(NAN), TypeError, "missing of x must be a str or a number, got nan"),
    (lambda s: s.number("x").missing(None), TypeError, "missing of x must be a str or a number, got None"),
    (lambda s: s.integer("x").missing(0.5), ValueError, "must be an integer, got 0.5"),
    (lambda s: s.text("x").hash(0), ValueError, "the number of buckets of hash must be from 1 to"),
    (lambda s: s.text("x").vocabulary(["a", "a"]), ValueError, "the vocabulary contains \"a\" twice"),
    (lambda s: s.text("x").vocabulary("ab"), ValueError, "the words must be a list"),
    (lambda s: s.number(1.5), TypeError, "a column must be a name .*got float"),
    (lambda s: s.number([]), ValueError, "name must be given for 0 columns"),
    (lambda s: s.number(["a", "b"]), ValueError, "name must be given for 2 columns"),
    (lambda s: s.text("x", split="||"), ValueError, "split must be a single character"),
    (lambda s: (s.number("x"), s.text("x")), ValueError, "there is already a feature x"),
    (lambda s: s.label("y", dtype="int32"), ValueError, "dtype must be int64 or float32, got 'int32'"),
    (lambda s: s.cross(["a"], 9), ValueError, "a cross must have at least two parts, got 1"),
    (lambda s: s.cross([s.number("p"), "a"], 9), ValueError, "must be text or an id, got a number: bucketize"),
    (lambda s: s.cross([s.text("p", split="|"), "a"], 9), TypeError, "a part must have one value, got p"),
    (lambda s: s.cross(["a", "b"], 9).hash(9), TypeError, "a_x_b is a cross, which takes no steps, got hash"),
    (lambda s: (s.text("x"), s.inputs()), ValueError,
     "feature x: the last step of a text feature must be hash or vocabulary"),
    (lambda s: (s.number("x"), s["y"]), ValueError, "there is no feature 'y'; there are x"),
    (lambda s: (s.number("price"), s.transform("prise", [1])), ValueError, "no feature 'prise'; did you mean price"),
    (lambda s: (s.number(["a", "b"], "x"), s.transform("x", [1])), ValueError, "x has the columns a, b: values must"),
    (lambda s: anabranch.Schema("::"), ValueError, "separator must be a single character"),
    (lambda s: anabranch.Schema(separator_=","), TypeError, "no argument 'separator_'; did you mean separator"),
    (lambda s: anabranch.Schema(header=False).number("a"), ValueError, "columns must be numbers from 0, because")])
def test_mistakes_are_explained(mistake, error, words):
    with pytest.raises(error, match=words):
        mistake(schema())


def test_a_refused_step_leaves_the_feature_as_it_was():
    made = schema()
    feature = made.number("x").missing(1)
    with pytest.raises(ValueError, match="clip"):
        feature.clip(3, 1)
    assert repr(feature) == "Feature(x).missing(1)" and values(feature, [None, 9]) == [1, 9]


def test_json_is_the_schema():
    made = anabranch.Schema("|", ragged=True)
    age = made.number("age").missing(np.float32(0.5)).bucketize(np.array([1.5, 2]))
    made.text("tags", "words", split=";").missing("x").vocabulary(("é", "x"))
    made.cross([age, "city"], np.int64(100), salt="s")
    again = anabranch.Schema.from_json(made.to_json())
    assert again.to_json() == made.to_json() and repr(again) == "Schema(age, words, age_x_city)"
    row = [{"age": 1.7, "tags": "x;é;z", "city": "b"}]
    assert [np.array(v).tolist() for v in again.feed(row).values()] == \
        [np.array(v).tolist() for v in made.feed(row).values()]
    assert np.array(made.feed(row)["words"]).ravel().tolist() == [2, 1, 0]


def test_feed_compiles_a_schema_once(monkeypatch):
    compiled, make = [], anabranch.schema._core.schema_reader
    monkeypatch.setattr(anabranch.schema._core, "schema_reader", lambda *args: compiled.append(args) or make(*args))
    made = anabranch.Schema()
    age = made.number("age").missing(30)
    made.text("kind").hash(100)
    rows = [{"age": "", "kind": "red"}, {"age": 50, "kind": "blue"}]
    for _ in range(3):
        assert made.feed(rows)["age"].tolist() == [[30], [50]]
        assert made.transform("age", ["", 50]).tolist() == [[30], [50]]
    assert len(compiled) == 2
    age.normalize(30, 10)
    assert made.feed(rows)["age"].tolist() == [[0], [2]]         # the steps of now
    assert copy.deepcopy(made).feed(rows)["age"].tolist() == [[0], [2]]      # a reader cannot be copied


def test_missing_of_a_hashed_column_is_an_error():
    for options in ("hash 100 missing 7", "missing 7 hash 100"):
        with fluid.program_guard(fluid.Program(), fluid.Program()):
            dataset = fluid.DatasetFactory().create_dataset()
            dataset.set_use_var([fluid.data("kind", [None, 1], "int64")])
        dataset.set_format("columns comma header\nkind = kind " + options)
        with pytest.raises(ValueError, match='"missing" has no effect on a column with "hash"'):
            next(dataset._batches())
