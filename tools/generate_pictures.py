#!/usr/bin/env python3
"""Draws how a step and the body of a loop run. The boxes are functions of the code; an arrow leads from a function to
those that it calls, itself or through other functions of its file.

    PYTHONPATH=python tools/generate_pictures.py      writes docs/pictures/step.svg and docs/pictures/loop_body.svg
"""
from __future__ import annotations

import os
import re
import sys
import typing

from anabranch import drawing

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
FOLDER = os.path.join(ROOT, "docs", "pictures")
COLOURS = {"python/anabranch": "#fdebd0", "python/bindings": "#fbe0e0", "src/engine": "#dbe9f7", "src/exec": "#dff0dc",
           "src/ops": "#ece2f3"}


class Box(typing.NamedTuple):
    """A function. ``call``: a regular expression of the calls of it."""

    name: str
    file: str
    call: str
    text: str


STEP = [
    Box("Executor.run", "python/anabranch/fluid/executor.py", "", "called by the user"),
    Box("Bound.again", "python/anabranch/fluid/bound.py", r"\.again\(", "a call like an earlier one"),
    Box("Bound.run", "python/anabranch/fluid/bound.py", r"\bbound\.run\(", "a new call: looks names up, converts"),
    Box("PreparedCall::run", "python/bindings/bind_run.cc", r"\bcall\.run\(", "compares names by identity"),
    Box("CompiledProgram::run", "src/engine/compiled_program.cc", r"\bengine\.run\(", "finds the fed variables"),
    Box("PreparedRun::run", "src/engine/prepared_run.cc", r"\b(run_|prepared)\.run\(", "a call with known names"),
    Box("check_fed", "src/engine/feed.cc", r"\bcheck_fed\(", "checks what is fed"),
    Box("split_feed", "src/engine/feed.cc", r"\bsplit_feed\(", "one slice per replica"),
    Box("CompiledProgram::Impl::binding_for", "src/engine/compiled_program.cc", r"\bbinding_for\(",
        "creates the plan\nif there is none"),
    Box("CompiledProgram::Impl::run_step", "src/engine/compiled_program.cc", r"\brun_step\(", "enters the scope"),
    Box("Binding::run", "src/engine/binding.cc", r"\bbinding\.run\(",
        "chooses the plan with passes,\nor the one without"),
    Box("Step::run", "src/engine/step.cc", r"\bstep\.run\(", "runs one plan"),
    Box("FeedSlots::bind", "src/engine/feed_slots.cc", r"\bfeeds_\.bind\(", "feeds become views\nin the plan"),
    Box("Layout::make", "src/engine/layout.cc", r"\blayout_->make\(", "only if a shape or\na place has changed"),
    Box("Plan::lay_out", "src/exec/plan.cc", r"\bplan\.lay_out\(", "infers shapes,\nchooses kernels"),
    Box("MemoryPlan::place", "src/exec/memory_plan.cc", r"\bmemory_\.place\(", "places temporaries\nin one arena"),
    Box("run_sequential", "src/exec/sequential.cc", r"\brun_sequential\(", "in plan order"),
    Box("run_threaded", "src/exec/threaded.cc", r"\brun_threaded\(", "ready ops on all threads"),
    Box("run_watched", "src/exec/run_state.cc", r"\b(run_watched|run_node)\(",
        "with probes and traces,\nif there are any"),
    Box("Plan::run", "src/exec/plan.h", r"\b(plan\.run|run_to_end)\(", "the kernel of one op"),
    Box("Step::collect", "src/engine/step_inspect.cc", r"\bstep\.collect\(", "copies what is fetched"),
]
LOOP_BODY = [
    Box("while", "src/ops/control/while.cc", "", "the kernel of the op"),
    Box("BlockCode::begin", "src/exec/block_run.cc", r"\bblock->begin\(", "before the first iteration"),
    Box("BlockCode::run", "src/exec/block_run.cc", r"\bblock->run\(", "one iteration"),
    Box("BlockCode::enter", "src/exec/block_run.cc", r"\benter\(", "takes a frame"),
    Box("BlockCode::execute", "src/exec/block_run.cc", r"\bexecute\(", "runs the ops on the frame"),
    Box("BlockCode::bind", "src/exec/block_run.cc", r"\bbind\(", "resolves addresses,\nonce per frame"),
    Box("BlockMemory::lend", "src/exec/block_memory.h", r"\bmemory_\.lend\(", "places temporaries\nin the arena"),
    Box("BlockCode::run_nodes", "src/exec/block_run.cc", r"\brun_nodes\(", "in program order"),
    Box("BlockCode::is_steady", "src/exec/block_signatures.cc", r"\bis_steady\(",
        "are all signatures those\nof the last iteration?"),
    Box("BlockCode::run_group", "src/exec/block_groups.cc", r"\brun_group\(", "independent ops\nthat run blocks"),
    Box("BlockCode::run_alone", "src/exec/block_run.cc", r"\brun_alone\(", "any other op"),
    Box("BlockCode::lay_out", "src/exec/block_run.cc", r"\blay_out\(", "shape function,\nunless steady"),
    Box("BlockCode::run_parts", "src/exec/block_run.cc", r"\brun_parts\(",
        "the unfused ops, if the\nfused one refuses shapes"),
    Box("BlockCode::run_node", "src/exec/block_run.cc", r"\brun_node\(", "kernel, then checks and traces"),
    Box("BlockCode::note", "src/exec/block_signatures.cc", r"\bnote\(", "records signatures"),
    Box("BlockCode::end_notes", "src/exec/block_signatures.cc", r"\bend_notes\(", "the next iteration\nmay be steady"),
    Box("BlockMemory::settle", "src/exec/block_memory.cc", r"\bmemory_\.settle\(", "enlarges the arena"),
]
PICTURES = {"step": STEP, "loop_body": LOOP_BODY}


def body_of(text: str, name: str) -> str:
    """The body of the function of this name; empty if the file does not define it."""
    plain = re.escape(re.split(r"::|\.", name)[-1])
    if name == "while":
        return text
    for pattern in (r"^()(?:[\w:<>&*, ]*[ *&])?%s\([^;{}]*\{.*?^\}" % re.escape(name),
                    r"^( +)\w[\w:<>&*, ]* %s\([^;{}]*\{.*?^\1\}" % plain,     # declared within its class
                    r"^( *)def %s\(.*?(?=^\1\S|\Z)" % plain):
        found = re.search(pattern, text, re.M | re.S)
        if found:
            return found.group(0)
    return ""


def code_of(box: Box, boxes: list[Box]) -> str:
    """The body of a function, and of the functions of its file that it calls and that have no box."""
    with open(os.path.join(ROOT, box.file), encoding="utf-8") as file:
        text = file.read()
    qualifier = re.sub(r"\w+$", "", box.name)
    known = {other.name for other in boxes if other.file == box.file}
    waiting, code = [box.name], ""
    while waiting:
        body = body_of(text, waiting.pop())
        code += body
        for callee in dict.fromkeys(re.findall(r"\b(\w+)\(", body)):
            name = next((name for name in (qualifier + callee, callee) if name in known or body_of(text, name)), "")
            if name and name not in known:
                known.add(name)
                waiting.append(name)
    if not code:
        raise SystemExit("%s has no function %s: change tools/generate_pictures.py" % (box.file, box.name))
    return code


def graph_of(boxes: list[Box]) -> drawing.Graph:
    """The boxes, and the calls between them.

    Raises:
        SystemExit: the code has no such function, or none that calls it.
    """
    folders = [folder for folder in COLOURS if any(box.file.startswith(folder + "/") for box in boxes)]
    graph = drawing.Graph("", [(folder, COLOURS[folder]) for folder in folders])
    for box in boxes:
        fill = next(COLOURS[folder] for folder in folders if box.file.startswith(folder + "/"))
        graph.node(box.name, box.name + "\n" + box.text, fill=fill, tip=box.file)
    for box in boxes:
        code = code_of(box, boxes)
        for other in boxes:
            if other is not box and other.call and re.search(other.call, code):
                graph.edge(box.name, other.name)
    called = {target for _, target, _ in graph.edges}
    for box in boxes[1:]:
        if box.name not in called:
            raise SystemExit("no function of the picture calls %s: change tools/generate_pictures.py" % box.name)
    return graph


def main() -> int:
    for name, boxes in PICTURES.items():
        drawing.write_picture(graph_of(boxes), os.path.join(FOLDER, name + ".svg"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
