"""Files, headings, commands and options that pages name exist, so that readers can follow the instructions."""
import argparse
import functools
import os
import re
import subprocess

import pytest
from repository import ROOT

from anabranch.__main__ import COMMANDS, command

PAGES = [page for page in subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, text=True).split()
         if page not in ("CHANGELOG.md", "docs/develop/history.md")]
#: Folders in which a path on a page may start.
BASES = ("", "src", "src/graph", "python/anabranch", "python/anabranch/fluid", "plugins", "tests", "docs")
#: Files of readers, and patterns.
ELSEWHERE = re.compile(r"^MQ2007/|GROUP|<")
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+\.(?:apt|c|cc|cmake|cu|h|json|md|pip|py|sh|svg|tsv|txt|yml))`")
LINK = re.compile(r"\]\(([^)#:\s]*)#([^)]*)\)")
FENCE = re.compile(r"^```.*?^```", re.M | re.S)
SHOWN = re.compile(r"`(anabranch [^`]+)`|^    +(?:\$ )?(anabranch .*)$", re.M)
#: Commands whose later words belong to a script.
OF_SCRIPTS = {"draw", "explain", "launch", "profile", "run", "strategies", "tune"}


def text_of(page):
    with open(os.path.join(ROOT, page), encoding="utf-8") as file:
        return file.read()


def missing_files(page, text):
    bases = [os.path.join(ROOT, base) for base in (*BASES, os.path.dirname(page))]
    return [path for path in PATH.findall(text) if not ELSEWHERE.search(path)
            and not any(os.path.exists(os.path.join(base, path)) for base in bases)]


def anchors(text):
    """Those of the headings of a page, as MyST and forges make them."""
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading) for heading in
             re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.M))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in plain}


def missing_headings(page, text):
    found = []
    for target, anchor in LINK.findall(FENCE.sub("", text)):
        path = os.path.normpath(os.path.join(os.path.dirname(page), target)) if target else page
        if anchor not in anchors(text_of(path) if target else text):
            found.append("%s#%s" % (target, anchor))
    return found


def options_of(parser):
    known = set()
    for action in parser._actions:
        known.update(action.option_strings)
        if isinstance(action, argparse._SubParsersAction):
            known.update(*map(options_of, action.choices.values()))
    return known


def unknown_options(line):
    """The words of a command `anabranch ...` that the command does not know."""
    name, *words = re.split(r" {2,}|[|>]", line, maxsplit=1)[0].split()[1:] or [""]
    if not re.fullmatch(r"[a-z]+", name):  # `anabranch COMMAND`, `anabranch --version`
        return []
    if name not in COMMANDS:
        return [name]
    if name in OF_SCRIPTS:
        ends = [i for i, word in enumerate(words) if word.endswith(".py")]
        words = words[:ends[0]] if ends else words
    known = options_of(command(name).parser())
    return [word for word in words if word.startswith("--") and word.split("=")[0] not in known]


def unknown(text):
    lines = (first or second for first, second in SHOWN.findall(text.replace("\\\n", " ")))
    return [(line, found) for line in lines for found in unknown_options(" ".join(line.split("\n")))] + [
        ("./dev", name) for name in re.findall(r"\./dev\s+([a-z][\w-]*)", text) if name not in of_dev()]


@functools.lru_cache
def of_dev():
    told = subprocess.check_output([os.path.join(ROOT, "dev"), "--help"], text=True)
    return set(re.findall(r"^  ([\w-]+) ", told, re.M))


@pytest.mark.parametrize("page", PAGES)
def test_files_headings_and_commands_of_a_page_exist(page):
    text = text_of(page)
    assert missing_files(page, text) == []
    assert missing_headings(page, text) == []
    assert unknown(text) == []


def test_what_does_not_exist_is_found():
    text = "# One\n`engine/gone.h`, `src/ir/program.h`, `engine/binding.h`, [a](#one), [b](#two), `anabranch serv`\n"
    assert missing_files("README.md", text) == ["engine/gone.h"]
    assert missing_headings("README.md", text) == ["#two"]
    assert unknown(text + "    ./dev tset --fast\n") == [("anabranch serv", "serv"), ("./dev", "tset")]
    assert unknown_options("anabranch serve model --ports 80    a comment --x") == ["--ports"]
    assert unknown_options("anabranch launch --nproc 2 --worker 3 train.py --epochs 3") == ["--worker"]
