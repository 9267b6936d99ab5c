"""Trials of raw rows: a file's reader, Schema.feed, Predictor.run_rows and the server give the same bits for the same
row, or refuse it for the same reason.

A trial draws a schema, a file and values that say what the fields of the file say. The reader's rows are those of
another parser of the file's grammar (raw_lines.py).
"""

import contextlib
import gzip
import json
import os
import random
import re
import tempfile

import numpy as np
import raw_fields
import raw_files
import raw_lines
import raw_model
import raw_other_lines
import raw_schemas
import raw_tables

import anabranch.fluid as fluid

ROWS = 200
COUNT = {"comma": 2000, "other": 1000, "tab": 1000, "numbered": 1000, "multislot": 1000, "libsvm": 1000}
names = COUNT.__iter__
BAD = re.compile(rb"^# (?:.*?/)?rows(?:\.table)?:(\d+):\d+: (?:slot (f\d*): )?(.*?)(?: \(\d+, not \d+\))?: ",
                 re.MULTILINE)


class Differs(Exception):
    """A difference, with its row."""


def check(condition, what, *shown):
    if not condition:
        raise Differs(what + "".join(" | %.300r" % (one,) for one in shown))


def bits(value):
    """dtype, shape, offsets and bytes."""
    array = np.array(value)
    return str(array.dtype), array.shape, value.lod() if hasattr(value, "lod") else [], array.tobytes()


def drawn_file(r, name):
    if name in raw_other_lines.NAMES:
        drawn = raw_other_lines.draw(r, name)
        return drawn, raw_other_lines.text(r, drawn, ROWS)
    separator = {"comma": ",", "tab": "\t"}.get(name) or r.choice(",;| :\t" if name == "numbered" else ";| :-0")
    drawn = raw_schemas.draw(r, separator, header=name != "numbered")
    rows = []
    for _ in range(ROWS):
        calm = r.random() < 0.7
        rows.append([raw_fields.of_column(r, column, drawn.words, calm) for column in drawn.columns])
    if r.random() < 0.02:
        rows[r.randrange(ROWS)][r.randrange(len(drawn.columns))] = r.choice([b"x", b"1", b"|", b"\xff"]) * 10**6
    return drawn, raw_lines.text(r, drawn, rows)


def dataset(r, drawn, path, folder):
    made = fluid.DatasetFactory().create_dataset(r.choice(["QueueDataset", "InMemoryDataset"]))
    made.set_use_var(list(drawn.inputs.values()))
    made.set_format(drawn.schema)
    made.set_filelist([path])
    made.set_thread(r.choice([1, 3]))
    made.set_batch_size(r.choice([7, 64, 10**6]))
    if r.random() < 0.2 and not path.endswith(".table"):
        made.set_cache(os.path.join(folder, "cache"))
    made.set_bad_rows("quarantine", file=os.path.join(folder, "refused"))
    return made


def read(r, drawn, data, folder):
    """(bits of the inputs of all rows, {line: (slot, reason)}, statistics) of the reader."""
    path = os.path.join(folder, "rows")
    with open(path, "wb") as file:
        file.write(gzip.compress(data, 1) if r.random() < 0.1 else data)
    return read_file(r, drawn, path, folder)


def read_file(r, drawn, path, folder):
    made = dataset(r, drawn, path, folder)
    for _ in range(1 + bool(r.random() < 0.2)):
        if os.path.exists(os.path.join(folder, "refused")):
            os.remove(os.path.join(folder, "refused"))
        if type(made).__name__ == "InMemoryDataset":
            made.load_into_memory()
        batches = list(made._batches())
    refused = {}
    if os.path.exists(os.path.join(folder, "refused")):
        with open(os.path.join(folder, "refused"), "rb") as file:
            for line, slot, reason in BAD.findall(file.read()):
                refused[int(line)] = (slot.decode(), reason.decode())
    return made, batches, refused


def read_table(r, drawn, path, folder):
    """({name: bits} of the good rows, {number: (slot, reason)} of the others) of a file of Parquet or Arrow."""
    _, batches, refused = read_file(r, drawn, path, folder)
    return joined(batches), refused


def joined(batches):
    """{name: bits} of all rows of the batches."""
    found = {}
    for name in batches[0] if batches else ():
        arrays = [np.array(batch[name]) for batch in batches]
        offsets, lod = [0], []
        if batches[0][name].lod():
            for batch in batches:
                offsets += [offsets[-1] + one for one in batch[name].lod()[0][1:]]
            lod = [offsets]
        whole = np.concatenate(arrays)
        found[name] = str(whole.dtype), whole.shape, lod, whole.tobytes()
    return found


def refusal(drawn, row):
    """(feature, reason) of the error about a row; None for a good row."""
    try:
        drawn.schema.feed([row])
    except ValueError as error:
        text = str(error)
        found = re.search(r"row 0: column (.*?): ([^:]*?), got \"(.*)\".* \(feature (f\d*)\)", text, re.DOTALL)
        check(found, "an error does not name the column, the value and the feature", text, row)
        names = {str(one.name).replace("\0", "\\x00") for one in drawn.columns}
        check(found.group(1) in names, "another column is named", text)
        return found.group(4), found.group(2)
    return None


def judged(r, drawn, data, refused):
    """The rows (fields, values) that a parser of lines finds and Schema.feed accepts, and those (with a reason) that it
    refuses. The reader agrees."""
    good, bad = [], []
    of_columns = drawn.kind == "columns"
    for at, fields in enumerate((raw_lines if of_columns else raw_other_lines).rows_of(data, drawn)):
        line = at + 1 + (of_columns and drawn.named)
        reader = refused.get(line)
        if not isinstance(fields, list):
            expected = reader == fields if fields else reader and not reader[0]
            check(expected, "the reader accepts a malformed line, or refuses it otherwise", line, reader, fields)
            continue
        row = {column.name: raw_fields.value(r, field, column)
               for column, field in zip(drawn.columns, fields) if column.used}
        why = refusal(drawn, row)
        check(why == reader, "the reader and Schema.feed disagree", line, reader, why, row, fields)
        if why is None:
            good.append((fields, row))
        else:
            bad.append((fields, row, why))
    return good, bad


def no_file_could_hold(r, drawn, good):
    """A text with an end of line, or with a tab between tabs, is refused."""
    texts = [column for column in drawn.columns if column.used and column.type == "text"]
    if not texts:
        return
    (fields, row), column = r.choice(good), r.choice(texts)
    text = raw_fields.as_text(fields[drawn.columns.index(column)])
    at = r.randrange(len(text) + 1)
    odd = text[:at] + r.choice("\n\t" if drawn.separator == "\t" or drawn.kind != "columns" else "\n") + text[at:]
    try:
        drawn.schema.feed([{**row, column.name: r.choice([odd, odd.encode("utf-8", "surrogateescape")])}])
    except ValueError as error:
        said = "must not contain" in str(error) or "an index must be" in str(error)
        check("row 0: column " in str(error) and said, "another error", str(error))
    else:
        check(False, "a text that no file could hold is accepted", odd)


def in_rows(drawn, data, r):
    with tempfile.TemporaryDirectory(prefix="trials") as folder:
        made, batches, refused = read(r, drawn, data, folder)
        good, bad = judged(r, drawn, data, refused)
        counts = made.statistics()
        check((counts["rows"], counts["bad_rows"]) == (len(good), len(refused)), "the statistics differ", counts,
              len(good), len(refused))
        if not good:
            return "ran", "no good rows"
        expected = joined(batches)
        for way, rows in raw_tables.ways(r, drawn, good):
            fed = {name: bits(value) for name, value in raw_tables.feed(drawn, way, rows).items()}
            for name in expected:
                check(fed[name] == expected[name], "%s of the reader and of %s differ" % (name, way),
                      expected[name][:3], fed[name][:3])
        if drawn.kind == "columns":
            raw_files.compare(r, drawn, good, bad, lambda path: read_table(r, drawn, path, folder), expected, check,
                              folder)
        no_file_could_hold(r, drawn, good)
        raw_model.compare(r, drawn, good, bad, made, folder, check)
        return "ran", "%d good rows, %d refused" % (len(good), len(refused))


@contextlib.contextmanager
def drawn_trial(name, number):
    """(random numbers, a Drawn, the bytes of its file) of a trial, in new programs."""
    r = random.Random("raw_rows/%s/%d" % (name, number))
    flushed = fluid.get_flags("FLAGS_flush_denormals")
    fluid.set_flags({"FLAGS_flush_denormals": False})  # a saved model has operators that the other has not
    try:
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()):
            with fluid.unique_name.guard():
                drawn, data = drawn_file(r, name)
                drawn.inputs = drawn.schema.inputs()
                yield r, drawn, data
    finally:
        fluid.set_flags(flushed)


def trial(name, number):
    with drawn_trial(name, number) as (r, drawn, data):
        try:
            return in_rows(drawn, data, r)
        except Differs as differs:
            return "ROWS", "%s | %s" % (differs, json.dumps(json.loads(drawn.schema.to_json())["features"]))
