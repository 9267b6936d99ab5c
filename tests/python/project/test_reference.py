"""The reference pages: operators with their schemas, layers by group, classes, and the tables that the code prints."""
import os
import re
import sys

import pytest
from repository import ROOT

import anabranch.fluid as fluid
from anabranch import __main__ as commands
from anabranch import _core
from anabranch.fluid import errors

sys.path.insert(0, os.path.join(ROOT, "tools"))

import generate_modules  # noqa: E402
import generate_reference  # noqa: E402
import reference_names  # noqa: E402
import reference_operators  # noqa: E402
from layer_groups import GROUPS  # noqa: E402


def test_every_operator_has_a_section_on_the_page_of_its_letter():
    ops = [op for op in _core.op_types() if not op.endswith("_grad")]
    assert ops and sorted(ops) == reference_operators.operators()
    for letter in {op[0] for op in ops}:
        page = reference_operators.letter_page(letter)
        assert page.count("\n## ") == sum(op[0] == letter for op in ops)
    page = reference_operators.letter_page("l")
    assert "\n## leaky\\_relu\n\nLeaky rectified linear unit: Out = max(X, alpha X)" in page
    assert "\n\nSource: Maas" in page
    assert "| attribute | `alpha` | float, default" in page and "Gradient: `leaky_relu_grad`." in page


def test_the_list_of_operators_links_each_to_its_page():
    page = reference_operators.operators_page()
    for op in reference_operators.operators():
        assert "| [`%s`](operators/%s.md#%s) | " % (op, op[0], op) in page


def test_every_layer_has_an_entry_on_the_page_of_its_group():
    of = generate_modules.implementations()
    grouped = [module for group in GROUPS for module in group.modules]
    assert sorted(grouped) == sorted(of), "tools/layer_groups.py must have each module of layers once"
    names = [name for names in of.values() for name in names]
    assert sorted(names) == sorted(fluid.layers.__all__)
    for group in GROUPS:
        page = reference_names.layer_page(group)
        table = page.split(".. auto")[0]
        for name in [name for module in group.modules for name in of[module]]:
            path = "anabranch.fluid.layers." + name
            assert re.search(r"\.\. auto(class|function):: %s\n" % path, page), name
            assert re.search(r"^\| \{py:obj\}`%s <%s>` \| \S.+ \|$" % (name, path), table, re.M), name


def test_groups_of_layers_are_small_and_lead_to_each_other():
    pages = {group.page for group in GROUPS}
    assert len(pages) == len(GROUPS) and all(set(group.related) <= pages - {group.page} for group in GROUPS)
    large = {group.page: len(reference_names._layers_of(group)) for group in GROUPS
             if len(reference_names._layers_of(group)) > 25}
    assert not large, ("pages with more than 25 layers: %s. If the new layer is one of Fluid, split the group in "
                       "tools/layer_groups.py; other layers belong to a module of anabranch, see "
                       "docs/develop/add_an_operator.md" % large)


def test_the_list_of_layers_has_each_once():
    page = reference_names.layers_page()
    for name in fluid.layers.__all__:
        assert page.count("{py:obj}`%s <anabranch.fluid.layers.%s>`" % (name, name)) == 1, name


def test_a_layer_leads_to_its_operator_and_to_what_differs():
    page = reference_names.layer_page(next(group for group in GROUPS if group.page == "dense"))
    after = page.split(":: anabranch.fluid.layers.dropout\n")[1]
    assert "../operators/d.md#dropout" in after and "../differences.html?name=dropout" in after


def test_pages_are_written_once(tmp_path):
    generate_reference.write(str(tmp_path))
    def times():
        return {str(p.relative_to(tmp_path)): p.stat().st_mtime_ns for p in tmp_path.rglob("*.md")}
    before = times()
    generate_reference.write(str(tmp_path))
    folders = ("errors", "layers", "classes", "operators")
    assert {name for name in before if not name.startswith(tuple(folder + os.sep for folder in folders))} == {
        "layers.md", "operators.md", "classes.md", "settings.md", "coverage.md", "commands.md",
        os.path.join("understand", "measured.md")}
    assert {os.path.basename(name)[:-3] for name in before if name.startswith("layers" + os.sep)} == {
        group.page for group in GROUPS}
    assert {os.path.basename(name) for name in before if name.startswith("errors")} == {
        error.__qualname__ + ".md" for error in errors.LISTED}
    assert before == times()


def test_commands_say_what_they_take():
    page = generate_reference.commands_page()
    for name in commands.COMMANDS:
        assert "\n## anabranch %s\n" % name in page and "usage: anabranch %s " % name in page


def first_column(page, heading):
    """The names in backticks with which the rows of a section's table start."""
    section = page[page.index("## %s\n" % heading):].split("\n## ")[0]
    return [line.split("`")[1] for line in section.splitlines() if re.match(r"\| (<a [^>]*></a>)?`", line)]


def test_flags_strategies_and_passes_are_on_the_page():
    page = generate_reference.settings_page()
    assert first_column(page, "Flags") == list(_core.all_flags()) and "FLAGS_fluid_exact" in page
    for strategy in (fluid.BuildStrategy, fluid.ExecutionStrategy):
        documented = first_column(page, strategy.__name__)
        assert documented and set(documented) == {name for name in vars(strategy) if name in repr_of_all(strategy)}
    assert first_column(page, "Passes") == [name for name, *_ in _core.pass_list()]


def repr_of_all(strategy):
    """Names of all that a strategy lets a program set."""
    made = strategy()
    return [name for name in dir(made) if not name.startswith("_") and not callable(getattr(made, name))]


def test_classes_and_functions_are_on_the_pages_of_their_modules():
    pages = {module: reference_names.class_page(module) for module in reference_names.MODULES}
    for module, name in (("fluid", "Executor"), ("fluid.optimizer", "Adam"), ("fluid.metrics", "Auc"),
                         ("fluid.io", "save_params"), ("fluid", "data")):
        assert re.search(r"\.\. auto(class|function):: anabranch\.%s\.%s\n" % (module, name), pages[module]), name
    everything = "\n".join(pages.values())
    for module in (fluid.optimizer, fluid.metrics, fluid.initializer, fluid.regularizer):
        for name in module.__all__:
            assert re.search(r"(\.|`)%s(\n|`)" % name, everything), name


def test_measured_opens_with_what_is_compared_and_explains_the_codes():
    page = generate_reference.measured_page()
    assert page.startswith("# Performance\n") and page.index("PyTorch") < page.index("## Last run")
    codes = first_cells(page, "Workloads")
    assert {"W1", "W8", "W9", "INSTR", "STEADY"} <= set(codes)


def first_cells(page, heading):
    section = page[page.index("## %s\n" % heading):]
    return [line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")]


@pytest.mark.parametrize("text, sentence", [
    ("Fully connected layer: out = act(x w).\n\nArgs:", "Fully connected layer"),
    ("Adds ``x_1`` to\n    a_b. More.", "Adds `x_1` to a\\_b"),
    ("Like :class:`~a.B` of 1.8.5. More.", "Like `a.B` of 1.8.5"),
])
def test_first_sentences(text, sentence):
    assert reference_names.first_sentence(type("A", (), {"__doc__": text})) == sentence
