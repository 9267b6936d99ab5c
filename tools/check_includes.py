#!/usr/bin/env python3
"""Checks that no folder includes a header of a folder in a higher tier, or of another folder in its tier.

    check_includes.py [ROOT]

The tiers are those of cmake/tiers.cmake, which the build uses, too. Each offending edge is printed as
file:line: message; the exit status is 1 when there is one.
"""
import os
import re
import sys

ROW = re.compile(r"^ab_folder\(\s*(\S+)\s+(\d+)")
INCLUDE = re.compile(r'^\s*#\s*include\s*["<]([a-z_0-9]+)/([^">]+)[">]')
SOURCES = (".h", ".cc", ".cu", ".cuh", ".inc")


def read_tiers(root):
    """{path of a folder: its tier}, for instance {"src/base": 0, "python/bindings": 8}."""
    with open(os.path.join(root, "cmake", "tiers.cmake")) as table:
        rows = [ROW.match(line) for line in table]
    return {row.group(1): int(row.group(2)) for row in rows if row}


def edges(root, folder):
    """(file, line number, folder included) of every include of a header of the project."""
    for where, _, names in sorted(os.walk(os.path.join(root, folder))):
        for name in sorted(names):
            if not name.endswith(SOURCES):
                continue
            path = os.path.join(where, name)
            with open(path, encoding="utf-8") as source:
                for number, line in enumerate(source, 1):
                    found = INCLUDE.match(line)
                    if found:
                        yield os.path.relpath(path, root), number, found.group(1)


def check(root):
    """Messages, one for each include that must not be there and each folder that the table does not list."""
    tiers = read_tiers(root)
    messages = []
    src = os.path.join(root, "src")
    for name in sorted(os.listdir(src)) if os.path.isdir(src) else []:
        if os.path.isdir(os.path.join(src, name)) and "src/" + name not in tiers:
            messages.append("src/%s: folder has no tier in cmake/tiers.cmake" % name)
    for folder, tier in tiers.items():
        for path, number, target in edges(root, folder):
            below = tiers.get("src/" + target)
            if below is None or folder == "src/" + target:
                continue
            if target == "ops":
                why = "ops are reached through the registry"
            elif below < tier:
                continue
            else:
                why = "tier %d must not include tier %d" % (tier, below)
            messages.append("%s:%d: %s -> src/%s: %s" % (path, number, folder, target, why))
    return messages


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    messages = check(root)
    for message in messages:
        print(message)
    print("%d offending includes" % len(messages) if messages else "1 passed: includes follow the tiers")
    return 1 if messages else 0


if __name__ == "__main__":
    sys.exit(main())
