"""Files that are not what their format says: the error says what they seem to be, and what to do."""
import bz2
import lzma
import re

import pytest

import anabranch
import anabranch.fluid as fluid


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        yield


def refused(content, separator=",", name="price", kind="number", files=None):
    """The error of reading a file with one column."""
    if isinstance(content, str):
        content = content.encode()
    with open("a.csv", "wb") as file:
        file.write(content)
    schema = anabranch.Schema(separator)
    getattr(schema, kind)(name)
    data = fluid.DatasetFactory().create_dataset()
    data.set_use_var(list(schema.inputs().values()))
    data.set_format(schema)
    data.set_filelist(files or ["a.csv"])
    with pytest.raises(fluid.core.EnforceNotMet) as error:
        list(data._batches())
    return str(error.value)


CSV = "price,kind\n1,2\n"
FILES = [
    (CSV.replace(",", ";"), "the separator of the file seems to be ';', but that of the format is ','"),
    (CSV.replace(",", "\t"), "the separator of the file seems to be a tab, but that of the format is ','"),
    ("1 3:0.5 8:2\n", r"it looks like a line of libsvm, which anabranch.Schema.libsvm\(\) describes"),
    (bz2.compress(CSV.encode()), r'is a bzip2 file, .* set_pipe_command\("bzip2 -dc"\)'),
    (lzma.compress(CSV.encode()), r'is an xz file, .* set_pipe_command\("xz -dc"\)'),
    (b"PK\x03\x04" + bytes(40), "is a zip file"),
    (CSV.encode("utf-16"), r'is text in UTF-16, .* set_pipe_command\("iconv -f UTF-16 -t UTF-8"\)'),
    ("price,kind\n 1,2\n", "hint   a number must have no spaces around it"),
    ("price,kind\nNA,2\n", 'hint   a missing value is an empty field, for which a step or option "missing" gives'),
    ("price,kind\nTrue,2\n", "hint   write 1 and 0, or read the column as text"),
    ('price,kind\n"1,500.00",2\n', "hint   a number has a decimal point, not a comma"),
    ("price,kind\n2024-01-05,2\n", "hint   a date must be converted to a number, or be read as text"),
    ("price,kind\n$15,2\n", "hint   a number must have no unit or currency"),
    ("price,kind\n15%,2\n", "hint   a number must have no unit or currency"),
    ("price,kind\n€15,2\n", "hint   a number must have no unit or currency"),
    ("price,kind\n1,2\n\n", r"3:1: the line has the wrong number of fields \(1, not 2\).*\n.*hint   the line is empty"),
    ("price,kind\n1,\"a\nb\"\n", "hint   a quoted field ends in its line, and a quote in it is written twice"),
    ("price,kind\nred,2\n", r'number: red,2\n *hint   set_bad_rows\("skip"\) lets a pass continue'),
]


@pytest.mark.parametrize("content, message", FILES)
def test_the_error_says_what_to_do(content, message):
    found = refused(content)
    assert re.search(message, found), found


def test_numbers_in_other_formats():
    assert "hint   a number has a decimal point, not a comma" in refused("price;kind\n1,5;2\n", ";")
    assert "hint   an integer has no decimal point" in refused("id\n7.0\n", name="id", kind="integer")


def test_a_pattern_instead_of_a_path():
    assert "file part-* does not exist: set_filelist takes paths, not a pattern" in refused(CSV, files=["part-*"])


def test_csv_without_a_format():
    with open("a.csv", "w") as file:
        file.write(CSV)
    data = fluid.DatasetFactory().create_dataset()
    data.set_use_var([fluid.data("price", [None, 1])])
    data.set_filelist(["a.csv"])
    with pytest.raises(ValueError, match="hint   set_format says that lines are something else than MultiSlot text"):
        list(data._batches())
