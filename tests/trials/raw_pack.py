#!/usr/bin/env python3
"""Packs raw rows for tests/cpp/replay: raw_pack.py FILE [--count N]

For each trial of raw_rows its model, the rows that the reader accepts, those that it refuses, and the scores of a pass.
The models are in the folder FILE.models.
"""
import argparse
import os
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(HERE, "..", "support")]
import raw_model  # noqa: E402
import raw_rows  # noqa: E402

import anabranch  # noqa: E402


def number(n):
    return struct.pack("<I", n)


def text(of):
    return number(len(of)) + of


def packed_rows(places, rows):
    return number(len(rows)) + b"".join(
        number(len(places)) + b"".join(text(row[0][at]) for at in places) for row in rows)


def packed(name, trial, folder):
    """(bytes, rows that are accepted) of a trial."""
    with raw_rows.drawn_trial(name, trial) as (r, drawn, data):
        os.makedirs(folder)
        made, _, refused = raw_rows.read(r, drawn, data, folder)
        good, bad = raw_rows.judged(r, drawn, data, refused)
        if not good:
            return b"", 0
        model = os.path.join(folder, "model")
        scores = raw_model.scores_of_pass(r, raw_model.saved(drawn, model), made)
        names = [column.name for column in drawn.columns]
        places = [names.index(name) for name in anabranch.Predictor(model)._engine.row_reader().columns()]
        return (text(model.encode()) + packed_rows(places, good) + packed_rows(places, bad) + number(len(scores))
                + b"".join(text(score.tobytes()) for score in scores)), len(good)


def pack(path, count):
    """Writes the first trials of each name; returns the number of rows."""
    rows = 0
    with open(path, "wb") as file:
        for name in raw_rows.names():
            for trial in range(count):
                made, good = packed(name, trial, os.path.join(path + ".models", "%s-%d" % (name, trial)))
                file.write(made)
                rows += good
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--count", type=int, default=10, help="trials of each name")
    arguments = parser.parse_args()
    print(pack(arguments.file, arguments.count), "rows")
