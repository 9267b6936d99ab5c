"""The table of differences on the site: a column that names the layer, and a filter above the tables.

A Sphinx extension. The pages themselves stay as they are: the column is made of the names in the first cell of a row.
"""
from __future__ import annotations

from docutils import nodes

from anabranch import _core, fluid

PAGE = "differences"
_BOX = """<div class="filter"><label for="row-filter">Filter the rows</label>
<input id="row-filter" type="search" placeholder="conv2d, dropout, Adam, sequence_pool ..." autocomplete="off">
<output id="row-count" for="row-filter"></output></div>"""


def names_of(cell: nodes.Node) -> list[str]:
    """The public names of Fluid and the operators that a cell has in code, in their order."""
    found: dict[str, None] = {}
    for literal in cell.findall(nodes.literal):
        name = literal.astext().partition("(")[0].rpartition(".")[2].strip()
        if is_name(name):
            found[name] = None
    return list(found)


def is_name(name: str) -> bool:
    """Whether a word names something public: of fluid, of one of its modules, or an operator."""
    modules = (fluid.layers, fluid, fluid.optimizer, fluid.io, fluid.metrics, fluid.clip, fluid.initializer, fluid.nets,
               fluid.regularizer)
    return any(name in module.__all__ for module in modules) or name in _core.op_types()


def _add_column(table: nodes.table) -> None:
    group = next(iter(table.findall(nodes.tgroup)))
    group["cols"] += 1
    group.insert(0, nodes.colspec(colwidth=1))
    for row in group.findall(nodes.row):
        first = row[0]
        entry, paragraph = nodes.entry(), nodes.paragraph()
        if isinstance(row.parent, nodes.thead):
            paragraph += nodes.Text("name")
        for i, name in enumerate(names_of(first) if not isinstance(row.parent, nodes.thead) else ()):
            paragraph += ([nodes.Text(", ")] if i else []) + [nodes.literal(name, name)]
        entry += paragraph
        row.insert(0, entry)
    table["classes"].append("filtered")


def _transform(app, doctree) -> None:
    if app.env.docname != PAGE:
        return
    sections = [section for section in doctree.findall(nodes.section) if isinstance(section.parent, nodes.section)]
    listed = [section for section in sections if "top-ten" not in section["ids"]]
    tables = [table for section in listed for table in section.findall(nodes.table)]
    for table in tables:
        _add_column(table)
    first = tables[0].parent
    first.parent.insert(first.parent.index(first), nodes.raw("", _BOX, format="html"))


def setup(app):
    """Connects the extension."""
    app.connect("doctree-read", _transform)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
