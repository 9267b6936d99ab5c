"""Sphinx configuration; `./dev docs` builds."""
import os
import re

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "pyproject.toml")) as settings:
    release = re.search(r'^version = "(.*)"', settings.read(), re.M).group(1)

project = "Anabranch"
author = "the Anabranch authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
source_suffix = {".md": "markdown"}
exclude_patterns = []
html_theme = "alabaster"
