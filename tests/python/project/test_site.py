"""The site's own parts: answers above the results of a search, the column of the differences, scripts in a browser."""
import json
import os
import re
import sys

import pytest
from repository import ROOT

docutils_nodes = pytest.importorskip("docutils.nodes")

sys.path.insert(0, os.path.join(ROOT, "tools"))

import browser  # noqa: E402
import draw_lessons  # noqa: E402
import site_answers  # noqa: E402
import site_tables  # noqa: E402

import anabranch.fluid as fluid  # noqa: E402

STYLE = os.path.join(ROOT, "docs", "style")
needs_browser = pytest.mark.skipif(browser.find() is None, reason=browser.MISSING)


def test_messages_of_the_sources_have_their_class():
    found = dict(site_answers.messages())
    assert len(found) > 800
    assert found["variable holds no value"] == "NotFound"
    assert found["the folder of the logs, , cannot be written"] == "Unavailable"
    # Text in single quotes, of which people copy the first line, and text that a function returns.
    assert found['variable " " has no value: it was not fed and no operator computes it'] == "MissingFeed"
    assert ("act must be the name of an activation, got", "InvalidValue") in site_answers.messages()


def test_pages_of_topics_exist_or_are_written_by_the_build():
    import generate_reference
    with open(os.path.join(ROOT, "docs", "topics.json"), encoding="utf-8") as file:
        topics = json.load(file)
    for page in topics:
        path, _, anchor = page.partition("#")
        there = os.path.join(ROOT, "docs", path + ".md")
        assert path + ".md" in generate_reference.PAGES or os.path.exists(there), page
        if anchor:
            with open(there, encoding="utf-8") as file:
                headings = [line.strip("# \n").lower().replace(" ", "-") for line in file if line.startswith("#")]
            assert anchor in headings, page
    words = {word for of in topics.values() for word in of}
    assert {"quickstart", "tutorial", "performance", "docker", "license", "out of memory", "dygraph"} <= words


def entries(page):
    """[(caption or None, pages)] of the tables of contents of a page of docs, without globs."""
    folder = os.path.dirname(page)
    with open(os.path.join(ROOT, "docs", page), encoding="utf-8") as file:
        tables = re.findall(r"^```{toctree}\n(.*?)^```", file.read(), re.M | re.S)
    found = []
    for table in tables:
        caption = re.search(r"^:caption: (.*)$", table, re.M)
        names = [re.sub(r".*<(.*)>", r"\1", line) for line in table.splitlines() if line and line[0] != ":"]
        found.append((caption and caption.group(1), [os.path.join(folder, name) for name in names if "*" not in name]))
    return found


def test_the_contents_show_installing_first_and_pages_for_developers_apart():
    groups = dict(entries("index.md"))
    assert list(groups) == ["Start", "Use", "Understand and change"]
    assert groups["Start"][0] == "install"
    top = {page for pages in groups.values() for page in pages}
    for _, pages in entries("develop/index.md"):
        assert top.isdisjoint(pages)


def test_each_page_has_its_own_title():
    """Titles are the labels of the contents, so two pages with one title cannot be told apart."""
    titles = {}
    for folder, _, files in os.walk(os.path.join(ROOT, "docs")):
        for name in files:
            if name.endswith(".md"):
                with open(os.path.join(folder, name), encoding="utf-8") as file:
                    title = re.search(r"^# (.*)$", file.read(), re.M)
                if title:
                    titles.setdefault(title.group(1), []).append(os.path.relpath(os.path.join(folder, name), ROOT))
    assert len(titles) > 60
    assert {title: pages for title, pages in titles.items() if len(pages) > 1} == {}


def test_a_recipe_shows_code_before_its_first_table():
    """Only a table whose rows show calls, as in save_and_load.md, may come first."""
    for folder, _, files in os.walk(os.path.join(ROOT, "docs", "do")):
        for name in files:
            with open(os.path.join(folder, name), encoding="utf-8") as file:
                before = re.split(r"^(?:```\w|    \S)", file.read(), maxsplit=1, flags=re.M)[0]
            rows = re.findall(r"^\|(?!---).*$", before, re.M)[1:]
            assert all("(" in row for row in rows), "%s: a table comes before the first command" % name


def test_other_names_of_classes_are_classes():
    assert site_answers._kind("anabranch.fluid.optimizer.Adam", "attribute", set()) == "class"
    assert site_answers._kind("anabranch.Report.T", "attribute", {"anabranch.Report"}) == "attribute"
    assert site_answers._kind("anabranch.fluid.layers.fc", "function", set()) == "layer"


def cell(*literals):
    return docutils_nodes.entry("", docutils_nodes.paragraph("", "", *(
        docutils_nodes.literal(text, text) for text in literals)))


@pytest.mark.parametrize("literals, names", [
    (["dropout"], ["dropout"]), (["fluid.layers.conv2d(x)", "groups"], ["conv2d"]), (["padding_idx"], []),
    (["Executor", "Executor"], ["Executor"]), (["GradientClipByNorm"], ["GradientClipByNorm"]),
    (["fluid.optimizer.Adam"], ["Adam"]), ([], []),
])
def test_names_of_a_row(literals, names):
    assert site_tables.names_of(cell(*literals)) == names


def test_most_rows_of_the_differences_name_something():
    with open(os.path.join(ROOT, "docs", "differences.md"), encoding="utf-8") as file:
        rows = [line.split("|")[1] for line in file if re.match(r"\| (?!what|-)", line)]
    named = [row for row in rows if any(site_tables.is_name(word) for word in re.findall(r"\w+", row))]
    assert len(rows) > 300 and len(named) > 0.6 * len(rows)


def test_the_picture_of_lesson_3_shows_what_its_program_learns():
    # As in a new process: default programs, names and values of other tests would change the first values.
    with fluid.scope_guard(fluid.Scope()), fluid.program_guard(fluid.Program(), fluid.Program()), \
            fluid.unique_name.guard():
        lesson = draw_lessons.run_lesson()
        batch = lesson["spirals"](draw_lessons.POINTS, seed=12345)
        classes = draw_lessons.classes_of_cells(lesson)
    made = draw_lessons.picture(classes, batch)
    with open(draw_lessons.PICTURE, encoding="utf-8") as file:
        there = file.read()
    assert re.findall("<circle.*", made) == re.findall("<circle.*", there)
    cells = draw_lessons.CELLS / draw_lessons.SIZE
    painted = [[None] * draw_lessons.CELLS for _ in range(draw_lessons.CELLS)]
    boxes = r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="\d+" fill="(#\w+)"'
    for x, y, width, color in re.findall(boxes, there):
        for i in range(round(float(width) * cells)):
            painted[round(float(y) * cells)][round(float(x) * cells) + i] = draw_lessons.COLOURS.index(color)
    equal = sum(a == b for row, other in zip(painted, classes) for a, b in zip(row, other))
    assert equal > 0.97 * draw_lessons.CELLS ** 2, "tools/draw_lessons.py must draw it again"


ANSWERS = {
    "names": [["anabranch.fluid.layers.fc", "layer", "layers/dense.html#fc"],
              ["anabranch.fluid.layers.mean", "layer", "mean.html"],
              ["anabranch.fluid.Program", "class", "program.html"], ["mean", "operator", "operators/m.html#mean"],
              ["momentum", "operator", "operators/m.html#momentum"], ["anabranch.fluid.Momentum", "class", "momentum"],
              ["anabranch.fluid.layers.cross_entropy", "layer", "losses.html"],
              ["anabranch.fluid.Report.threads", "attribute", "report.html"]],
    "topics": [["out of memory", "Memory", "memory.html"], ["docker", "Install", "install.html"],
               ["threads", "All cores", "cores.html"]],
    "messages": [["variable holds no value", "NotFound", "errors/NotFound.html"],
                 ["fetched variable holds no value", "NotFound", "other.html"],
                 ["axis must be below the rank, got", "InvalidArgument", "errors/InvalidArgument.html"]],
}


def page_with(folder, script, body, style=""):
    path = os.path.join(str(folder), script + ".html")
    with open(os.path.join(STYLE, script), encoding="utf-8") as file:
        code = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write("<!doctype html><style>%s</style><body>%s<script>const ANSWERS = %s;\n%s</script></body>" % (
            style, body, json.dumps(ANSWERS), code))
    return path


@needs_browser
def test_answers_to_searches(tmp_path):
    page_with(tmp_path, "answers.js", '<div id="search-results"></div>')
    asked = {
        "fc": ["layers/dense.html#fc"], "fluid.layers.fc": ["layers/dense.html#fc"], "FC": ["layers/dense.html#fc"],
        "momentum": ["momentum", "operators/m.html#momentum"], "cross entropy": ["losses.html"],
        "threads": ["cores.html", "report.html"], "Report.threads": ["report.html"],
        "paddle.fluid.Program": ["program.html"], "mean": ["mean.html", "operators/m.html#mean"],
        "the fc layer": ["layers/dense.html#fc"], "how to install with docker": ["install.html"],
        "it runs out of memory": ["memory.html"], "dockers": [], "gram": [],
        "variable fc_0.w_0 holds no value": ["errors/NotFound.html", "other.html"],
        "mul: axis must be below the rank, got 7": ["errors/InvalidArgument.html"], "must be": [],
    }
    links = """async window => [...window.document.querySelectorAll(".answers a")].map(a => a.getAttribute("href"))"""
    visits = [("answers.js.html?q=" + words.replace(" ", "+"), 800, "links") for words in asked]
    assert dict(zip(asked, browser.visit(str(tmp_path), visits, {"links": links}))) == asked


TABLES = """<article><a href="other.html#new.place">moved</a><div class="filter"><input id="row-filter">
<output id="row-count"></output></div><section id="one"><table class="filtered"><tbody><tr><td>conv2d groups</td></tr>
<tr><td>dropout</td></tr></tbody></table></section><section id="two"><table class="filtered"><tbody>
<tr><td>pool2d</td></tr></tbody></table></section><img src="picture.svg"></article>"""


@needs_browser
def test_rows_are_filtered_and_old_addresses_forwarded(tmp_path):
    page_with(tmp_path, "site.js", TABLES)
    (tmp_path / "other.html").write_text("<body><p id='new.place'>here</p></body>")
    (tmp_path / "picture.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    shown = """async window => {
      const page = window.document, rows = [...page.querySelectorAll("tr")].filter(row => row.getClientRects().length);
      const picture = page.querySelector("a.picture");
      return [rows.map(row => row.textContent), page.getElementById("row-count").textContent, picture.href];
    }"""
    address = "async window => { await pause(300); return frame.contentWindow.location.href; }"
    visits = [("site.js.html", 800, "shown"), ("site.js.html?name=CONV2D+groups", 800, "shown"),
              ("site.js.html?name=nothing", 800, "shown"), ("site.js.html#new.place", 800, "address"),
              ("site.js.html#one", 800, "address")]
    everything, one, none, moved, stays = browser.visit(str(tmp_path), visits, {"shown": shown, "address": address})
    assert everything[0] == ["conv2d groups", "dropout", "pool2d"] and everything[1] == "3 rows"
    assert one[:2] == [["conv2d groups"], "1 row"] and none[:2] == [[], "0 rows"]
    assert everything[2].endswith("/picture.svg")
    assert moved.endswith("/other.html#new.place") and stays.endswith("/site.js.html#one")


CELLS = """<article><table class="docutils"><thead><tr><th><p>workload</p></th><th><p>Fluid</p></th>
<th><p>others</p></th></tr></thead><tbody><tr><td><p>word2vec</p></td><td><p>3.00</p></td><td><p>gensim</p></td></tr>
<tr><td><p>CTR</p></td><td><p>1.63</p></td><td><p></p></td></tr></tbody></table>
<table class="docutils"><thead><tr><th>layer</th><th>what it does</th></tr></thead>
<tbody><tr><td>fc</td><td>products</td></tr></tbody></table>%s</article>"""


@needs_browser
def test_cells_say_what_they_hold_on_a_telephone_and_pictures_fit(tmp_path):
    sizes = {"small": (300, 200), "wide": (480, 500), "graph": (900, 500), "tower": (300, 3000)}
    for name, (width, height) in sizes.items():
        (tmp_path / (name + ".svg")).write_text('<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d"/>' % (
            width, height))
    with open(os.path.join(STYLE, "site.css"), encoding="utf-8") as file:
        page_with(tmp_path, "site.js", CELLS % "".join("<p><img src=%s.svg></p>" % name for name in sizes), file.read())
    shown = """async window => {
      await pause(200);
      const page = window.document, frames = [...page.querySelectorAll("a.picture")];
      return {labels: [...page.querySelectorAll("td")].map(cell => window.getComputedStyle(cell, "::before").content),
              scroll: frames.map(f => [f.scrollWidth > f.clientWidth + 1, f.scrollHeight > f.clientHeight + 1]),
              left: page.querySelector("table").getBoundingClientRect().left};
    }"""
    visits = [("site.js.html", width, "shown") for width in (390, 1280)]
    phone, desk = browser.visit(str(tmp_path), visits, {"shown": shown})
    assert phone["labels"] == ["none", '"Fluid: "', '"others: "', "none", '"Fluid: "', "none", "none", "none"]
    assert set(desk["labels"]) == {"none"} and desk["left"] < 20
    assert phone["scroll"] == [[False, False], [False, False], [True, False], [False, True]]
    assert desk["scroll"] == [[False, False], [False, False], [False, False], [False, True]]
