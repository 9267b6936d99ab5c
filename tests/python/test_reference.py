"""The reference pages: operators with their schemas, layers by module, classes, and the tables that the code prints."""
import os
import re
import sys

import anabranch.fluid as fluid
from anabranch import __main__ as commands
from anabranch import _core
from anabranch.fluid import errors

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools"))

import generate_modules  # noqa: E402
import generate_reference  # noqa: E402


def test_every_operator_has_a_section():
    page = generate_reference.operators_page()
    ops = [op for op in _core.op_types() if not op.endswith("_grad")]
    assert ops and page.count("\n## ") == len(ops)
    assert "\n## leaky\\_relu\n\nOut = X where X > 0, else alpha X\n\nSource: Maas" in page
    assert "| attribute | `alpha` | float, default" in page and "Gradient: `leaky_relu_grad`." in page


def test_every_layer_is_on_the_page():
    page = generate_reference.layers_page()
    names = [name for names in generate_modules.implementations().values() for name in names]
    assert sorted(names) == sorted(fluid.layers.__all__)
    for name in names:
        assert re.search(r"\.\. auto(class|function):: anabranch\.fluid\.layers\.%s\n" % name, page), name


def test_pages_are_written_once(tmp_path):
    generate_reference.write(str(tmp_path))
    def times():
        return {str(p.relative_to(tmp_path)): p.stat().st_mtime_ns for p in tmp_path.rglob("*.md")}
    before = times()
    generate_reference.write(str(tmp_path))
    assert {name for name in before if not name.startswith("errors")} == {
        "layers.md", "operators.md", "classes.md", "settings.md", "coverage.md", "commands.md",
        os.path.join("understand", "measured.md")}
    assert {os.path.basename(name) for name in before if name.startswith("errors")} == {
        error.__qualname__ + ".md" for error in errors.LISTED}
    assert before == times()


def test_commands_say_what_they_take():
    page = generate_reference.commands_page()
    for name in commands.COMMANDS:
        assert "\n## anabranch %s\n" % name in page and "usage: anabranch %s " % name in page


def first_column(page, heading):
    """What stands in backticks at the beginning of the rows of a section's table."""
    section = page[page.index("## %s\n" % heading):].split("\n## ")[0]
    return [line.split("`")[1] for line in section.splitlines() if line.startswith("| `")]


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


def test_classes_and_functions_are_on_the_page():
    page = generate_reference.classes_page()
    for name in ("fluid.Executor", "fluid.optimizer.Adam", "fluid.metrics.Auc", "fluid.io.save_params", "fluid.data"):
        assert re.search(r"\.\. auto(class|function):: anabranch\.%s\n" % re.escape(name), page), name
    for module in (fluid.optimizer, fluid.metrics, fluid.initializer, fluid.regularizer):
        for name in module.__all__:
            assert re.search(r"(\.|`)%s(\n|`)" % name, page), name
