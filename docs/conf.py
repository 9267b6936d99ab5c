"""Sphinx configuration; `./dev docs` builds."""
import importlib.util
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
with open(os.path.join(HERE, "..", "pyproject.toml")) as settings:
    project_settings = settings.read()
release = re.search(r'^version = "(.*)"', project_settings, re.M).group(1)
repository = "".join(re.findall(r'^repository = "(.*)"', project_settings, re.M | re.I)[:1])

sys.path[:0] = [os.path.join(HERE, "..", "tools"), os.path.join(HERE, "..", "python")]
import generate_reference  # noqa: E402
import site_sources  # noqa: E402

generate_reference.write(HERE)


def _found(*modules):
    return [module for module in modules if importlib.util.find_spec(module)]


project = "Anabranch"
author = "the Anabranch authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon",
              "site_answers", "site_sources", "site_tables", *_found("sphinx_copybutton")]
source_suffix = {".md": "markdown"}
exclude_patterns = []
html_theme = "furo" if _found("furo") else "alabaster"
html_title = "Anabranch " + release
html_static_path = ["style"]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_favicon = os.path.join("style", "favicon.svg")
html_search_scorer = os.path.join(HERE, "style", "scorer.js")
html_show_sphinx = html_show_copyright = False
# Pages open from a disk: nothing is fetched, and the search needs no server.
html_copy_source = False
if repository and html_theme == "furo":
    html_theme_options = {"source_repository": repository, "source_branch": "main",
                          "source_directory": "docs/"}
myst_enable_extensions = ["attrs_inline"]
myst_heading_anchors = 3
# Pages of the reference have tables of their entries; the sidebar of every page would carry all of them.
toc_object_entries = False
myst_html_meta = {"description": "Anabranch runs PaddlePaddle Fluid 1.x programs on CPU machines and clusters: "
                                 "CTR and ranking models with large sparse tables, and dense models."}
linkcode_resolve = site_sources.resolver(repository)
# A button on every block copies code without prompts and without output.
copybutton_exclude = ".linenos, .gp, .go"


def _escape_bars(app, what, name, obj, options, lines):
    """Formulas write |x|, which reStructuredText would take for a substitution; examples stay as they are."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = line.lstrip().startswith(">>>") or (in_example and line.strip() != "")
        if not in_example:
            lines[i] = line.replace("|", "\\|")


def _name_repository(app, page, source):
    """The line `git clone REPOSITORY` shows the address, where pyproject.toml has one."""
    if page == "index" and repository:
        source[0] = source[0].replace("git clone REPOSITORY", "git clone " + repository)


def _link_to_results(app, page, source):
    """A clone has benchmarks/RESULTS.md, and the site has a page of its contents instead."""
    if page == "index":
        source[0] = source[0].replace("](../benchmarks/RESULTS.md)", "](understand/measured.md)")


def skip_aliases(app, what, name, obj, skip, options):
    """ParallelExecutor.BuildStrategy is fluid.BuildStrategy, which has its own entry."""
    return True if what == "class" and name in ("ExecutionStrategy", "BuildStrategy") else None


def setup(app):
    app.connect("autodoc-skip-member", skip_aliases)
    app.connect("source-read", _name_repository)
    app.connect("source-read", _link_to_results)
    app.connect("autodoc-process-docstring", _escape_bars, priority=900)
