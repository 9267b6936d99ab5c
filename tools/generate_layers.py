#!/usr/bin/env python3
"""Writes the layers that are one operator: python/anabranch/fluid/layers/_generated_*.py.

    PYTHONPATH=python tools/generate_layers.py           writes what has changed
    PYTHONPATH=python tools/generate_layers.py --check   lists the files that would change, and fails if there are any

Signatures come from layer_table.py; texts, dtypes and types of arguments from the schemas of the operators.
"""
from __future__ import annotations

import ast
import dataclasses
import os
import re
import sys
import textwrap

from layer_table import FAMILIES, Layer

import anabranch.fluid as fluid
from anabranch import _core
from anabranch.fluid import accepted
from anabranch.fluid.layers import check

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "python", "anabranch", "fluid", "layers")
TYPES = {"BOOLEAN": "bool", "INT": "int", "LONG": "int", "FLOAT": "float", "STRING": "str", "INTS": "Sequence[int]",
         "LONGS": "Sequence[int]", "FLOATS": "Sequence[float]", "STRINGS": "Sequence[str]"}
DESTINATIONS = ("out", "cond")
WIDTH = 118


@dataclasses.dataclass
class Argument:
    """An argument of a layer: its name there and in the schema, and its text."""

    name: str
    kind: str                   # input, attr, to, name or act
    type: str
    doc: str
    default: str | None = None
    schema: str = ""
    dtypes: tuple[str, ...] = ()

    @property
    def declaration(self) -> str:
        return self.name + ": " + self.type + ("" if self.default is None else " = " + self.default)


class Function:
    """The source of one layer."""

    def __init__(self, layer: Layer):
        self.layer, self.op = layer, layer.op or layer.name
        self.info = _core.op_info(self.op)
        self.inputs = {slot["name"]: slot for slot in self.info["inputs"]}
        self.attrs = {attr["name"]: attr for attr in self.info["attrs"]}
        self.args = self._arguments()
        self.renamed = {arg.schema: arg.name for arg in self.args if arg.schema}

    # ---- arguments

    def _arguments(self) -> list[Argument]:
        node = ast.parse("def " + self.layer.signature + ": ...").body[0]
        assert isinstance(node, ast.FunctionDef)
        names = [arg.arg for arg in node.args.args]
        defaults = [None] * (len(names) - len(node.args.defaults))
        defaults += [ast.unparse(d).replace("'", '"') for d in node.args.defaults]
        return [self._argument(name, default) for name, default in zip(names, defaults)]

    def _argument(self, name: str, default: str | None) -> Argument:
        if name == "name":
            return Argument(name, "name", "str | None", "prefix of the output's name. Default: the operator's type.",
                            default)
        if name == "act":
            return Argument(name, "act", "str | None", 'activation applied to the result, for example "relu". '
                            "Default: none.", default)
        schema = self._schema_name(name)
        if schema in self.inputs:
            slot = self.inputs[schema]
            dtypes = self._dtypes(slot)
            kind = "Variable | Sequence[Variable]" if slot["list"] else "Variable"
            shown = accepted.dtypes_of(self.layer.name, name, dtypes)
            return Argument(name, "input", kind, _end(_spelled(slot["doc"], shown)), default, schema, dtypes)
        if schema in self.attrs:
            attr = self.attrs[schema]
            kind = self.layer.types.get(name) or TYPES[attr["type"]] + (" | None" if default == "None" else "")
            shown = self.layer.defaults.get(name) or _shown(default, attr["default"])
            return Argument(name, "attr", kind, _sentence(attr["doc"], shown), default, schema)
        if name in DESTINATIONS:
            return Argument(name, "to", "Variable | None", "receives the result. Default: a new Variable.", default)
        raise SystemExit("%s: argument %s must be a slot or attribute of %s" % (self.layer.name, name, self.op))

    def _schema_name(self, name: str) -> str:
        if name in self.layer.slots:
            return self.layer.slots[name]
        for slot in self.inputs:
            if slot.lower() == name.lower():
                return slot
        return next(iter(self.inputs)) if name == "input" else name

    def _dtypes(self, slot: dict) -> tuple[str, ...]:
        """The dtypes of an input, from its own text or from the kernels."""
        if slot["name"] == next(iter(self.inputs)):
            return tuple(self.info["dtypes"])
        if "int32 or int64" in slot["doc"]:
            return ("int32", "int64")
        named = re.search(r"\b(int32|int64|bool)\b", slot["doc"])
        if named:
            return (named.group(1),)
        same = re.search(r"\b(?:as|like) X\b|dtype of X|\bfloat\b", slot["doc"])
        return tuple(self.info["dtypes"]) if same else ()

    # ---- text

    def _local(self, text: str) -> str:
        """A text of the schema with the layer's names."""
        names = dict(self.renamed)
        for slot in self.info["outputs"]:
            names.setdefault(slot["name"], "out")
        return re.sub(r"(?<![\w.])(%s)(?![\w@])" % "|".join(map(re.escape, names)), lambda m: names[m.group(1)], text)

    def docstring(self) -> str:
        lines = _wrap('"""' + self._local(_end(self.info["doc"])), "", "")
        if self.info["source"]:
            lines += ["", *_wrap(_end(self.info["source"]), "")]
        lines += ["", "Args:"]
        for arg in self.args:
            shown = arg.type.replace(" | None", ", optional").replace("Sequence[", "sequence of ").replace("]", "")
            lines += _wrap("%s (%s): %s" % (arg.name, shown, self._local(arg.doc)), "    ", "        ")
        out = self._local(_end(_spelled(self.info["outputs"][0]["doc"], ())))
        lines += ["", "Returns:", *_wrap("Variable: " + out, "    ", "        ")]
        lines += ["", "Raises:", *_wrap("TypeError: an argument has the wrong type or dtype.", "    ", "        ")]
        lines += ["", "Examples:"] + ["    " + line for line in self.example()]
        return "\n".join(lines)

    def example(self) -> list[str]:
        floats = self.info["dtypes"] or ["float32"]
        lines, given = [], []
        for arg in self.args:
            if arg.kind == "input":
                extents, dtype, lod = (self.layer.data.get(arg.name, "[None, 4]") + " ").partition("]")[0] + "]", "", ""
                rest = self.layer.data.get(arg.name, "").partition("]")[2].split()
                dtype = rest[0] if rest else ("float32" if "float32" in floats else floats[-1])
                lod = ", lod_level=" + rest[1] if len(rest) > 1 else ""
                lines.append('%s = fluid.data("%s", %s, "%s"%s)' % (arg.name, arg.name, extents, dtype, lod))
                given.append("[%s, %s]" % (arg.name, arg.name) if arg.type != "Variable" else arg.name)
        given += [self.layer.call] if self.layer.call else []
        call = "%s(%s).shape" % (self.layer.name, ", ".join(given))
        made: dict[str, object] = {"check": check, "one_op": check.one_op}  # the layer itself may not exist yet
        exec("\n".join(["from __future__ import annotations", *self.code()]), made)  # noqa: S102  rows of our table
        space: dict[str, object] = {"fluid": fluid, self.layer.name: made[self.layer.name]}
        with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard():
            exec("\n".join(lines), space)  # noqa: S102
            shown = repr(eval(call, space))  # noqa: S307
        lines.append("fluid.layers." + call)
        return [">>> import anabranch.fluid as fluid"] + [">>> " + line for line in lines] + [shown]

    # ---- code

    def body(self) -> list[str]:
        if self.layer.body:
            return [self.layer.body.format(op=self.op)]
        lines, inputs = [], []
        for arg in self.args:
            if arg.kind != "input":
                continue
            many = arg.type != "Variable"
            by_kernels = arg.dtypes and arg.dtypes == tuple(self.info["dtypes"])
            parts = [arg.name, '"%s"' % arg.name, '"%s"' % self.layer.name]
            if by_kernels and self.op != self.layer.name:
                parts.append('"%s"' % self.op)
            elif arg.dtypes and not by_kernels:
                parts.append("(%s,)" % ", ".join('"%s"' % d for d in arg.dtypes))
            function = ("operand" if by_kernels else "variable") + ("s" if many else "")
            lines.append("%scheck.%s(%s)" % (arg.name + " = " if many else "", function, ", ".join(parts)))
            inputs.append('"%s": %s' % (arg.schema, arg.name))
        attrs = ['"%s": %s' % (a.schema, a.name) for a in self.args if a.kind == "attr"]
        attrs += ['"%s": %r' % item for item in self.layer.attrs.items()]
        call = ['"%s"' % self.op, "{%s}" % ", ".join(inputs)] + (["{%s}" % ", ".join(attrs)] if attrs else [])
        if self.layer.dtype:
            call.append('dtype="%s"' % self.layer.dtype)
        for arg in self.args:
            if arg.kind in ("name", "act", "to"):
                call.append("%s=%s" % (arg.kind, arg.name))
        if self.info["outputs"][0]["name"] != "Out":
            call.append('out="%s"' % self.info["outputs"][0]["name"])
        if self.layer.stop_gradient:
            call.append("stop_gradient=True")
        return lines + _broken("return one_op(", call, ")", 8)

    def code(self, docstring: str = "") -> list[str]:
        head = _broken("def %s(" % self.layer.name, [a.declaration for a in self.args], ") -> Variable:", 8)
        return head + ([docstring] if docstring else []) + ["    " + line for line in self.body()]

    def source(self) -> str:
        text = textwrap.indent(self.docstring() + '\n"""', "    ", lambda line: line.strip() != "")
        return "\n".join(self.code(text)) + "\n"


def _broken(begin: str, parts: list[str], end: str, indent: int) -> list[str]:
    line = begin + ", ".join(parts) + end
    if len(line) <= WIDTH - 4:
        return [line]
    whole = ", ".join(part.replace(" ", "\0") for part in parts) + end.replace(" ", "\0")
    rows = textwrap.wrap(whole, WIDTH - 4 - len(begin), break_long_words=False, break_on_hyphens=False)
    return [(begin if i == 0 else " " * len(begin)) + row.replace("\0", " ") for i, row in enumerate(rows)]


def _wrap(text: str, first: str, rest: str | None = None) -> list[str]:
    return textwrap.wrap(text, WIDTH - 4, initial_indent=first, subsequent_indent=first if rest is None else rest,
                         break_on_hyphens=False)


def _end(text: str) -> str:
    return text if text.endswith(".") else text + "."


def _spelled(text: str, dtypes: tuple[str, ...]) -> str:
    """The text of a slot for readers: "[N] float: scores" becomes "[N], float32 or float64: scores"."""
    listed = " or ".join(filter(None, [", ".join(dtypes[:-1]), dtypes[-1]])) if dtypes else "any dtype"
    text = re.sub(r"^(?:\[\.\.\.\] )?like (\w+)", r"shape and dtype of \1", text)
    text = re.sub(r"\] (?:float or int|bool or numbers|float|numbers|any)\b", "], " + listed, text, count=1)
    text = re.sub(r"\] (?=(?:bool|int32|int64)\b)", "], ", text)
    said = re.search(r"dtype|\b(?:bool|u?int\d+|float\d+)\b", text)
    text = text if said or not dtypes else re.sub(r"^(\[[^\]]*\]|)", r"\1, " + listed, text, count=1)
    return re.sub(r"^\[\.\.\.\](?=[,:;])", "any shape", text)


def _shown(default: str | None, of_schema: object) -> str | None:
    """The default of an argument, which is that of the schema where the signature has None."""
    if default != "None":
        return default
    return repr(float("%.7g" % of_schema) if isinstance(of_schema, float) else of_schema)


def _sentence(text: str, default: str | None) -> str:
    assert text, "each attribute of a layer must have a text in its schema"
    if default is None:
        return _end(text)
    return "%s Default%s %s." % (_end(text), ":" if " " in default else "", default)


HEAD = '''"""{what}

Written by tools/generate_layers.py from the schemas of the operators.
"""
from __future__ import annotations

{sequence}from ..explained import explain
from ..framework import Variable
from . import check
{one_op}
__all__ = [
{names}
]
'''


END = "\n\nexplain(globals())\n"


def file_of(family: str) -> str:
    """The source of one file."""
    what, layers = FAMILIES[family]
    functions = [Function(layer) for layer in layers]
    body = "".join("\n\n" + function.source() for function in functions)
    names = textwrap.fill(", ".join('"%s"' % layer.name for layer in layers) + ",", WIDTH, initial_indent="    ",
                          subsequent_indent="    ")
    return HEAD.format(what=what, names=names,
                       sequence="from collections.abc import Sequence\n\n" if "Sequence[" in body else "",
                       one_op="from .check import one_op\n" if "one_op(" in body else "") + body + END


def main() -> int:
    changed = []
    for family in FAMILIES:
        path = os.path.join(FOLDER, "_generated_%s.py" % family)
        text = file_of(family)
        if not os.path.exists(path) or open(path).read() != text:
            changed.append(os.path.relpath(path))
            if "--check" not in sys.argv:
                with open(path, "w") as file:
                    file.write(text)
    print("\n".join(changed) or "nothing has changed")
    return 1 if changed and "--check" in sys.argv else 0


if __name__ == "__main__":
    sys.exit(main())
