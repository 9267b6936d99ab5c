#!/usr/bin/env python3
"""Writes what every op type declares as JSON, or compares two such files.

    PYTHONPATH=python tools/dump_schemas.py FILE             writes the state of the build
    tools/dump_schemas.py --compare BEFORE AFTER [--docs]    prints each difference; exit status 1 when there is one

A change of how ops are declared must change nothing of what they declare: slots with their flags, attributes with
types, defaults and the values that their checks refuse, effects, shared memory, gradients, dtypes of kernels. Texts
are compared with --docs only.
"""
import argparse
import json
import sys

# Values that a check may refuse, by type of attribute.
PROBES = {
    "INT": (-(2**30), -2, -1, 0, 1, 2, 2**30),
    "LONG": (-(2**40), -1, 0, 1, 2**40),
    "FLOAT": (float("-inf"), -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, float("inf"), float("nan")),
    "STRING": ("", "no such value"),
    "INTS": ((), (-1,), (0,), (1,), (0, 0), (1, 1), (1, 2, 3)),
    "LONGS": ((), (-1,), (0,), (1, 1)),
    "FLOATS": ((), (-1.0,), (0.0, 0.0), (float("nan"),)),
    "STRINGS": ((), ("no such value",)),
}


def describe(core, op):
    info = core.op_info(op)
    for attr in info["attrs"]:
        attr["default"] = repr(attr["default"])
        probes = PROBES.get(attr["type"], ())
        attr["refuses"] = [repr(p) for p in probes if core.attr_error(op, attr["name"], p)] if attr["checked"] else []
    info["inputs"], info["outputs"], info["attrs"] = (
        {item["name"]: dict(item, place=place) for place, item in enumerate(info[part])}
        for part in ("inputs", "outputs", "attrs"))
    for attr in info["attrs"].values():
        del attr["place"]  # attributes are found by name
    info["dtypes"] = sorted(info["dtypes"])
    return info


def write(path):
    from anabranch import _core as core

    with open(path, "w", encoding="utf-8") as file:
        json.dump({op: describe(core, op) for op in core.op_types()}, file, indent=1, sort_keys=True)
        file.write("\n")


def leaves(value, path=()):
    """(path, value) of everything in nested dictionaries."""
    if not isinstance(value, dict):
        yield path, value
        return
    for key, item in value.items():
        yield from leaves(item, (*path, key))


def compare(before, after, docs):
    found = 0
    with open(before, encoding="utf-8") as a, open(after, encoding="utf-8") as b:
        old, new = (dict(leaves(json.load(file))) for file in (a, b))
    for path in sorted(set(old) | set(new)):
        if old.get(path) == new.get(path) or (path[-1] in ("doc", "source", "no_grad_reason") and not docs):
            continue
        print(f"{' '.join(path)}: {old.get(path, 'absent')} -> {new.get(path, 'absent')}")
        found += 1
    print(f"{found} differences", file=sys.stderr)
    return 1 if found else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("--docs", action="store_true", help="texts too")
    args = parser.parse_args()
    if len(args.files) != 1 + args.compare:
        parser.error("one file to write, or two files to compare")
    if args.compare:
        return compare(*args.files, args.docs)
    write(args.files[0])
    return 0


if __name__ == "__main__":
    sys.exit(main())
