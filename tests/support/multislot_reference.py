"""The meaning of MultiSlot text, written as plainly as possible: the parser of the engine must agree with it.

A schema is a list of (name, is_float, values): ``values`` is the size of a dense slot, (-n) for a dense slot with an
unknown extent (a multiple of n), or 0 for a list of any length.
"""
import math
import re
import struct
from fractions import Fraction

(LINE_ENDS, COUNT_NOT_NUMBER, COUNT_NEGATIVE, COUNT_ZERO, COUNT_TOO_LARGE, COUNT_MISMATCH, FEW_VALUES, NOT_ID, ID_RANGE,
 NOT_FLOAT, FLOAT_RANGE, TEXT_AFTER) = range(12)

_FIELD = re.compile(rb"[^ \t]+")
_DECIMAL = re.compile(rb"([+-]?)(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_HEXADECIMAL = re.compile(rb"([+-]?)0[xX]([0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)([pP][+-]?\d+)?", re.ASCII)
_WORD = re.compile(rb"([+-]?)(inf|infinity|nan(\([0-9a-zA-Z_]*\))?)", re.IGNORECASE)
_LIMIT = Fraction(2) ** 128 - Fraction(2) ** 103      # halfway between the largest float32 and what would be next


class Bad(Exception):
    """A line that does not fit: reason and column (byte, from 1)."""

    def __init__(self, reason, column):
        super().__init__(reason, column)
        self.reason, self.column = reason, column


def nearest_float32(exact):
    """The float32 nearest to a Fraction (ties to even); None: none is finite and near."""
    if abs(exact) >= _LIMIT:
        return None
    if exact == 0:
        return 0.0
    exponent = max(-149, math.frexp(float(exact))[1] - 24)
    while exponent > -149 and abs(exact) < Fraction(2) ** (exponent + 23):      # the float was rounded up
        exponent -= 1
    return math.ldexp(round(exact / Fraction(2) ** exponent), exponent)


def _scaled(digits, base, power):
    """digits * base^power; what is beyond all doubt is 0, or the limit."""
    if digits == 0 or power < -2000:
        return Fraction(0)
    if power > 2000:
        return _LIMIT
    return Fraction(digits * base ** power) if power >= 0 else Fraction(digits, base ** -power)


def _exact(token):
    """The number as a Fraction, or None."""
    found = _DECIMAL.fullmatch(token)
    if found:
        power = int(found[3][1:]) if found[3] else 0
        whole, _, part = found[2].partition(b".")
        return _scaled(int(whole + part), 10, power - len(part))
    found = _HEXADECIMAL.fullmatch(token)
    if not found:
        return None
    whole, _, part = found[2].partition(b".")
    return _scaled(int(whole + part, 16), 2, (int(found[3][1:]) if found[3] else 0) - 4 * len(part))


def read_float(token, column):
    """A float32 as a Python float."""
    found = _WORD.fullmatch(token)
    if found:
        value = float("nan") if found[2][:1] in b"nN" else float("inf")
        return -value if found[1] == b"-" else value
    exact = _exact(token)
    if exact is None:
        raise Bad(NOT_FLOAT, column)
    value = nearest_float32(exact)
    if value is None:
        raise Bad(FLOAT_RANGE, column)
    return -value if token.startswith(b"-") else value


def read_id(token, column):
    """An id as an int64."""
    if not re.fullmatch(rb"[+-]?[0-9]+", token):
        raise Bad(NOT_ID, column)
    value = int(token)
    if value >= 2 ** 64 or value < -2 ** 63:
        raise Bad(ID_RANGE, column)
    return struct.unpack("<q", struct.pack("<Q", value % 2 ** 64))[0]


class _Fields:
    def __init__(self, line):
        self.line = line[:-1] if line.endswith(b"\r") else line
        self.at = 0

    def next(self):
        """(field, its column); the field is empty at the end of the line."""
        found = _FIELD.search(self.line, self.at)
        if not found:
            self.at = len(self.line)
            return b"", len(self.line) + 1
        self.at = found.end()
        return found.group(), found.start() + 1

    def count(self):
        token, column = self.next()
        if not token:
            raise Bad(LINE_ENDS, column)
        if not re.fullmatch(rb"-?[0-9]+", token):
            raise Bad(COUNT_NOT_NUMBER, column)
        if token.startswith(b"-"):
            raise Bad(COUNT_NEGATIVE, column)
        if len(token) > 18:
            raise Bad(COUNT_TOO_LARGE, column)
        if int(token) == 0:
            raise Bad(COUNT_ZERO, column)
        return int(token), column


def without_zeros(values, is_float):
    """The values of a list that an InMemoryDataset keeps."""
    kept = [v for v in values if not (abs(v) < 1e-6 if is_float else v == 0)]
    return kept or [0.0 if is_float else 0]


def read_line(line, schema, drop_zeros=False):
    """The values of each slot. Bad, with attribute ``slot`` (its number; -1: the line), when it does not fit."""
    fields, sample, slot = _Fields(line), [], -1
    try:
        for slot, (_, is_float, values) in enumerate(schema):  # noqa: B007  read where a line is bad
            count, column = fields.count()
            if (values > 0 and count != values) or (values < 0 and count % -values):
                raise Bad(COUNT_MISMATCH, column)
            got = []
            for _ in range(count):
                token, column = fields.next()
                if not token:
                    raise Bad(FEW_VALUES, column)
                got.append((read_float if is_float else read_id)(token, column))
            sample.append(without_zeros(got, is_float) if drop_zeros and values == 0 else got)
        slot = -1
        token, column = fields.next()
        if token:
            raise Bad(TEXT_AFTER, column)
    except Bad as bad:
        bad.slot = slot
        raise
    return sample


def read_text(text, schema, drop_zeros=False):
    """([sample], [(line, column, slot, reason)]) of a text."""
    samples, bad = [], []
    lines = text.split(b"\n")
    if lines[-1] == b"":
        lines.pop()
    for number, line in enumerate(lines, 1):
        try:
            samples.append(read_line(line, schema, drop_zeros))
        except Bad as error:
            bad.append((number, error.column, error.slot, error.reason))
    return samples, bad
