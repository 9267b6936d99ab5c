#!/usr/bin/env python3
"""Looks at the built documents in a browser: nothing sticks out at two widths, and a search by itself leads to answers.

    python tools/look_at_site.py build/docs
"""
from __future__ import annotations

import os
import re
import sys

import browser

PAGES = ("index.html", "learn/01_fit_a_line.html", "do/train_from_csv.html", "do/read_a_stall_report.html",
         "errors/NotFound.html", "clusters.html", "settings.html", "commands.html", "move/from_pytorch.html",
         "understand/guarantees.html")
SEARCHES = {"how to train from csv": "do/train_from_csv.html", "add an op": "do/add_an_operator.html",
            "read a stall report": "do/read_a_stall_report.html", "start a cluster": "do/start_a_cluster.html"}
WIDTHS = (1280, 400)
#: An answer must be among so many results.
FIRST = 3


def found(site: str, words: str) -> list[str]:
    """Pages that a search gives, the best first."""
    text = browser.dom("file://%s/search.html?q=%s" % (os.path.abspath(site), words.replace(" ", "+")))
    results = text[text.index('id="search-results"'):]
    return re.findall(r'<li[^>]*><a href="([^"?#]*)', results)


def faults(site: str) -> list[str]:
    """What is wrong, a line each."""
    wrong = []
    for page in PAGES:
        for width in WIDTHS:
            has, window = browser.widths(os.path.join(site, page), width)
            if has > window:
                wrong.append("%s is %d wide in a window of %d" % (page, has, window))
    for words, answer in SEARCHES.items():
        results = found(site, words)
        if answer not in results[:FIRST]:
            wrong.append("a search for %r gives %s, not %s" % (words, results[:FIRST], answer))
    return wrong


def main() -> int:
    if browser.find() is None:
        print("not looked at: " + browser.MISSING)
        return 0
    wrong = faults(sys.argv[1])
    print("\n".join(wrong) or "%d pages at %d widths, %d searches: well" % (len(PAGES), len(WIDTHS), len(SEARCHES)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
