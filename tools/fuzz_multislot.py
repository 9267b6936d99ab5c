#!/usr/bin/env python3
"""Mutated MultiSlot lines through the engine's parser and the slow reference: verdicts and values must agree.

    fuzz_multislot.py [--lines 10000000] [--seed 1] [--processes 2]

Prints the first disagreement and ends with status 1; otherwise one line with what was compared.
"""
import argparse
import math
import multiprocessing
import os
import random
import struct
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "python"))
import multislot_reference as reference  # noqa: E402

ODD = [b"0", b"-0", b"+7", b"-1", b"-", b"+", b"", b"1e5", b"1e39", b"3.4028235e38", b"3.4028236e38", b"1e-46",
       b"1e-38", b"1.17549435e-38", b"7.0064923e-46", b"nan", b"-inf", b"Infinity", b"nan(1)", b"0x1p3", b"0x.8p-1",
       b"0x", b"1e", b".", b"1.", b".5", b"1_0", b"18446744073709551615", b"18446744073709551616",
       b"-9223372036854775808", b"-9223372036854775809", b"00000000000000000001", b"99999999", b"123456789",
       b"1234567890123456", b"12345678901234567", b"16777217", b"16777216.5", b"33554433", b"0.1234567",
       b"0.12345678", b"1234567.1234567", b"8388608.5", b"4194304.25", b"8388609.5", b"1000000000000000000",
       b"999999999999999999", b"\xff", b"\x00", b"\x0b"]
BYTES = b"0123456789 \t.-+eE\r\x00xn" + bytes(range(256))


def schema_of(rng):
    """A random schema: (name, is_float, values) a slot; see multislot_reference."""
    sizes = (0, 0, 0, 1, 1, 2, 3, 13, -1, -2)
    return [("s%d" % i, rng.random() < 0.4, rng.choice(sizes)) for i in range(rng.randint(1, 5))]


def value_of(rng, is_float):
    if not is_float:
        return b"%d" % rng.choice((rng.randrange(10), rng.randrange(2 ** 20), rng.randrange(2 ** 64)))
    kind = rng.random()
    if kind < 0.6:
        return b"%.*f" % (rng.randint(0, 8), rng.uniform(-10, 10) * 10 ** rng.randint(0, 6))
    if kind < 0.8:                                     # all bit patterns, exact or cut short
        number = struct.unpack("<f", struct.pack("<I", rng.randrange(2 ** 32)))[0]
        return b"%.*g" % (rng.randint(5, 20), number)
    return b"%g" % rng.gauss(0, 1)


def line_of(rng, schema):
    fields = []
    for _, is_float, values in schema:
        count = values if values > 0 else -values * rng.randint(1, 3) if values < 0 else rng.randint(1, 4)
        fields.append(b"%d" % count)
        fields += [value_of(rng, is_float) for _ in range(count)]
    if rng.random() < 0.3:
        fields[rng.randrange(len(fields))] = rng.choice(ODD)
    return fields


def mutated(rng, fields):
    line = b" ".join(fields)
    if rng.random() < 0.4:
        return line
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(line) + 1)
        kind = rng.randrange(6)
        if kind == 0:
            line = line[:at] + bytes([rng.choice(BYTES)]) + line[at:]
        elif kind == 1:
            line = line[:at] + bytes([rng.choice(BYTES)]) + line[at + 1:]
        elif kind == 2:
            line = line[:at] + line[at + rng.randint(1, 4):]
        elif kind == 3:
            line = line[:at] + b" " * rng.randint(1, 3) + line[at:]
        elif kind == 4:
            line = line[:at]
        else:
            line += rng.choice((b" ", b"\t", b"\r", b" \r", b" 1 5", b"\r\r", b" x"))
    return line.replace(b"\n", b"")


def same(a, b):
    """Equal numbers, signs of zeros and nan included."""
    if isinstance(a, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


def difference(schema, text, drop_zeros=False):
    """None, or what the two parsers disagree about."""
    from anabranch import _core
    settings = _core.DataSettings()
    settings.slots = [_core.Slot(name, is_float, values != 0, [values] if values > 0 else [-1, -values])
                      for name, is_float, values in schema]
    settings.drop_zeros = drop_zeros
    samples, bad, _, _ = _core.parse_text(settings, text)
    expected, expected_bad = reference.read_text(text, schema, drop_zeros)
    lines = text.split(b"\n")
    got_bad = [entry[:4] for entry in bad]
    for got, other in zip(got_bad + [None], expected_bad + [None]):
        if got != other:
            first = min(entry[0] for entry in (got, other) if entry)
            return "line %r of %r: got %s, expected %s" % (lines[first - 1], schema, got, other)
    if len(samples) != len(expected):
        return "%d samples, expected %d, of %r" % (len(samples), len(expected), schema)
    for got, other in zip(samples, expected):
        for slot, other_slot in zip(got, other):
            if len(slot) != len(other_slot) or not all(map(same, slot, other_slot)):
                return "values %r, expected %r, of %r" % (got, other, schema)
    return None


def fuzz(seed, count, a_time=2000):
    """Compares ``count`` lines; (lines, accepted, what differs or None)."""
    rng = random.Random(seed)
    done = 0
    while done < count:
        schema = schema_of(rng)
        text = b"\n".join(mutated(rng, line_of(rng, schema)) for _ in range(min(a_time, count - done)))
        found = difference(schema, text, rng.random() < 0.3)
        if found:
            return done, found
        done += a_time
    return done, None


def _worker(arguments):
    return fuzz(*arguments)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=10 ** 7)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    begin, share = time.monotonic(), 100000
    jobs = [(arguments.seed * 10 ** 6 + i, share) for i in range(max(1, arguments.lines // share))]
    done = 0
    with multiprocessing.get_context("spawn").Pool(arguments.processes) as pool:
        for lines, found in pool.imap_unordered(_worker, jobs):
            done += lines
            if found:
                sys.exit(found)
    print("%d mutated lines in %.0f s: verdicts and values agree" % (done, time.monotonic() - begin))


if __name__ == "__main__":
    main()
