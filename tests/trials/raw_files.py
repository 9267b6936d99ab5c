"""Raw rows in files of Parquet and Arrow: the bits and refusals of a text file with the same rows. Most rows of a table
are converted column by column, and those near a refused one row by row, so both kinds are drawn."""

import os

import numpy as np
import raw_tables

COPIES = 5  # of the good rows: more than one run of rows of the engine


def write(r, table, folder):
    """The path of a file with a table."""
    from pyarrow import feather, parquet

    path = os.path.join(folder, "rows.table")
    if any(field.type == "string_view" for field in table.schema) or r.random() < 0.5:
        feather.write_feather(table, path, compression=r.choice(["uncompressed", "lz4", "zstd"]),
                              chunksize=r.choice([None, 1, 100]))
    else:
        parquet.write_table(table, path, row_group_size=r.choice([None, 50, 700]),
                            use_dictionary=r.choice([True, False]), data_page_size=r.choice([None, 64]),
                            dictionary_pagesize_limit=r.choice([None, 64]))
    return path


def compare(r, drawn, good, bad, read, expected, check, folder):
    """Reads the good rows some times, then them in a random order, perhaps with the others: without those, more columns
    have numbers."""
    bad = bad if r.random() < 0.5 else []
    mixed = [(fields, None) for fields, _ in good] + [(fields, why) for fields, _, why in bad]
    r.shuffle(mixed)
    rows = [(fields, None) for fields, _ in good] * COPIES + mixed
    table = raw_tables.arrow_table(r, drawn, [fields for fields, _ in rows])
    if table is None:
        return
    found, refused = read(write(r, table, folder))
    reasons = {number + 1: why for number, (_, why) in enumerate(rows) if why}
    check(refused == reasons, "a table and a text file refuse other rows", refused, reasons)
    for name, value in expected.items():
        expected_part, got = parts(value, len(good), 1)[0], parts(found[name], len(good), COPIES)
        check(all(one == expected_part for one in got), "%s of a table and of a text file differ" % name,
              str(table.schema), expected_part, next((one for one in got if one != expected_part), None))


def parts(value, rows, count):
    """The first `count` parts of this number of rows: dtype, lengths of lists, bytes."""
    dtype, shape, lod, data = value
    array = np.frombuffer(data, dtype).reshape(shape)
    offsets = np.array(lod[0]) if lod else np.arange(shape[0] + 1)
    cuts = [offsets[at * rows : (at + 1) * rows + 1] for at in range(count)]
    return [(dtype, np.diff(cut).tolist(), array[cut[0] : cut[-1]].tobytes()) for cut in cuts]
