"""Sphinx configuration; `./dev docs` builds."""
import importlib.util
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
html_theme = "furo" if importlib.util.find_spec("furo") else "alabaster"
html_title = "Anabranch " + release
html_static_path = ["style"]
html_css_files = ["site.css"]
html_search_scorer = os.path.join(HERE, "style", "scorer.js")
html_show_sphinx = html_show_copyright = False
# Pages open from a disk: nothing is fetched, and the search needs no server.
html_copy_source = False
myst_heading_anchors = 3


def _escape_bars(app, what, name, obj, options, lines):
    """Formulas write |x|, which reStructuredText would take for a substitution; examples stay as they are."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and line.strip() != "")
        if not in_example:
            lines[i] = line.replace("|", "\\|")


def setup(app):
    app.connect("autodoc-process-docstring", _escape_bars, priority=900)
