#!/usr/bin/env python3
"""Looks at the built documents in a browser: pages at two widths, searches, old addresses, the filter of a table.

    python tools/look_at_site.py build/docs [--pictures FOLDER]
"""
from __future__ import annotations

import argparse
import os
import sys
from urllib.parse import quote_plus

import browser

WIDTHS = (1280, 390)
#: Height of a window. The start page shows within it how to install, and where a program starts.
SCREEN = 900
PAGES = ("index.html", "install.html", "learn/01_fit_a_line.html", "learn/03_classify.html", "do/train_from_csv.html",
         "do/read_a_stall_report.html", "errors.html", "errors/NotFound.html", "clusters.html", "profiling.html",
         "move/from_pytorch.html", "understand/guarantees.html", "understand/measured.html", "what_works.html")
SOURCES = ("_sources/anabranch/fluid/layers/dense.py.html", "_sources/anabranch/fluid/executor.py.html")
#: Pages of the reference: no name in code may be broken there, in no table of any page either.
REFERENCE = ("layers.html", "layers/dense.html", "layers/detection.html", "layers/sequences.html", "classes.html",
             "classes/fluid.html", "classes/fluid.optimizer.html", "operators.html", "operators/f.html",
             "operators/s.html", "settings.html", "commands.html", "coverage.html", "differences.html", "absent.html")
#: Pages whose code fits a window of 1280, and tables that scroll in their frame: by the width of the window.
WHOLE_CODE = ("index.html", "learn/03", "layers/", "classes/")
WIDE_TABLES = {1280: ("differences.html",)}
#: Searches and the answer that must come first; the answer to a question may be as far down as FIRST.
NAMES = {
    "fc": "layers/dense.html#anabranch.fluid.layers.fc",
    "fluid.layers.fc": "layers/dense.html#anabranch.fluid.layers.fc",
    "paddle.fluid.layers.fc": "layers/dense.html#anabranch.fluid.layers.fc",
    "mean": "layers/reductions.html#anabranch.fluid.layers.mean",
    "shape": "layers/slices.html#anabranch.fluid.layers.shape",
    "lstm": "layers/recurrent.html#anabranch.fluid.layers.lstm",
    "batch_norm": "layers/normalization.html#anabranch.fluid.layers.batch_norm",
    "embedding layer": "layers/embeddings.html#anabranch.fluid.layers.embedding",
    "Executor": "classes/fluid.html#anabranch.fluid.Executor",
    "Program": "classes/fluid.html#anabranch.fluid.Program",
    "fluid.data": "classes/fluid.html#anabranch.fluid.data",
    "Adam": "classes/fluid.optimizer.html#anabranch.fluid.optimizer.Adam",
    "Executor.run": "classes/fluid.html#anabranch.fluid.Executor.run",
    "FLAGS_check_nan_inf": "settings.html#FLAGS_check_nan_inf",
    "anabranch doctor": "commands.html#anabranch-doctor",
    "NotFound": "errors/NotFound.html",
    "momentum": "classes/fluid.optimizer.html#anabranch.fluid.optimizer.Momentum",
    "cross entropy": "layers/losses.html#anabranch.fluid.layers.cross_entropy",
}
MESSAGES = {
    "variable fc_0.w_0 holds no value": "errors/NotFound.html",
    "NotFound: mul: variable fc_0.w_0 holds no value": "errors/NotFound.html",
    "FLAGS_disable_passes: there is no pass fuse_it": "errors/InvalidArgument.html",
    "variable \"label\" has no value: it was not fed and no operator computes it": "errors/MissingFeed.html",
    "the shape of fed variable 'x' is [-1, 8] (-1: any), but [4, 9] is given": "errors/InvalidValue.html",
    "module 'anabranch.fluid.layers' has no attribute 'conv4d'": "absent.html",
}
TOPICS = {
    "quickstart": "learn/01_fit_a_line.html", "tutorial": "learn/01_fit_a_line.html",
    "performance": "understand/measured.html", "benchmark": "understand/measured.html", "license": "index.html#license",
    "docker": "install.html", "out of memory": "profiling.html#memory", "dygraph": "absent.html",
    "gpu": "do/use_a_gpu.html", "how to install on windows": "install.html", "checkpoint": "do/keep_checkpoints.html",
    "memory": "profiling.html#memory", "threads": "learn/07_all_cores.html", "faq": "do/index.html",
    "python version": "install.html", "bug report": "contributing.html", "amp": "do/use_a_gpu.html#numbers",
}
QUESTIONS = {"how to train from csv": "do/train_from_csv.html", "add an op": "do/add_an_operator.html",
             "read a stall report": "do/read_a_stall_report.html", "start a cluster": "do/start_a_cluster.html"}
FIRST = 3
#: An old address of an entry, and the page that it must lead to.
OLD = {"layers.html#anabranch.fluid.layers.fc": "layers/dense.html#anabranch.fluid.layers.fc",
       "classes.html#anabranch.fluid.Executor": "classes/fluid.html#anabranch.fluid.Executor",
       "operators.html#leaky-relu": "operators/l.html#leaky-relu"}

_PAGE = """async window => {
  const page = window.document, broken = [];
  for (const code of page.querySelectorAll("%s")) {
    const texts = page.createTreeWalker(code, window.NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode;
      for (const name of text.data.matchAll(/\\w+/g)) {
        const range = page.createRange();
        range.setStart(text, name.index);
        range.setEnd(text, name.index + name[0].length);
        if (new Set([...range.getClientRects()].map(box => Math.round(box.top))).size > 1) broken.push(name[0]);
      }
    }
  }
  const wide = [...page.querySelectorAll("article .table-wrapper")].filter(t => t.scrollWidth > t.clientWidth + 1);
  const code = [...page.querySelectorAll("article .highlight pre")].filter(p => p.scrollWidth > p.clientWidth + 1);
  return {page: page.documentElement.scrollWidth, window: page.documentElement.clientWidth, broken,
          tables: wide.length, code: code.length};
}"""
_FUNCTIONS = {
    "page": _PAGE % "article td code", "reference": _PAGE % "article code",
    "search": """async window => {
      for (let i = 0; i < 100; i++) {
        await pause(50);
        const status = window.document.querySelector("#search-results p");
        if (status && !/^(Searching|Preparing)/.test(status.textContent.trim())) break;
      }
      const links = window.document.querySelectorAll(".answers a, #search-results li > a");
      return [...links].map(link => link.getAttribute("href").replace(/[?]highlight=[^#]*/, ""));
    }""",
    "copy": """async window => {
      const page = window.document, copied = [];
      page.execCommand = () => copied.push(page.querySelector("body > textarea").value);
      for (const button of page.querySelectorAll("button.copybtn")) { button.click(); await pause(20); }
      return copied;
    }""",
    "old": "async window => { await pause(600); return frame.contentWindow.location.href; }",
    "dark": """async window => {
      const page = window.document, shades = [];
      for (const theme of ["light", "dark"]) {
        page.body.dataset.theme = theme;
        shades.push(window.getComputedStyle(page.body).backgroundColor);
      }
      return {differ: shades[0] !== shades[1], icon: Boolean(page.querySelector("link[rel=icon], link[rel~=icon]")),
              text: page.querySelector("meta[name=description]").content,
              underlined: [...page.querySelectorAll(".highlight span")].filter(
                span => window.getComputedStyle(span).textDecorationLine !== "none").length};
    }""",
    "start": """async window => {
      const page = window.document, top = node => Math.round(node.getBoundingClientRect().top);
      const code = [...page.querySelectorAll("article pre")];
      return {install: top(code.find(pre => pre.textContent.includes("pip install"))),
              program: top(code.find(pre => pre.textContent.includes("fluid.layers"))),
              figures: page.querySelectorAll("#how-fast tbody tr").length,
              picture: page.querySelectorAll("article img").length};
    }""",
    "filter": """async window => {
      const rows = () => [...window.document.querySelectorAll("table.filtered tbody tr")].filter(
        row => row.getClientRects().length);
      const box = window.document.getElementById("row-filter"), names = rows().map(row => row.cells[0].textContent);
      const before = names.length;
      box.value = "dropout";
      box.dispatchEvent(new window.Event("input"));
      return {before, after: rows().length, all: rows().every(row => row.textContent.toLowerCase().includes("dropout")),
              named: names.filter(Boolean).length};
    }""",
}


def _visits(site: str) -> list[tuple[str, int, str]]:
    # Without a repository to link to, the site has pages of the sources.
    sources = [page for page in SOURCES if os.path.exists(os.path.join(site, page))]
    pages = [(page, width, "page") for page in (*PAGES, *sources) for width in WIDTHS]
    pages += [(page, width, "reference") for page in REFERENCE for width in WIDTHS]
    asked = [*NAMES, *MESSAGES, *TOPICS, *QUESTIONS]
    searches = [("search.html?q=" + quote_plus(words), 1280, "search") for words in asked]
    others = [*((address, 1280, "old") for address in OLD), ("differences.html", 1280, "filter"),
              ("index.html", 1280, "start"),
              ("layers/dense.html", 1280, "copy"), ("learn/01_fit_a_line.html", 1280, "dark")]
    return [*pages, *searches, *others]


def _of_page(page: str, width: int, found: dict) -> list[str]:
    wrong = []
    if found["page"] > found["window"]:
        wrong.append("%s is %d wide in a window of %d" % (page, found["page"], found["window"]))
    if found["broken"]:
        wrong.append("%s at %d: %d broken names: %s" % (page, width, len(found["broken"]), found["broken"][:5]))
    if found["tables"] and page not in WIDE_TABLES.get(width, ()):
        wrong.append("%s at %d: %d tables scroll sideways" % (page, width, found["tables"]))
    if found["code"] and width > 1000 and page.startswith(WHOLE_CODE):
        wrong.append("%s at %d: %d blocks of code scroll sideways" % (page, width, found["code"]))
    return wrong


def _of_search(words: str, results: list[str]) -> list[str]:
    must = {**NAMES, **MESSAGES, **TOPICS, **QUESTIONS}[words]
    among = results[:FIRST] if words in QUESTIONS else results[:1]
    hit = any(result == must or result.partition("#")[0] == must for result in among)
    return [] if hit else ["a search for %r gives %s, not %s" % (words, results[:FIRST], must)]


def faults(site: str) -> list[str]:
    """The faults of a site, a line each."""
    visits, wrong = _visits(site), []
    asked = iter([*NAMES, *MESSAGES, *TOPICS, *QUESTIONS])
    for (address, width, kind), found in zip(visits, browser.visit(site, visits, _FUNCTIONS)):
        if kind in ("page", "reference"):
            wrong += _of_page(address, width, found)
        elif kind == "search":
            wrong += _of_search(next(asked), found)
        elif kind == "copy" and (not found or any(">>>" in text or "Variable(" in text for text in found)):
            wrong.append("%s: the buttons copy %s" % (address, found[:2]))
        elif kind == "dark" and not (found["differ"] and found["icon"] and found["text"] and not found["underlined"]):
            wrong.append("%s in dark mode: %s" % (address, found))
        elif kind == "start" and not (found["install"] < found["program"] < SCREEN and found["figures"] > 2
                                      and found["picture"]):
            wrong.append("%s: the first screen does not show how to install and a program: %s" % (address, found))
        elif kind == "old" and not found.endswith(OLD[address]):
            wrong.append("%s leads to %s" % (address, found))
        elif kind == "filter" and not (found["all"] and 0 < found["after"] < found["before"] / 10):
            wrong.append("the filter of %s: %s" % (address, found))
    return wrong


def pictures(site: str, folder: str) -> None:
    """Pictures of four pages at both widths, to be looked at."""
    os.makedirs(folder, exist_ok=True)
    for page in ("index", "learn/03_classify", "layers/dense", "settings", "differences", "search"):
        for width, height in ((1280, 900), (500, 844)):
            address = "file://%s.html" % os.path.join(os.path.abspath(site), page)
            browser.screenshot(address + ("?q=fc" if page == "search" else ""), os.path.join(
                folder, "%s_%d.png" % (page.replace("/", "_"), width)), width, height)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("site", help="folder of the built documents")
    parser.add_argument("--pictures", metavar="FOLDER", help="also write pictures of some pages to this folder")
    args = parser.parse_args()
    if browser.find() is None:
        print("not looked at: " + browser.MISSING)
        return 0
    if args.pictures:
        pictures(args.site, args.pictures)
    wrong = faults(args.site)
    print("\n".join(wrong) or "%d pages at %d widths, %d searches: well" % (
        len(PAGES) + len(REFERENCE), len(WIDTHS), len(NAMES) + len(MESSAGES) + len(TOPICS) + len(QUESTIONS)))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
