"""The defects that fit a node of a parsed C++ file."""
from typing import Iterator

MUTANT = "MUTANT"                       # stands for "this defect is on" in the text of a defect

COMPARISONS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
SIGNS = {"+": "-", "-": "+"}
ARITHMETIC = {"*": "+", "/": "*"}
CONDITIONS = {"&&": "||", "||": "&&"}
SWAPPED_CALLS = {"std::min": "std::max", "std::max": "std::min"}
EDGES = ("edge", "depend", "after", "push_back", "insert", "emplace", "successor", "add_read", "add_write")
SILENT = ("AB_THROW", "format", "fmt::format", "print", "fmt::print", "log", "warn", "fprintf", "snprintf")


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
    tables = {"comparison": COMPARISONS, "sign": SIGNS, "arithmetic": ARITHMETIC, "condition": CONDITIONS}
    for kind, table in tables.items():
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
    if len(values) != 1 or is_text(values[0]) or any(mark in values[0].text for mark in (b"++", b"--", b"=", b"&")):
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
