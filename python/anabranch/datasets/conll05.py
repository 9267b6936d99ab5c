"""Semantic roles: sentences with the arguments of their verbs, from the public test set of CoNLL 2005.

Files: ``conll05st-tests.tar.gz``, ``wordDict.txt``, ``verbDict.txt``, ``targetDict.txt``, ``emb``.
Carreras and Marquez, CoNLL 2005, https://aclanthology.org/W05-0620.
"""
from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from typing import Any

from ..fluid.errors import InvalidValue
from . import archives

__all__ = ["test", "get_dict", "get_embedding"]

#: Addresses of Fluid's files and their MD5 sums, for ``common.download``, which only looks for local files.
DATA_URL = "http://paddlemodels.bj.bcebos.com/conll05st/conll05st-tests.tar.gz"
DATA_MD5 = "387719152ae52d60422c016e92a742fc"
WORDDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FwordDict.txt"
WORDDICT_MD5 = "ea7fb7d4c75cc6254716f0177a506baa"
VERBDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FverbDict.txt"
VERBDICT_MD5 = "0d2977293bbb6cbefab5b0f97db1e77c"
TRGDICT_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2FtargetDict.txt"
TRGDICT_MD5 = "d8c7f03ceb5fc2e5a0fa7503a4353751"
EMB_URL = "http://paddlemodels.bj.bcebos.com/conll05st%2Femb"
EMB_MD5 = "bf436eb0faa1f6f9103017f8be57cdb7"

_MODULE = "conll05st"
_WORDS = "conll05st-release/test.wsj/words/test.wsj.words.gz"
_ROLES = "conll05st-release/test.wsj/props/test.wsj.props.gz"
#: Words that have no number.
_OTHER = 0


def load_dict(filename: str) -> dict[str, int]:
    """dict: the words of a file, one a line -> their numbers.

    Examples:
        >>> load_dict("wordDict.txt")["the"]  # doctest: +SKIP
        5
    """
    with open(filename, "rb") as file:
        return {line.strip(): number for number, line in enumerate(archives.lines(file, "utf-8"))}


def load_label_dict(filename: str) -> dict[str, int]:
    """dict: B- and I- of each role of a file, in its order, and O -> their numbers."""
    roles = dict.fromkeys(name[2:] for name in load_dict(filename) if name[:2] in ("B-", "I-"))
    return {name: number for number, name in enumerate([b + role for role in roles for b in ("B-", "I-")] + ["O"])}


def get_dict() -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    """tuple of dict: the ids of words, of verbs and of labels."""
    words, verbs, labels = (archives.find(_MODULE, name) for name in ("wordDict.txt", "verbDict.txt", "targetDict.txt"))
    return load_dict(words), load_dict(verbs), load_label_dict(labels)


def get_embedding() -> str:
    """str: the path of the file of vectors for the words."""
    return archives.find(_MODULE, "emb")


def _spans(column: list[str]) -> list[str]:
    """Brackets as labels: ``(A0*  *  *)`` are B-A0, I-A0, I-A0.

    >>> _spans(["(A0*", "*)", "*", "(V*)"])
    ['B-A0', 'I-A0', 'O', 'B-V']
    """
    labels, role = [], None
    for mark in column:
        if mark.startswith("("):
            role = mark[1:mark.index("*")]
            labels.append("B-" + role)
        else:
            labels.append("O" if role is None else "I-" + role)
        if mark.endswith(")"):
            role = None
    return labels


def _sentences(path: str, *names: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """The words and the columns of roles of each sentence."""
    with archives.opened(path) as archive:
        parts = [gzip.decompress(archives.member(archive, name).read()).decode("utf-8").split("\n")
                 for name in names]
    words: list[str] = []
    rows: list[list[str]] = []
    for number, (word, roles) in enumerate(zip(*parts), 1):
        if roles.split():
            words.append(word.strip())
            rows.append(roles.split())
            if len(rows[-1]) != len(rows[0]):
                raise InvalidValue("%s, line %d: must have %d columns, got %d"
                                   % (names[1], number, len(rows[0]), len(rows[-1])))
        elif words:
            yield words, [list(column) for column in zip(*rows)]
            words, rows = [], []


def _sample(words: list[str], verb: str, labels: list[str], numbers: Any) -> tuple[Any, ...]:
    of_words, of_verbs, of_labels = numbers
    at, count = labels.index("B-V"), len(words)
    around = [words[at + k] if 0 <= at + k < count else "bos" if k < 0 else "eos" for k in (-2, -1, 0, 1, 2)]
    return ([of_words.get(word, _OTHER) for word in words], *([of_words.get(word, _OTHER)] * count for word in around),
            [of_verbs.get(verb)] * count, [int(abs(k - at) <= 2) for k in range(count)],
            [of_labels.get(label) for label in labels])


def corpus_reader(data_path: str, words_name: str, props_name: str) -> Callable[[], Iterator[Any]]:
    """Returns a reader of an archive: the words of a sentence, one of its verbs, and the labels for that verb.

    Args:
        data_path (str): archive.
        words_name (str): compressed file of words in it.
        props_name (str): compressed file of roles in it.

    Returns:
        callable: reader.

    Examples:
        >>> reader = corpus_reader("conll05st-tests.tar.gz", "words.gz", "props.gz")  # doctest: +SKIP
    """
    def read():
        for words, columns in _sentences(data_path, words_name, props_name):
            verbs = [verb for verb in columns[0] if verb != "-"]
            for verb, column in zip(verbs, columns[1:]):
                yield words, verb, _spans(column)
    return read


def reader_creator(corpus_reader: Callable[[], Iterator[Any]], word_dict: dict[str, int],
                   predicate_dict: dict[str, int], label_dict: dict[str, int]) -> Callable[[], Iterator[Any]]:
    """Returns a reader of samples as those of :func:`test`.

    Args:
        corpus_reader (callable): result of :func:`corpus_reader`.
        word_dict (dict): numbers of words.
        predicate_dict (dict): numbers of verbs.
        label_dict (dict): numbers of labels.

    Returns:
        callable: reader.
    """
    def read():
        for words, verb, labels in corpus_reader():
            yield _sample(words, verb, labels, (word_dict, predicate_dict, label_dict))
    return read


def test() -> Callable[[], Iterator[Any]]:
    """Returns a reader. It gives nine lists of numbers for each verb of each sentence.

    The lists contain the words; five words around the verb, each repeated (two before the verb, one before, the verb
    itself, one after, two after); the verb, repeated; a mark, which is 1 for these five words; and the labels.

    Returns:
        callable: reader.
    """
    def read():
        archive = archives.find(_MODULE, "conll05st-tests.tar.gz")
        yield from reader_creator(corpus_reader(archive, _WORDS, _ROLES), *get_dict())()
    return read
