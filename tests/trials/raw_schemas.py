"""Random schemas of raw rows, with the columns that a file of such rows has."""

from dataclasses import dataclass, field

import anabranch

NAMES = (
    "a b price \u00e9t\u00e9 e\u0301 \U0001f600 7 x:y # 'q' a|b \\n _ a.b NA \ufeffmark".split()
    + ["", " ", "two words", " pad", "a,b", 'say "x"', "tab\tname", "nul\0name", "long" * 300]
)
SPLITS = "||;;,: /e.-1x\t"
WORDS = ["red", "blue", "none", "", "7", "\u00e9t\u00e9", "e\u0301", "\U0001f600", "nul\0word", " pad ", "a,b", '"',
         "0", "2024-02-29", "2024-01-05T13:05:59Z", "1700000000"]
TYPES = ("number", "integer", "text")


@dataclass
class Column:
    name: object  # str, or int without a header
    type: str
    split: str = ""
    used: bool = False
    listed: bool = False  # a feature splits it
    always: bool = False  # it has no other value than a list
    single: str = ""  # the first feature that does not split it at spaces


@dataclass
class Drawn:
    schema: object
    separator: str
    columns: list = field(default_factory=list)  # of the file, in its order
    width: int = 0  # fields that a row needs at least, without a header
    words: list = field(default_factory=list)  # of vocabularies
    kind: str = "columns"  # of lines

    @property
    def named(self):
        return isinstance(self.columns[0].name, str)


def bound(r, type_):
    if type_ == "integer":
        return r.choice([0, 1, -1, 7, 100, -100, 2**52, -(2**52), r.randint(-999, 999)])
    return r.choice([0, -0.0, 0.1, 1, -1, 7, 1e-40, -1e-40, 1e30, -1e30, 3.4e38, -3.4e38, r.gauss(0, 10)])


def numbers(r, feature, type_):
    kinds = ["missing"] * 3 + ["range", "clip"] + (["log", "normalize"] if type_ == "number" else [])
    for _ in range(r.choice([0, 1, 1, 2, 2, 3, 4])):
        kind = r.choice(kinds)
        low, high = sorted([bound(r, type_), bound(r, type_)])
        if kind == "missing":
            feature.missing(low)
        elif kind == "log":
            feature.log()
        elif kind == "normalize":
            feature.normalize(low, r.choice([1, 0.5, 3, 1e-3, 1e-38, 1e30]))
        else:
            getattr(feature, kind)(low, high)
    if type_ == "number" and r.random() < 0.3:
        bounds = {-1e30, -1.0, 0.0, 2.5, 1e20, round(r.gauss(0, 10), 2)}
        feature.bucketize(sorted(r.sample(sorted(bounds), r.randint(1, len(bounds)))))


def texts(r, drawn, feature):
    for step in r.sample(["missing", "required"], r.choice([0, 0, 1, 1, 2])):
        getattr(feature, step)(*([r.choice(WORDS)] if step == "missing" else []))
    if r.random() < 0.1:
        feature.date(r.choice(["hour", "weekday", "hour_of_week", "day", "month"]), others=r.random() < 0.7)
    elif r.random() < 0.6:
        buckets = r.choice([1, 2, 10, 1000, 2**40, 2**63 - 1])
        feature.hash(buckets, *([r.choice(["salt", "", 0, 5, "\u00e9"])] if r.random() < 0.3 else []))
    else:
        words = r.sample(WORDS, r.randint(1, len(WORDS)))
        drawn.words += words
        feature.vocabulary(words, others=r.random() < 0.7)


def feature(r, drawn, name):
    """Adds a feature of one column, a list of values, or of two."""
    column = r.choice(drawn.columns)
    kind = column.type, column.split, column.always
    of = [one for one in drawn.columns if (one.type, one.split, one.always) == kind]
    chosen = [column] if r.random() < 0.8 else [r.choice(of), r.choice(of)]
    if column.type == "integer" and not column.always and r.random() < 0.1:
        chosen = [column]
        drawn.schema.label(column.name, 0, r.choice([1, 5]), r.choice(["int64", "float32"]), name=name)
    else:
        split = {"split": column.split} if column.split and (column.always or r.random() < 0.8) else {}
        if split and r.random() < 0.1:
            split["values"] = r.choice([1, 2, 3])
        made = getattr(drawn.schema, column.type)([one.name for one in chosen], name, **split)
        texts(r, drawn, made) if column.type == "text" else numbers(r, made, column.type)
        for one in chosen:
            one.listed |= bool(split)
    for one in chosen:
        one.used = True
        if drawn.schema[name]._own.get("split") != " ":
            one.single = one.single or name


def cross(r, drawn, name):
    """Adds a cross of columns, and of features that may be its parts."""
    columns = [one for one in drawn.columns if one.type == "text" and not one.always]
    parts = [(one.name, [one]) for one in columns]
    for other in list(drawn.schema):
        of = drawn.schema[other].columns
        parts.append((drawn.schema[other], [one for one in drawn.columns if one.name in of]))
    if not parts:
        return
    chosen = [r.choice(parts) for _ in range(r.choice([2, 2, 3]))]
    try:
        drawn.schema.cross([part for part, _ in chosen], r.choice([1, 50, 10**6]), name=name)
    except (ValueError, TypeError):  # a list, a number, a cross
        return
    for _, of in chosen:
        for one in of:
            one.used = True
            one.single = one.single or name


def draw(r, separator, header):
    """A Drawn of at least one feature."""
    drawn = Drawn(anabranch.Schema(separator, header=header, ragged=r.random() < 0.2), separator)
    count = r.randint(1, 7)
    fits = [name for name in NAMES if separator != "\t" or "\t" not in name]
    names = r.sample(fits, count) if header else range(count)
    if header and names[0].startswith("\ufeff"):
        names[0] = "mark"  # as a reader sees it
    for name in names:
        split = r.choice(SPLITS) if r.random() < 0.4 else ""
        drawn.columns.append(Column(name, r.choice(TYPES), split))
    for number in range(r.randint(1, 6)):
        (cross if r.random() < 0.2 else feature)(r, drawn, "f%d" % number)
    if not len(drawn.schema):
        feature(r, drawn, "f")
    used = [at for at, column in enumerate(drawn.columns) if column.used]
    drawn.width = used[-1] + 1
    return drawn
