"""Click logs in Criteo's text format: the files of a folder, or generated files with known click probabilities.

A line describes one impression. Its fields are separated by tabs: the label (0 or 1), 13 counts I1..I13, and 26
categories C1..C26 of 8 hexadecimal digits. Counts and categories may be empty. In generated files, categories are
drawn by Zipf's law, and a planted score determines the probability of a click. The best AUC that a model can reach is
therefore known.
"""
from __future__ import annotations

import glob
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from ..fluid.errors import InvalidValue, NotFound

__all__ = ["DENSE", "SLOTS", "ClickFiles", "auc", "find", "generate", "schema"]

#: Counts and categories of a line.
DENSE, SLOTS = 13, 26

_EMPTY = 0.03        # share of fields that are left empty
_CHUNK = 20000       # lines made at a time
_VERSION = 1         # of the planted score


class ClickFiles:
    """Files of a click log.

    Attributes:
        train (list of str): files to train with.
        test (list of str): files that were held out.
        planted_auc (float|None): AUC of the planted probabilities on the test files, which a perfect model would
            reach.
        train_command (str): ``pipe_command`` for ``train``. It is 'cat' unless both lists contain the same file.
        test_command (str): the same for ``test``.
        rows (int|None): lines of the training files, where known.
    """

    def __init__(self, train: Sequence[str], test: Sequence[str], planted_auc: float | None = None,
                 train_command: str = "cat", test_command: str = "cat", rows: int | None = None) -> None:
        self.train, self.test, self.planted_auc = train, test, planted_auc
        self.train_command, self.test_command, self.rows = train_command, test_command, rows


def schema(table_rows: int) -> str:
    """The text for ``dataset.set_format``: slots label, dense (ln(1 + count)) and C1..C26, hashed.

    Args:
        table_rows (int): rows of the embedding table; ids are in [0, table_rows).

    Returns:
        str: the schema.

    Examples:
        >>> from anabranch.datasets import criteo
        >>> print(criteo.schema(1000001), end="")
        columns tab
        label = 0
        dense = 1-13 log
        C* = 14-39 hash 1000001
    """
    if table_rows < 1:
        raise InvalidValue("criteo.schema: table_rows must be at least 1, got %d" % table_rows)
    return "columns tab\nlabel = 0\ndense = 1-%d log\nC* = %d-%d hash %d\n" % (DENSE, DENSE + 1, DENSE + SLOTS,
                                                                               table_rows)


def find(path: str) -> Any:
    """Finds a real click log.

    Args:
        path (str): a file, every tenth line of which is held out; or a folder, whose last file in the order of names is
            held out. gzip is recognized; a folder may hold zstd files, too.

    Returns:
        ClickFiles: the files that exist. ``planted_auc`` is None.

    Raises:
        LookupError: no such file, or a folder with fewer than two files.

    Examples:
        >>> from anabranch.datasets import criteo
        >>> with open("train.txt", "w") as f:
        ...     _ = f.write("0" + "\\t" * 39 + "\\n")
        >>> files = criteo.find("train.txt")
        >>> files.train == files.test, files.test_command
        (True, "zcat -f | awk 'NR % 10 == 0'")
    """
    if os.path.isfile(path):
        held_out = "zcat -f | awk 'NR %% 10 %s 0'"
        return ClickFiles([path], [path], None, held_out % "!=", held_out % "==")
    files = sorted(name for name in glob.glob(os.path.join(path, "*")) if os.path.isfile(name))
    if len(files) < 2:
        raise NotFound("criteo.find: %s must be a file, or a folder with at least two files" % path)
    return ClickFiles(files[:-1], files[-1:])


def auc(scores: Any, labels: Any) -> float:
    """Computes the exact area under the ROC curve. Pairs with equal scores count half.

    Args:
        scores (array): scores of any shape. A higher score means a more likely click.
        labels (array): 0 or 1, same size as ``scores``.

    Returns:
        float: in [0, 1]; NaN unless both labels occur.

    Examples:
        >>> from anabranch.datasets import criteo
        >>> criteo.auc([0.1, 0.4, 0.4, 0.8], [0, 0, 1, 1])
        0.875
    """
    scores, labels = numpy.ravel(scores), numpy.ravel(labels)
    if scores.shape != labels.shape:
        raise InvalidValue("auc: scores and labels must have the same size, got %d and %d" % (scores.size, labels.size))
    _, place, counts = numpy.unique(scores, return_inverse=True, return_counts=True)
    ranks = (numpy.cumsum(counts) - (counts - 1) / 2.0)[place.ravel()]
    positives = float(labels.sum())
    negatives = labels.size - positives
    if not positives or not negatives:
        return float("nan")
    return float((ranks[labels == 1].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def generate(folder: str, rows: int, test_rows: int, files: int = 4, seed: int = 0, categories: int = 100000,
             progress: Callable[..., Any] | None = None) -> Any:
    """Writes synthetic files, unless the folder already has them.

    Args:
        folder (str): folder of the files, created if missing.
        rows (int): lines of all training files together, at least one per file.
        test_rows (int): lines of the test file, at least 1.
        files (int): training files. Default 4.
        seed (int): seed of the lines. The planted score is the same for all seeds. Default 0.
        categories (int): different values of the largest column, at least 3; the smallest has 3. Default 100000.
        progress (callable, optional): called with (lines written, lines in all).

    Returns:
        ClickFiles: the files, with ``planted_auc``.

    Raises:
        ValueError: a number is too low.

    Examples:
        >>> import os
        >>> from anabranch.datasets import criteo
        >>> made = criteo.generate("clicks", rows=300, test_rows=100, files=2)
        >>> [os.path.basename(name) for name in made.train + made.test], 0.5 < made.planted_auc < 1
        (['train-0.txt', 'train-1.txt', 'test.txt'], True)
        >>> with open(made.train[0]) as f:
        ...     len(f.readline().split("\\t"))
        40
    """
    if files < 1 or rows < files or test_rows < 1 or categories < 3:
        raise InvalidValue("criteo.generate: files and test_rows must be at least 1, rows at least files, and "
                           "categories at least 3, got rows %d, files %d, test_rows %d, categories %d"
                           % (rows, files, test_rows, categories))
    names = [os.path.join(folder, "train-%d.txt" % i) for i in range(files)] + [os.path.join(folder, "test.txt")]
    settings = dict(rows=rows, test_rows=test_rows, files=files, seed=seed, categories=categories, version=_VERSION)
    made = os.path.join(folder, "made.json")
    planted = _planted_auc_of(made, settings, names)
    if planted is None:
        os.makedirs(folder, exist_ok=True)
        counts = [rows * (i + 1) // files - rows * i // files for i in range(files)] + [test_rows]
        truth, done = _Truth(categories), 0
        for number, (name, count) in enumerate(zip(names, counts)):
            scores, labels = _write(name, count, truth, numpy.random.RandomState([seed, number]),
                                    (lambda n, base=done: progress(base + n, sum(counts))) if progress else None)
            done += count
        planted = auc(scores, labels)
        with open(made, "w") as f:
            json.dump(dict(settings, planted_auc=planted), f)
    return ClickFiles(names[:-1], names[-1:], planted, rows=rows)


def _planted_auc_of(made, settings, names):
    """Planted AUC of files from an earlier call; None if its settings were different or it was interrupted."""
    try:
        with open(made) as f:
            found = json.load(f)
    except (OSError, ValueError):
        return None
    planted = found.pop("planted_auc", None)
    return planted if found == settings and all(map(os.path.isfile, names)) else None


class _Truth:
    """The planted score: an effect of each category, of some counts, and of pairs of categories."""

    def __init__(self, categories):
        random = numpy.random.RandomState(20)
        sizes = numpy.logspace(numpy.log10(3), numpy.log10(categories), SLOTS).astype("int64")
        sizes = sizes[random.permutation(SLOTS)]
        self.smallest = numpy.argsort(sizes)
        # A rare category says little by itself: no file of finite length could show what it says.
        self.effects = [random.normal(0, 0.5, n) * numpy.exp(-numpy.arange(n) / 40.0) for n in sizes]
        self.sides = [random.choice([-1.0, 1.0], n) * (numpy.arange(n) < 20) for n in sizes]
        self.shares = [self._zipf(n) for n in sizes]
        codes = random.permutation(2 ** 22)[:sizes.sum()] * 1021 + 7
        texts = numpy.array(["%08x" % code for code in codes] + [""], dtype=object)
        ends = numpy.cumsum(sizes)
        self.texts = [numpy.append(texts[end - n:end], "") for n, end in zip(sizes, ends)]
        self.centres = random.uniform(0.5, 3.0, DENSE)

    @staticmethod
    def _zipf(size):
        shares = 1.0 / numpy.arange(1, size + 1) ** 1.1
        return numpy.cumsum(shares) / shares.sum()

    def draw(self, random, count):
        """(counts [n, 13], -1: empty; categories [n, 26], the number after the last one: empty)."""
        counts = numpy.floor(numpy.exp(random.normal(self.centres, 1.0, (count, DENSE)))).astype("int64")
        counts[random.random_sample((count, DENSE)) < _EMPTY] = -1
        categories = numpy.empty((count, SLOTS), "int64")
        for slot, shares in enumerate(self.shares):
            categories[:, slot] = numpy.searchsorted(shares, random.random_sample(count))
            categories[random.random_sample(count) < _EMPTY, slot] = len(shares)
        return counts, categories

    def score(self, counts, categories):
        """Log-odds of a click."""
        logs = numpy.log1p(numpy.maximum(counts, 0)) - self.centres
        score = 0.5 * logs[:, 0] - 0.4 * logs[:, 1] + 0.3 * numpy.abs(logs[:, 2]) - 1.6
        for slot, effects in enumerate(self.effects):
            score += numpy.append(effects, 0.0)[categories[:, slot]]
        left, right = (numpy.append(self.sides[s], 0.0)[categories[:, s]] for s in self.smallest[:2])
        score += 0.6 * left * right
        return score


def _write(name, count, truth, random, progress):
    """Writes a file; returns (scores, labels) of its lines."""
    kept = []
    with open(name + ".part", "w") as f:
        for begin in range(0, count, _CHUNK):
            counts, categories = truth.draw(random, min(_CHUNK, count - begin))
            score = truth.score(counts, categories)
            labels = (random.random_sample(len(score)) < 1 / (1 + numpy.exp(-score))).astype("int64")
            columns = [map(str, labels)]
            columns += [[str(v) if v >= 0 else "" for v in counts[:, i].tolist()] for i in range(DENSE)]
            columns += [truth.texts[i][categories[:, i]].tolist() for i in range(SLOTS)]
            f.write("".join("\t".join(row) + "\n" for row in zip(*columns)))
            kept.append((score, labels))
            if progress:
                progress(begin + len(score))
    os.replace(name + ".part", name)
    return [numpy.concatenate(part) for part in zip(*kept)]
