"""Finds places in C++ sources where one small defect can be planted, with a parser of the language.

No sites: what the compiler evaluates (constexpr, template arguments, static_assert, array sizes, case labels), macros
and preprocessor lines, declarations outside of functions, text of errors and logs, expressions with comments in them.
"""
import hashlib
import os
from typing import Iterator, List, NamedTuple, Optional

from defects import SILENT, defects, flat

FOLDERS = {"base": 30, "exec": 45, "engine": 55, "graph": 65, "ops": 110, "sparse": 30, "data": 45, "autodiff": 20}
TIMES_ONLY = ("src/base/ceiling.cc",)   # measures the machine: what it returns is a time


class Site(NamedTuple):
    """One defect: text[start:end] of the file becomes ``text``, in which MUTANT is replaced by the switch."""
    path: str
    start: int
    end: int
    line: int
    last_line: int
    kind: str
    text: str
    name: str                           # stays when other lines of the file change


EXCLUDED = {"template_argument_list", "static_assert_declaration", "preproc_def", "preproc_function_def",
            "preproc_call", "preproc_include", "throw_statement", "decltype", "sizeof_expression", "alignof_expression",
            "noexcept",
            "requires_clause", "attribute_declaration", "string_literal", "concatenated_string", "ERROR",
            "optional_parameter_declaration", "enumerator", "template_parameter_list", "array_declarator",
            "bitfield_clause", "alignas_qualifier"}


def parser():
    import tree_sitter
    import tree_sitter_cpp
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def compiled_away(node) -> bool:
    """True if the compiler evaluates the code: a constexpr function or variable, the condition of ``if constexpr``."""
    if node.type in ("function_definition", "declaration", "field_declaration", "lambda_expression"):
        head = node.child_by_field_name("body")
        until = head.start_byte if head else node.end_byte
        early = node.text[:until - node.start_byte].split(b"=")[0].split(b"(")[0]
        return b"constexpr" in early or b"consteval" in early
    return False


def children(node) -> Iterator:
    """The children in which sites may lie."""
    skip_condition = node.type == "if_statement" and any(c.type == "constexpr" for c in node.children)
    for child in node.children:
        if child.type in EXCLUDED or compiled_away(child):
            continue
        if skip_condition and child.type == "condition_clause":
            continue
        if node.type == "case_statement" and child == node.child_by_field_name("value"):
            continue
        if node.type.startswith("preproc_") and child == node.child_by_field_name("condition"):
            continue
        yield child


def arguments(node) -> Iterator:
    """Of a call: all arguments, except the texts of errors."""
    name = flat(node.child_by_field_name("function"))
    last = name.split("::")[-1].split(".")[-1]
    inside = node.child_by_field_name("arguments")
    if name in SILENT or last in SILENT or inside is None:
        return
    values = [c for c in inside.children if c.is_named and c.type not in EXCLUDED and not compiled_away(c)]
    yield from values[:1] if last == "AB_CHECK" else values


def walk(node, inside: bool) -> Iterator[tuple]:
    """Defects below the node; ``inside``: in the body of a function or lambda."""
    if inside:
        yield from defects(node)
    body = node.type == "compound_statement" and node.parent.type in ("function_definition", "lambda_expression")
    inside = inside or body
    for child in arguments(node) if node.type == "call_expression" and inside else children(node):
        yield from walk(child, inside)
    if node.type == "call_expression" and inside:
        yield from walk(node.child_by_field_name("function"), inside)


def sites_of(root: str, path: str, parse) -> List[Site]:
    with open(os.path.join(root, path), "rb") as file:
        data = file.read()
    lines, found, seen = data.decode().split("\n"), [], {}
    for kind, node, text in walk(parse.parse(data).root_node, False):
        line = node.start_point[0]
        base = "%s|%s|%s|%s" % (path, kind, lines[line].strip(), flat(node))
        seen[base] = seen.get(base, 0) + 1
        name = "%s|%d" % (base, seen[base])
        found.append(Site(path, node.start_byte, node.end_byte, line + 1, node.end_point[0] + 1, kind, text, name))
    return found


def all_sites(root: str, folders=FOLDERS) -> List[Site]:
    parse, found = parser(), []
    for folder in folders:
        for where, _, names in sorted(os.walk(os.path.join(root, "src", folder))):
            for name in sorted(names):
                path = os.path.relpath(os.path.join(where, name), root)
                if name.endswith((".cc", ".h")) and path not in TIMES_ONLY:
                    found += sites_of(root, path, parse)
    return found


def rank(seed: int, site: Site) -> str:
    return hashlib.sha1(("%d|%s" % (seed, site.name)).encode()).hexdigest()


def overlaps(site: Site, taken: List[tuple]) -> bool:
    return any(site.start < end and start < site.end for start, end in taken)


def choose(candidates: List[Site], seed: int, share: Optional[dict] = None, taken: Optional[dict] = None,
           refused=frozenset()) -> List[Site]:
    """By seed: of each folder its share, all kinds in turn. The choice depends on the chosen lines only."""
    share, chosen = share or FOLDERS, []
    taken = {path: list(ranges) for path, ranges in (taken or {}).items()}
    for folder, count in share.items():
        kinds = {}
        for site in candidates:
            if site.path.startswith("src/%s/" % folder) and site.name not in refused:
                kinds.setdefault(site.kind, []).append(site)
        queues = [sorted(kinds[kind], key=lambda s: rank(seed, s), reverse=True) for kind in sorted(kinds)]
        while count and any(queues):
            for queue in queues:
                while queue and overlaps(queue[-1], taken.get(queue[-1].path, [])):
                    queue.pop()
                if queue and count:
                    site = queue.pop()
                    taken.setdefault(site.path, []).append((site.start, site.end))
                    chosen.append(site)
                    count -= 1
    return chosen
