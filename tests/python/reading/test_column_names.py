"""Columns by name, headers, salts, required values, ranges, the order of options: what a format promises about files,
and what a pass says about them."""
import math

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh_program():
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def ids(name):
    return fluid.data(name, [None, 1], "int64")


def numbers(name, width=1):
    return fluid.data(name, [None, width])


def data(schema, slots, *paths, kind="QueueDataset", threads=1):
    made = fluid.DatasetFactory().create_dataset(kind)
    made.set_use_var(slots)
    made.set_filelist([str(path) for path in paths])
    made.set_format(schema)
    made.set_batch_size(1000)
    made.set_thread(threads)
    return made


def read(made):
    batches = list(made._batches())
    return {name: np.concatenate([np.array(batch[name]) for batch in batches]).tolist() for name in batches[0]}


def write(path, text):
    path.write_text(text)
    return path


NAMED = "columns comma header\nclick = clicked\nsize = width,length\nkind = kind hash 1000\n"


def slots():
    return [ids("click"), numbers("size", 2), ids("kind")]


def test_columns_by_name_do_not_depend_on_their_order(tmp_path):
    one = read(data(NAMED, slots(), write(tmp_path / "a", "clicked,length,width,kind\n1,5,2,red\n0,6,3,blue\n")))
    with fluid.program_guard(fluid.Program()):
        path = write(tmp_path / "b", "x,kind,width,clicked,length\n9,red,2,1,5\n9,blue,3,0,6\n")
        two = read(data(NAMED, slots(), path))
    assert one == two and one["size"] == [[2, 5], [3, 6]]
    assert one["kind"] == anabranch.hash_ids([["red"], ["blue"]], "kind", 1000).tolist()


def test_a_number_is_the_salt_of_a_numbered_column(tmp_path):
    path = write(tmp_path / "a", "red,7\nblue,8\n")
    got = read(data("columns comma\nkind = 0 hash 1000\nitem = 1 hash 50\n", [ids("kind"), ids("item")], path))
    assert got["kind"] == anabranch.hash_ids([["red"], ["blue"]], 0, 1000).tolist()
    assert got["item"] == anabranch.hash_ids([[7], [8]], 1, 50).tolist()


def test_columns_that_share_a_table_share_a_salt(tmp_path):
    path = write(tmp_path / "a", "seen,bought\nshoe,hat\nhat,shoe\n")
    schema = "columns comma header\nseen = seen hash 1000 salt item\nbought = bought hash 1000 salt item\n"
    got = read(data(schema, [ids("seen"), ids("bought")], path))
    assert got["seen"] == got["bought"][::-1] == anabranch.hash_ids([["shoe"], ["hat"]], "item", 1000).tolist()


@pytest.mark.parametrize("text, words", [
    ("click,length,width,kind\n1,5,2,red\n", "a: the header has no column clicked: click, length, width, kind"),
    ("1,5,2,red\n0,6,3,blue\n", "the header has no column clicked: 1, 5, 2, red"),
    ("clicked,width,width,length,kind\n1,5,2,3,red\n", "the header has the column width more than once"),
    ("", None)])
def test_a_header_without_the_names_is_an_error_that_shows_it(tmp_path, text, words):
    made = data(NAMED, slots(), write(tmp_path / "a", text))
    if words is None:
        assert list(made._batches()) == []
    else:
        with pytest.raises(ValueError, match=words):
            read(made)


NUMBERED = "columns comma header\nclick = 0\nprice = 1\n"


@pytest.mark.parametrize("second, words", [
    ("price,click\n1.5,1\n",
     r"the header must be that of .*\n  header of .*b: price, click\n  header of .*a: click, price"),
    ("1,2.5\n0,3.5\n", r"the first line must contain the names of the columns.*got: 1, 2\.5"),
    ("click\n1\n", "the schema uses column 1, but the header has 1: click")])
def test_headers_of_numbered_columns_are_compared(tmp_path, second, words):
    first = write(tmp_path / "a", "click,price\n1,2.5\n")
    with pytest.raises(ValueError, match=words):
        read(data(NUMBERED, [ids("click"), numbers("price")], first, write(tmp_path / "b", second)))


def test_a_byte_order_mark_is_not_part_of_a_name(tmp_path):
    (tmp_path / "a").write_bytes(b"\xef\xbb\xbfclicked,length,width,kind\r\n1,5,2,red\r\n")
    assert read(data(NAMED, slots(), tmp_path / "a"))["click"] == [[1]]


# ---- rows

@pytest.mark.parametrize("line, words", [
    ("1,2,3", r"a:3:5: the line has the wrong number of fields \(3, not 2\)"),
    ("1", r"a:3:2: the line has the wrong number of fields \(1, not 2\)"),
    (",2", "a:3:1: slot click: a value is missing"), ("2,2", "a:3:1: slot click: a value is out of range"),
    ("-1,2", "slot click: a value is out of range"), ("1,", "a:3:3: slot price: a value is missing"),
    ("1,nan", "slot price: a value is out of range"), ("1,10.5", "slot price: a value is out of range")])
def test_bad_rows(tmp_path, line, words):
    schema = "columns comma header\nclick = 0 range 0 1\nprice = 1 required range -1 10\n"
    path = write(tmp_path / "a", "click,price\n1,2.5\n%s\n0,10\n" % line)
    with pytest.raises(ValueError, match=words):
        read(data(schema, [ids("click"), numbers("price")], path))
    made = data(schema, [ids("click"), numbers("price")], path)
    made.set_bad_rows("skip")
    assert read(made) == {"click": [[1], [0]], "price": [[2.5], [10]]}
    assert made.statistics()["bad_rows"] == 1


def test_hashed_text_can_be_required(tmp_path):
    """The option had no effect with `hash`."""
    path = write(tmp_path / "a", "red,1\n,2\n")
    with pytest.raises(ValueError, match="a:2:1: slot kind: a value is missing"):
        read(data("columns comma\nkind = 0 hash 9 required\nx = 1", [ids("kind"), numbers("x")], path))


def test_lines_with_further_fields_on_request(tmp_path):
    path = write(tmp_path / "a", "1,2\n3,4,5\n6,7,8,9\n")
    assert read(data("columns comma ragged\nx = 0-1\n", [numbers("x", 2)], path))["x"] == [[1, 2], [3, 4], [6, 7]]


@pytest.mark.parametrize("options, expected", [
    ("", [0, 1]), ("log", [0, 1]), ("missing 7", [7, 1]), ("missing 7 log", [math.log(8), 1]),
    ("log missing 7", [7, 1]), ("missing -3 log", [0, 1])])
def test_options_apply_in_the_order_in_which_they_are_written(tmp_path, options, expected):
    """`missing 7 log` gave 7."""
    one = math.expm1(1) if "log" in options else 1
    path = write(tmp_path / "a", "0,\n0,%.7f\n" % one)
    got = read(data("columns comma\nx = 1 %s\n" % options, [numbers("x")], path))
    assert np.array(got["x"]).ravel() == pytest.approx(expected, abs=1e-6)


# ---- what a pass says

@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
@pytest.mark.parametrize("cached", [False, True])
def test_a_pass_ends_with_a_line(tmp_path, capfd, kind, cached):
    path = write(tmp_path / "a", "click,price\n1,2.5\n0,\n1\n0,3,4\n1,\n")
    made = data("columns comma header\nclick = 0\nprice = 1 missing 2\n", [ids("click"), numbers("price")], path,
                kind=kind)
    made.set_bad_rows("skip")
    if cached:
        made.set_cache(str(tmp_path / "cache"))
    for _ in range(2):      # the second time from the cache, if there is one
        if kind == "InMemoryDataset":
            made.load_into_memory()
        assert len(read(made)["click"]) == 3
        assert capfd.readouterr().err.splitlines()[-1].endswith(": 3 rows, 2 bad lines (33 %), 2 missing values")


def test_training_says_what_it_has_read(tmp_path, capfd):
    path = write(tmp_path / "a", "price\n1\n2\n\n")
    x = numbers("price")
    loss = fluid.layers.mean(fluid.layers.fc(x, 1))
    exe = fluid.Executor()
    exe.run(fluid.default_startup_program())
    made = data("columns comma header\nprice = price", [x], path)
    result = exe.infer_from_dataset(fluid.default_main_program(), made, fetch_list=[loss])
    assert capfd.readouterr().err == "infer_from_dataset: 3 rows, 0 bad lines, 1 missing value\n"
    assert result.rows == 3


def test_multislot_says_nothing(tmp_path, capfd):
    made = data("", [numbers("x")], write(tmp_path / "a", "1 2\n"))
    assert read(made) == {"x": [[2]]} and capfd.readouterr().err == ""


@pytest.mark.parametrize("kind", ["QueueDataset", "InMemoryDataset"])
def test_bad_rows_by_share(tmp_path, kind):
    path = write(tmp_path / "a", "1\n" * 97 + "x\n" * 3)

    def passed(share):
        made = data("columns comma\nx = 0\n", [numbers("x")], path, kind=kind)
        made.set_bad_rows("skip", max_share=share)
        if kind == "InMemoryDataset":
            made.load_into_memory()
        return len(read(made)["x"])
    assert passed(0.03) == passed(None) == 97
    with pytest.raises(ValueError, match=r"3 lines of 100 are bad, more than max_share=0.02 of set_bad_rows"):
        passed(0.02)
    with pytest.raises(ValueError, match="max_share must be from 0 to 1, got 3"):
        passed(3)


@pytest.mark.parametrize("schema, words", [
    ("columns comma\nclick = clicked\n", "names of columns need \"header\""),
    ("columns comma\nclick = 0 range 1\n", "range takes two numbers"),
    ("columns comma\nclick = 0 hash 9 range 0 1\n", "hashed: \"range\" is for numbers"),
    ("columns comma\nclick = 0 hash 9 salt\n", "what follows the columns"),
    ("libsvm\nclick = label log\n", "libsvm takes no options")])
def test_bad_schemas(tmp_path, schema, words):
    with pytest.raises(ValueError, match=words):
        read(data(schema, [ids("click")], write(tmp_path / "a", "1\n")))


@pytest.mark.parametrize("values, salt, buckets, error, words", [
    ("red", "kind", 9, TypeError, r"values must be a list or an array, got str: write \['red'\]"),
    ([1.5], "kind", 9, TypeError, "a value must be a str, bytes or an int, got float 1.5"),
    (["red"], 1.5, 9, TypeError, "salt must be a str or the number"), (["red"], -1, 9, ValueError, "salt.*got -1"),
    (["red"], "kind", 0, ValueError, "buckets must be from 1"), (["red"], "kind", "9", TypeError, "buckets.*str")])
def test_hash_ids_refuses(values, salt, buckets, error, words):
    with pytest.raises(error, match=words):
        anabranch.hash_ids(values, salt, buckets)
