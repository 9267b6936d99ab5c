"""Pictures: layouts without overlaps, DOT that is read back, programs, graphs after each pass, traces."""
import os
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as xml

import numpy
import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import _core, drawing, profiling
from anabranch.drawing import layout as layouts

sys.path.insert(0, os.path.join(ROOT, "tools"))
import generate_pictures  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def network(train=True):
    x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
    loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(fluid.layers.fc(x, 4, act="relu"), 1), y))
    if train:
        fluid.optimizer.Adam(0.01).minimize(loss)
    return loss


@pytest.fixture
def program():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        main.loss = network()
    main.startup = startup
    return main


# ---- layout

@pytest.mark.parametrize("seed", range(40))
def test_layouts_keep_their_distance(seed):
    rng = random.Random(seed)
    n = rng.randrange(1, 60)
    edges = list({(rng.randrange(n), rng.randrange(n)) for _ in range(rng.randrange(2 * n))})
    widths = [rng.choice([10, 40, 90]) for _ in range(n)]
    where, paths = layouts.layout(list(range(n)), edges, lambda key: widths[key], gap=5)
    assert set(where) == set(range(n)) and set(paths) == set(edges)
    rows = {}
    for key, (x, layer) in where.items():
        rows.setdefault(layer, []).append((x - widths[key] / 2, x + widths[key] / 2))
    for boxes in rows.values():
        boxes.sort()
        assert boxes[0][0] > -1e-6
        assert all(right[0] - left[1] > 5 - 1e-6 for left, right in zip(boxes, boxes[1:]))
    for source, target in edges:
        if source != target:
            assert where[source][1] != where[target][1], "an edge inside a layer"


def test_acyclic_edges_lead_down():
    edges = [(a, b) for a in range(30) for b in range(a + 1, min(a + 4, 30))]
    where, paths = layouts.layout(list(range(30)), edges, lambda key: 20.0)
    assert all(where[a][1] < where[b][1] for a, b in edges)
    assert all([layer for _, layer in paths[a, b]] == list(range(where[a][1] + 1, where[b][1])) for a, b in edges)


def test_large_graphs_are_laid_out_in_linear_space():
    n = 6000                                              # every node is read once at the very end: n * n / 2 bends
    edges = [(i, i + 1) for i in range(n - 1)] + [(i, 2 * n - i) for i in range(n)]
    edges += [(n + i, n + i + 1) for i in range(n)]
    where, paths = layouts.layout(list(range(2 * n + 1)), edges, lambda key: 20.0)
    assert sum(map(len, paths.values())) <= layouts.MOST_BENDS and len(where) == 2 * n + 1


# ---- DOT and SVG

def test_dot_is_read_back():
    graph = drawing.Graph('a "title"')
    graph.node("n 1", 'two\nlines "quoted" \\ ] ; ->', fill="#123456", tip="tip\n2")
    graph.edge("n 1", "other", "label")
    back = drawing.parse_dot(graph.dot())
    assert back.title == graph.title and back.edges == graph.edges
    assert [(n.key, n.lines, n.fill, n.tip) for n in back.nodes.values()] == \
        [(n.key, n.lines, n.fill, n.tip) for n in graph.nodes.values()]


def test_dot_of_others_is_refused_or_skipped():
    with pytest.raises(ValueError, match="digraph"):
        drawing.parse_dot("graph g { a -- b; }")
    assert not drawing.parse_dot("digraph g {").nodes
    assert drawing.parse_dot("digraph g { subgraph x { a -> b; } }").edges == []


def texts(path):
    root = xml.parse(str(path)).getroot()
    assert root.tag == SVG + "svg"
    return [element.text for element in root.iter(SVG + "text")]


@pytest.mark.parametrize("name", ["$(touch pwned).svg", "`touch pwned`.svg", "-o;touch pwned.svg"])
def test_names_are_not_run_as_commands(program, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    program.draw(name)
    assert os.listdir(str(tmp_path)) == [name]


# ---- programs

def test_draw_program(program, tmp_path):
    program.draw(str(tmp_path / "deep" / "p.svg"))
    found = texts(tmp_path / "deep" / "p.svg")
    assert found.count("adam") == 4 and "x" in found and "fc_0.w_0" in found
    program.draw(str(tmp_path / "ops.svg"), variables=False)
    found = texts(tmp_path / "ops.svg")
    assert found.count("mul_grad") == 2 and "fc_0.w_0" not in found
    program.draw(str(tmp_path / "p.dot"), highlights=["fc_0.w_0"])
    assert '"#ff8a80"' in (tmp_path / "p.dot").read_text()


def test_every_operator_and_version_is_in_the_graph(program):
    graph = drawing.program_graph(program.global_block())
    ops = [key for key in graph.nodes if key.startswith("op")]
    assert len(ops) == len(program.global_block().ops)
    assert "fc_0.w_0/0" in graph.nodes and "fc_0.w_0/1" in graph.nodes, "the parameter before and after its update"
    layer = layouts._layers(list(graph.nodes), [(s, t) for s, t, _ in graph.edges])
    assert all(layer[s] < layer[t] for s, t, _ in graph.edges), "no edge leads back"


def test_bad_arguments(program, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"\.svg, \.dot"):
        program.draw(str(tmp_path / "p.gif"))
    with pytest.raises(ValueError):
        program.draw(str(tmp_path / "p.svg"), block=1)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(NotImplementedError, match="Graphviz, whose program `dot` is not on the PATH"):
        program.draw(str(tmp_path / "p.png"))
    with pytest.raises(OSError):
        program.draw("/proc/no/p.svg")
    assert os.listdir(str(tmp_path)) == []


def test_debugger(program, tmp_path, capsys):
    path = str(tmp_path / "block.dot")
    assert fluid.debugger.draw_block_graphviz(program.global_block(), ["fc_0.w_0"], path) is None
    assert len(drawing.parse_dot(open(path).read()).nodes) > 20 and "mul" in texts(tmp_path / "block.svg")
    forward = fluid.debugger.pprint_block_codes(program.global_block())
    whole = fluid.debugger.pprint_block_codes(program.global_block(), show_backward=True)
    assert "mul_grad" not in forward and "mul_grad" in whole
    assert "mul_grad" in fluid.debugger.pprint_program_codes(program)
    assert capsys.readouterr().out == ""  # as in 1.8.5, these functions return the text
    for function in (fluid.debugger.draw_block_graphviz, fluid.debugger.pprint_block_codes,
                     fluid.debugger.pprint_program_codes):
        with pytest.raises(TypeError):
            function(5)


# ---- graphs after passes, traces

def run(program, build=None, times=1):
    scope, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    exe.run(program.startup, scope=scope)
    compiled = fluid.CompiledProgram(program).with_data_parallel(
        loss_name=program.loss.name, build_strategy=build, places=fluid.cpu_places(2))
    for _ in range(times):
        exe.run(compiled, feed={"x": numpy.ones((6, 8), "float32"), "y": numpy.ones((6, 1), "float32")},
                fetch_list=[program.loss], scope=scope)
    return compiled


def test_graphs_after_every_pass(program, tmp_path):
    build = fluid.BuildStrategy()
    build.debug_graphviz_path = str(tmp_path / "graph")
    run(program, build)
    dots = sorted(name for name in os.listdir(str(tmp_path)) if name.endswith(".dot"))
    assert dots[0] == "graph_00_replicated.dot" and len(dots) > 2
    for name in dots:
        assert "replica 1" in texts(tmp_path / name.replace(".dot", ".svg"))


def test_draw_compiled(program, tmp_path):
    with pytest.raises(RuntimeError, match="there is no graph yet: run the program first"):
        fluid.CompiledProgram(program).draw(str(tmp_path / "g.svg"))
    run(program).draw(str(tmp_path / "g.svg"))
    found = texts(tmp_path / "g.svg")
    assert any(re.match("all_reduce", text) for text in found)
    assert found[1:3] == ["replica 0", "replica 1"], "the legend stands first, after the title"


def test_command_line(program, tmp_path):
    program.draw(str(tmp_path / "p.dot"))
    done = subprocess.run([sys.executable, "-m", "anabranch.drawing", "p.dot"], cwd=str(tmp_path), check=True,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")), stdout=subprocess.PIPE)
    assert done.stdout == b"p.svg\n" and "adam" in texts(tmp_path / "p.svg")


def test_draw_trace(program, tmp_path):
    fluid.profiler.start_profiler("CPU")
    try:
        run(program, times=3)
    finally:
        _core.stop_profiler()
    report = profiling.take()
    _core.reset_profiler()
    report.draw(str(tmp_path / "trace.svg"), runs=2)
    found = texts(tmp_path / "trace.svg")
    assert found[0] == "Threads during 2 runs" and any(text.startswith("thread ") for text in found)
    with pytest.raises(ValueError, match="at least 1"):
        report.draw(str(tmp_path / "none.svg"), runs=0)


@pytest.mark.parametrize("name", sorted(generate_pictures.PICTURES))
def test_the_pictures_of_the_code_are_current(name):
    made = drawing.to_svg(generate_pictures.graph_of(generate_pictures.PICTURES[name]))
    with open(os.path.join(generate_pictures.FOLDER, name + ".svg"), encoding="utf-8") as file:
        assert file.read() == made, "tools/generate_pictures.py must draw it again"


@pytest.mark.parametrize("field, value, message", [("name", "Step::walk", "has no function Step::walk"),
                                                   ("call", r"\bwalk\(", "calls Step::run")])
def test_a_picture_needs_the_functions_and_the_calls_that_it_shows(field, value, message):
    boxes = [box._replace(**{field: value}) if box.name == "Step::run" else box for box in generate_pictures.STEP]
    with pytest.raises(SystemExit, match=message):
        generate_pictures.graph_of(boxes)
