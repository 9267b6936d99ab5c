"""``anabranch data stats``: what it counts is what the reader reads, and the schema that it proposes fits the files."""
import gzip
import os

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch.starting import data_command, features
from anabranch.starting.drift import drift, psi
from anabranch.starting.statistics import Form, form_of, read


def pass_over(schema, path):
    """dict: the reader's counts of a pass that skips malformed lines."""
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        data = fluid.DatasetFactory().create_dataset("QueueDataset")
        data.set_use_var(list(schema.inputs().values()))
        data.set_format(schema)
        data.set_filelist([str(path)])
        data.set_bad_rows("skip")
        rows = sum(len(np.array(batch[next(iter(schema))])) for batch in data._batches())
        return dict(data.statistics(), rows=rows)


FIELDS = ["", "1", "-2.5", "nan", "1e39", "x", "\u00e9", '"a,b"', '"q""q"', '"open', 'a"b', "0x1p3", " ",
          "18446744073709551616"]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_bad_lines_and_missing_values_are_those_of_the_reader(seed, end, tmp_path):
    draw = np.random.RandomState(seed)
    lines = ["a,b,c"] + [",".join(draw.choice(FIELDS, draw.choice([3, 3, 3, 3, 2, 4]))) for _ in range(400)]
    path = tmp_path / "a.csv"
    path.write_bytes(b"\xEF\xBB\xBF" * (seed % 2) + end.join(lines).encode())
    stats = read([str(path)], Form())
    schema = anabranch.Schema()
    for name in "abc":
        schema.text(name).hash(10)
    counts = pass_over(schema, path)
    assert (stats.rows, stats.bad) == (counts["rows"], counts["bad_rows"]) and stats.bad > 20
    assert [column.name for column in stats.columns] == ["a", "b", "c"]
    for column in stats.columns:
        schema = anabranch.Schema()
        schema.number(column.name).missing(0)
        counts = pass_over(schema, path)
        assert counts["rows"] == column.values - column.not_numbers - column.infinite
        assert counts["missing"] == column.empty + column.nan
        schema = anabranch.Schema()
        schema.integer(column.name).missing(0)
        assert pass_over(schema, path)["rows"] == column.integers + column.empty


def write(path, columns):
    """Writes a CSV file of a dict of columns."""
    with open(path, "w") as file:
        file.write(",".join(columns) + "\n")
        file.writelines(",".join(map(str, row)) + "\n" for row in zip(*columns.values()))
    return str(path)


def clicks(seed, rows=20000, price=2.0):
    draw = np.random.RandomState(seed)
    return {"clicked": draw.randint(0, 2, rows), "user_id": draw.randint(0, 3000, rows),
            "price": ["" if draw.rand() < 0.1 else "%.2f" % value for value in np.exp(draw.normal(price, 1.5, rows))],
            "kind": draw.choice(["red", "dark red", "blue"], rows, p=[0.7, 0.2, 0.1]),
            "one": ["same"] * rows, "row": ["r%d" % i for i in range(rows)],
            "tags": ["|".join(draw.choice(["new", "old", "sale"], 2)) for _ in range(rows)]}


@pytest.mark.parametrize("encoding, shown", [("latin-1", r"'ros\\udce9'"), ("utf-16-le", r"'y\\x00'")])
def test_names_that_are_not_utf8_are_an_error(encoding, shown, tmp_path):
    names = "y,ros\u00e9" if encoding == "latin-1" else "y"
    (tmp_path / "a.csv").write_bytes((names + "\n1\n2\n").encode(encoding))
    with pytest.raises(ValueError, match="a.csv: the names of the columns must be UTF-8, got %s: convert" % shown):
        read([str(tmp_path / "a.csv")], form_of(str(tmp_path / "a.csv")))


@pytest.mark.parametrize("header", [True, False])
def test_a_first_line_whose_quotes_do_not_end_is_an_error(header, tmp_path):
    (tmp_path / "a.csv").write_text('x,y,"z\n1,2,3\n')
    with pytest.raises(ValueError, match="a.csv:1:5: the first line must show the columns: a quote does not end"):
        read([str(tmp_path / "a.csv")], Form(header=header))


def test_a_byte_order_mark_does_not_belong_to_the_first_value(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"\xEF\xBB\xBF5,a\n7,b\n")
    stats = read([str(tmp_path / "a.csv")], Form(header=False))
    assert (stats.columns[0].numbers, stats.columns[0].low) == (2, 5)


def test_numbers_texts_and_distinct_values(tmp_path):
    columns = clicks(0)
    stats = read([write(tmp_path / "a.csv", columns)], Form())
    price = stats.column("price")
    values = np.array([float(value) for value in columns["price"] if value], "float32").astype("float64")
    assert (price.empty, price.low, price.high) == (20000 - len(values), values.min(), values.max())
    assert (price.mean, price.deviation) == pytest.approx((values.mean(), values.std()), rel=1e-9)
    assert np.median(price.sample) == pytest.approx(np.median(values), rel=0.1) and len(price.sample) == 4096
    for name in ("user_id", "row", "price"):
        column = stats.column(name)
        exact = len(set(columns[name]) - {""})
        assert column.distinct == pytest.approx(exact, rel=0.05) and not column.distinct_is_exact
    kinds, counts = np.unique(columns["kind"], return_counts=True)
    assert dict(stats.column("kind").heavy) == dict(zip(kinds, counts)) and stats.column("kind").distinct == 3


def test_a_heavy_value_is_found_among_many(tmp_path):
    draw = np.random.RandomState(1)
    texts = ["heavy" if draw.rand() < 0.02 else "t%d" % draw.randint(10 ** 6) for _ in range(50000)]
    column = read([write(tmp_path / "a.csv", {"t": texts, "u": texts})], Form()).column("t")
    text, count = column.heavy[0]
    assert text == "heavy" and count <= texts.count("heavy") <= count + column.heavy_lost


@pytest.mark.parametrize("header", [True, False])
def test_the_proposed_schema_reads_every_row(header, tmp_path):
    path = tmp_path / "a.csv"
    write(path, clicks(2, 3000))
    if not header:
        path.write_text(path.read_text().partition("\n")[2])
    form = form_of(str(path))
    assert form == Form(",", header)
    stats = read([str(path)], form)
    proposed = features.proposals(stats)
    assert [one.kind for one in proposed] == ["number", "hash" if header else "number", "number", "vocabulary",
                                              "ignored", "ignored", "list"]
    names = {"anabranch": anabranch}
    exec(features.schema_code(form, proposed), names)    # noqa: S102 - the command prints it to be pasted
    counts = pass_over(names["schema"], path)
    assert (counts["rows"], counts["bad_rows"]) == (3000, 0) and counts["missing"] == stats.columns[2].empty
    assert ".log()" in features.schema_code(form, proposed)


def test_prose_becomes_words_and_other_text_does_not(tmp_path):
    draw = np.random.RandomState(3)
    words = ["w%d" % number for number in range(200)]
    columns = {"prose": [" ".join(draw.choice(words, draw.randint(2, 8))) for _ in range(2000)],
               "time": ["2026-03-%02d %02d:%02d:%02d" % tuple(draw.randint(1, [29, 24, 60, 60])) for _ in range(2000)],
               "city": ["New City %d" % draw.randint(100) for _ in range(2000)],
               "person": [" ".join("".join(draw.choice(list("abcdefgh"), 8)) for _ in "ab") for _ in range(2000)]}
    path = write(tmp_path / "a.csv", columns)
    stats = read([path], form_of(path))
    prose = stats.column("prose")
    assert (prose.words, prose.phrases) == (sum(len(text.split()) for text in columns["prose"]), 2000)
    assert prose.distinct_words == 200 and prose.spelled == prose.words and stats.column("time").spelled == 0
    proposed = features.proposals(stats)
    assert [one.kind for one in proposed] == ["words", "date", "hash", "ignored"]
    names = {"anabranch": anabranch}
    exec(features.schema_code(stats.form, proposed), names)    # noqa: S102 - the command prints it to be pasted
    assert names["schema"].transform("prose", columns["prose"]).lod()[0][-1] == prose.words


def test_drift_names_what_changed(tmp_path):
    before, after = clicks(3, 5000), clicks(4, 5000, price=3.0)
    after["kind"] = ["green" if i % 4 == 0 else kind for i, kind in enumerate(after["kind"])]
    after["clicked"] = [value if i % 2 else "" for i, value in enumerate(after["clicked"])]
    one, other = (read([write(tmp_path / name, columns)], Form()) for name, columns in (("a", before), ("b", after)))
    found = {each.name: each for each in drift(one, other)}
    assert [found[name].grade for name in ("price", "kind", "clicked", "tags")] == ["strong", "strong", "strong", ""]
    assert found["kind"].what == "green 0 % -> 25 %" and found["clicked"].what == "missing 0 % -> 50 %"
    assert found["price"].what.startswith("mean ")
    assert psi([50, 50], [50, 50]) == 0 and psi([90, 10], [10, 90]) == pytest.approx(1.6 * np.log(9))


def run(*args, capsys, code=0):
    assert data_command.main(["stats", *map(str, args)]) == code
    captured = capsys.readouterr()
    return captured.out if code == 0 else captured.err


def test_the_report_fits_the_terminal(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = write("a.csv", clicks(5, 2000))
    with open(path, "a") as file:
        file.write("1,2\n")
    other = write("b.csv", clicks(6, 2000, price=5))
    schema = "schema.py"
    text = run(path, "--against", other, "--schema", schema, capsys=capsys)
    assert max(map(len, text.splitlines())) <= 80
    assert "2000 rows, 7 columns, 1 bad line" in text and "a.csv:2002:4" in text and "strong" in text
    names = {}
    exec((tmp_path / schema).read_text(), names)     # noqa: S102 - the command has just written it
    assert list(names["schema"]) == ["clicked", "user_id", "price", "kind", "tags"]


def test_compressed_files_patterns_and_tabs(tmp_path, capsys):
    for day in range(2):
        with gzip.open(tmp_path / ("day-%d.tsv.gz" % day), "wt") as file:
            file.write("a\tb\n" + "x\t1\ny\t2\n" * 50)
    text = run(tmp_path / "day-*.gz", capsys=capsys)
    assert "2 files: 200 rows, 2 columns, 0 bad lines" in text and "Schema(separator='\\t')" in text


def test_mistakes(tmp_path, capsys):
    assert "there is no file" in run(tmp_path / "nothing.csv", capsys=capsys, code=1)
    (tmp_path / "empty.csv").write_text("")
    assert "empty.csv is empty" in run(tmp_path / "empty.csv", capsys=capsys, code=1)
    (tmp_path / "head.csv").write_text("a,b\n")
    assert "no well-formed row" in run(tmp_path / "head.csv", capsys=capsys, code=1)
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    assert "column a more than once" in run(tmp_path / "twice.csv", "--header", "yes", capsys=capsys, code=1)
    one = write(tmp_path / "a.csv", {"a": [1], "b": [2]})
    other = write(tmp_path / "b.csv", {"a": [1], "c": [2]})
    assert "must have the same columns, got a, c instead of a, b" in run(one, other, capsys=capsys, code=1)
    assert "there is no column b, got a, c" in run(one, "--against", other, capsys=capsys, code=1)


def test_memory_does_not_grow_with_the_file(tmp_path):
    import resource
    path = tmp_path / "big.csv"
    with open(path, "w") as file:
        file.write("id,text\n")
        file.writelines("%d,%s\n" % (i, "t" * 40 + str(i)) for i in range(600000))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read([str(path)], Form())
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown * 1024 < os.path.getsize(path) / 3, grown
