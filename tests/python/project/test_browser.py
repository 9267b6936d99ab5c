"""The page of a profile in a browser: it sorts, filters, changes its tab, and nothing sticks out at two widths."""
import os
import re
import sys

import numpy
import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import profiling
from anabranch.drawing import program_graph
from anabranch.profiling.page import page_of

sys.path.insert(0, os.path.join(ROOT, "tools"))

import browser  # noqa: E402
import look_at_site  # noqa: E402

needs_browser = pytest.mark.skipif(browser.find() is None, reason=browser.MISSING)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.scope_guard(fluid.Scope()):
        loss = fluid.layers.mean(fluid.layers.fc(fluid.data("x", [None, 64]), 32, act="relu", name="with_<a>_tag"))
        fluid.optimizer.Adam(0.1).minimize(loss)
        executor = fluid.Executor()
        executor.run(startup)
        fluid.profiler.reset_profiler()
        fluid.profiler.start_profiler("CPU")
        for _ in range(3):
            executor.run(main, feed={"x": numpy.ones((8, 64), "float32")}, fetch_list=[loss])
        path = str(tmp_path_factory.mktemp("page") / "profile.html")
        profiling.take().page(path, "a <title>", program_graph(main.global_block()), fluid.memory_report(main))
        fluid.profiler.stop_profiler(profile_path="")
        fluid.profiler.reset_profiler()
    return path


def test_the_page_holds_all_that_it_shows(page):
    with open(page, encoding="utf-8") as file:
        text = file.read()
    assert "<title>a &lt;title&gt;</title>" in text and "with_<a>" not in text
    assert not re.search(r'(?:src|href)=|url\((?!#)|@import', text)
    assert text.count('<tr class="type">') > 4 and text.count("<svg") == 2 and "optimizer state" in text


def test_a_page_without_graph_and_memory(page):
    text = page_of(profiling.take())
    for words in ("made without a graph", "made without a memory report", "No run was measured"):
        assert words in text


@needs_browser
@pytest.mark.parametrize("width", look_at_site.WIDTHS)
def test_nothing_sticks_out(page, width):
    has, window = browser.widths(page, width)
    assert has <= window <= width


@needs_browser
def test_a_click_sorts_and_a_word_filters(page):
    text = browser.probed(page, """
        const rows = () => [...document.querySelectorAll("#operators tbody tr")].filter(
            row => getComputedStyle(row).display !== "none").map(row => row.cells[0].textContent);
        const head = document.querySelectorAll("#operators thead button"), out = document.body.dataset;
        head[0].click(); out.byName = rows().join(" ");
        head[0].click(); out.backwards = rows().join(" ");
        const filter = document.getElementById("filter");
        filter.value = "mean"; filter.oninput({target: filter}); out.filtered = rows().join(" ");
        filter.value = ""; filter.oninput({target: filter});
        const each = document.getElementById("each"); each.click(); out.each = rows().length;
        out.shown = [...document.querySelectorAll("section")].filter(s => !s.hidden).map(s => s.id).join(" ");
        """, fragment="#memory")
    said = dict(re.findall(r'data-([\w-]+)="([^"]*)"', re.search(r"<body[^>]*>", text).group()))
    names = said["by-name"].split(" ")
    assert names == sorted(names) and len(names) > 4 and said["backwards"].split(" ") == names[::-1]
    assert sorted(said["filtered"].split(" ")) == [name for name in names if "mean" in name] != []
    assert int(said["each"]) >= len(names) and said["shown"] == "tab-memory"
