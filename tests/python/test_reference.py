"""The reference pages: every operator with its schema, every layer by its module."""
import os
import sys

import anabranch.fluid as fluid
from anabranch import _core

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
    for module in generate_modules.implementations():
        assert ".. automodule:: anabranch.fluid.layers.%s\n" % module in page


def test_pages_are_written_once(tmp_path):
    generate_reference.write(str(tmp_path))
    times = {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
    generate_reference.write(str(tmp_path))
    assert set(times) == {"layers.md", "operators.md"}
    assert times == {p.name: p.stat().st_mtime_ns for p in tmp_path.iterdir()}
