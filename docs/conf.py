"""Sphinx configuration; `./dev docs` builds."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "pyproject.toml")) as settings:
    release = re.search(r'^version = "(.*)"', settings.read(), re.M).group(1)

sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "python")]
import generate_reference  # noqa: E402

generate_reference.write(HERE)

project = "Anabranch"
author = "the Anabranch authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = []
html_theme = "alabaster"


def _escape_bars(app, what, name, obj, options, lines):
    """Formulas write |x|, which reStructuredText would take for a substitution; examples stay as they are."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and line.strip() != "")
        if not in_example:
            lines[i] = line.replace("|", "\\|")


def setup(app):
    app.connect("autodoc-process-docstring", _escape_bars, priority=900)
