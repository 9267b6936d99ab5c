"""Finds places in C++ sources where one small defect can be planted, with a parser of the language.

No sites: what the compiler evaluates (constexpr, template arguments, static_assert, array sizes, case labels), macros and
preprocessor lines, declarations outside of functions, text of errors and logs, expressions with comments in them.
"""
import hashlib
import os
from typing import Iterator, List, NamedTuple, Optional

FOLDERS = {"base": 30, "exec": 45, "engine": 55, "graph": 65, "ops": 110, "sparse": 30, "data": 45, "autodiff": 20}
MUTANT = "MUTANT"                       # stands for "this defect is on" in the text of a defect


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


COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SIGNS = {"+": "-", "-": "+"}
ARITHMETIC = {"*": "+", "/": "*"}
CONDITIONS = {"&&": "||", "||": "&&"}
SWAPPED_CALLS = {"std::min": "std::max", "std::max": "std::min"}
EDGES = ("edge", "depend", "after", "push_back", "emplace_back", "insert", "emplace", "successor", "add_read", "add_write")
SILENT = ("AB_THROW", "format", "fmt::format", "print", "fmt::print", "log", "warn", "fprintf", "snprintf", "throw_error")
EXCLUDED = {"template_argument_list", "static_assert_declaration", "preproc_def", "preproc_function_def", "preproc_call",
            "preproc_include", "throw_statement", "decltype", "sizeof_expression", "alignof_expression", "noexcept",
            "requires_clause", "attribute_declaration", "string_literal", "concatenated_string", "ERROR",
            "optional_parameter_declaration", "enumerator", "template_parameter_list", "array_declarator",
            "bitfield_clause", "alignas_qualifier"}


def parser():
    import tree_sitter
    import tree_sitter_cpp
    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_cpp.language()))


def text_of(node) -> str:
    return node.text.decode()


def flat(node) -> str:
    """The node's text on one line."""
    return " ".join(text_of(node).split())


def plain(node) -> bool:
    return not node.has_error and b"//" not in node.text and b"/*" not in node.text and b"#" not in node.text


def is_text(node) -> bool:
    return node.type in ("string_literal", "concatenated_string", "raw_string_literal") or b'"' in node.text


def either(defect: str, original: str) -> str:
    return "(%s ? %s : %s)" % (MUTANT, defect, original)


def compiled_away(node) -> bool:
    """What the compiler evaluates: a constexpr function or variable, the condition of ``if constexpr``."""
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
        if node.type in ("preproc_if", "preproc_ifdef", "preproc_elif") and child == node.child_by_field_name("condition"):
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


def defects(node) -> Iterator[tuple]:
    """(kind, node that is replaced, new text) of the defects that fit this node."""
    if not plain(node):
        return
    if node.type == "binary_expression":
        yield from binary(node)
    elif node.type == "unary_expression":
        operator, value = node.children[0].type, node.child_by_field_name("argument")
        if operator == "-" and value.type != "number_literal":
            yield "sign", node, either(flat(value), text_of(node))
        elif operator == "!":
            yield "condition", node, "(%s != %s)" % (MUTANT, text_of(node))
    elif node.type == "assignment_expression":
        yield from assignment(node)
    elif node.type == "subscript_expression":
        yield from subscript(node)
    elif node.type in ("if_statement", "while_statement", "conditional_expression"):
        yield from condition(node)
    elif node.type == "for_statement":
        yield from bounds(node)
    elif node.type == "call_expression" and flat(node.child_by_field_name("function")) in SWAPPED_CALLS:
        name, rest = node.child_by_field_name("function"), node.child_by_field_name("arguments")
        yield "arithmetic", node, either(SWAPPED_CALLS[flat(name)] + flat(rest), text_of(node))
    elif node.type == "expression_statement":
        yield from statement(node)
    elif node.type == "return_statement" and len(node.children) == 3 and node.children[1].type in ("true", "false"):
        yield "condition", node.children[1], "(%s != %s)" % (MUTANT, text_of(node.children[1]))


def binary(node) -> Iterator[tuple]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator").type
    if is_text(left) or is_text(right):
        return
    for kind, table in (("comparison", COMPARISONS), ("sign", SIGNS), ("arithmetic", ARITHMETIC), ("condition", CONDITIONS)):
        if operator in table:
            yield kind, node, either("(%s) %s (%s)" % (flat(left), table[operator], flat(right)), text_of(node))
    if operator == "%":
        yield "arithmetic", node, either("(%s)" % flat(left), text_of(node))


def assignment(node) -> Iterator[tuple]:
    left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
    operator = node.child_by_field_name("operator").type
    other = {"+=": "-=", "-=": "+="}.get(operator)
    if is_text(right) or not other:
        return
    for kind, sign in (("sign", other), ("arithmetic", "=")):
        yield kind, node, either("(%s %s %s)" % (flat(left), sign, flat(right)), "(%s)" % text_of(node))


def subscript(node) -> Iterator[tuple]:
    indices = node.child_by_field_name("indices")
    values = [c for c in indices.children if c.is_named] if indices else []
    if flat(node.child_by_field_name("argument")) == "c":      # c[x]: the value of a slot, not an element
        return
    if len(values) != 1 or is_text(values[0]) or any(mark in values[0].text for mark in (b"++", b"--", b"=")):
        return
    index = flat(values[0])
    if values[0].type == "number_literal":
        yield "index", values[0], either("%s" % (1 if index == "0" else 0), index)
    else:
        yield "index", values[0], "(%s) - (%s && (%s) > 0)" % (text_of(values[0]), MUTANT, index)


def condition(node) -> Iterator[tuple]:
    clause = node.child_by_field_name("condition")
    if clause is None or (node.type == "if_statement" and any(c.type == "constexpr" for c in node.children)):
        return
    value = clause
    if clause.type == "condition_clause":
        value = clause.child_by_field_name("value")
        if clause.child_by_field_name("initializer") is not None:
            return
    if value is None or value.type in ("declaration", "init_statement") or not plain(value):
        return
    yield "condition", value, "(%s != static_cast<bool>(%s))" % (MUTANT, text_of(value))


def bounds(node) -> Iterator[tuple]:
    test, begin = node.child_by_field_name("condition"), node.child_by_field_name("initializer")
    if test is not None and test.type == "binary_expression" and plain(test):
        left, right = test.child_by_field_name("left"), test.child_by_field_name("right")
        if test.child_by_field_name("operator").type == "<":
            yield "bound", test, either("(%s) + 1 < (%s)" % (flat(left), flat(right)), text_of(test))
    for child in begin.children if begin is not None and begin.type == "declaration" else []:
        value = child.child_by_field_name("value") if child.type == "init_declarator" else None
        if value is not None and value.type == "number_literal" and text_of(value) == "0":
            yield "bound", value, either("1", "0")


def statement(node) -> Iterator[tuple]:
    inner = node.children[0]
    if inner.type not in ("call_expression", "assignment_expression", "update_expression"):
        return
    kind = "statement"
    if inner.type == "call_expression":
        name = flat(inner.child_by_field_name("function")).split("::")[-1].split(".")[-1].split("->")[-1]
        if name in SILENT or name.startswith("HWY_") or (name.startswith("AB_") and name != "AB_CHECK"):
            return
        kind = "edge" if any(word in name for word in EDGES) else kind
    yield kind, node, "{ if (!%s) %s }" % (MUTANT, text_of(node))


def walk(node, inside: bool) -> Iterator[tuple]:
    """Defects below the node; ``inside``: in the body of a function or lambda."""
    if inside:
        yield from defects(node)
    inside = inside or (node.type == "compound_statement" and node.parent.type in ("function_definition", "lambda_expression"))
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
    """By seed: of each folder its share, all kinds in turn. A choice depends on the lines chosen, not on other files."""
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
