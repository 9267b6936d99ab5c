"""The code blocks of the README and of the guides run, and print what stands beneath them.

The blocks ```python of a page are one program, run in an empty folder by a process of its own. A block ```text that
follows a block ```python is what that one prints; "..." stands for anything.
"""
import doctest
import glob
import os
import re
import subprocess
import sys

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MARK = "<end of block %d>"


def blocks(page):
    """[(code, expected output or None)]."""
    with open(page) as f:
        text = f.read()
    found = []
    for kind, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        if kind == "python":
            found.append([body, None])
        elif kind == "text" and found and found[-1][1] is None:
            found[-1][1] = body
    return found


PAGES = [page for page in [os.path.join(ROOT, "README.md")] + sorted(glob.glob(os.path.join(ROOT, "docs", "*.md")))
         if blocks(page)]


@pytest.mark.parametrize("page", [os.path.relpath(page, ROOT) for page in PAGES])
def test_blocks_run(page, tmp_path):
    found = blocks(os.path.join(ROOT, page))
    program = "".join("%s\nprint(%r)\n" % (code, MARK % i) for i, (code, _) in enumerate(found))
    (tmp_path / "page.py").write_text(program)
    (tmp_path / "folder").mkdir()
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    environment.pop("CPU_NUM", None)
    done = subprocess.run([sys.executable, str(tmp_path / "page.py")], cwd=str(tmp_path / "folder"), env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout
    for i, (code, expected) in enumerate(found):
        output, printed = printed.split(MARK % i + "\n", 1)
        if expected is not None:
            assert doctest.OutputChecker().check_output(expected, output, FLAGS), (
                "block %d\n%s\nprinted\n%s\nexpected\n%s" % (i, code, output, expected))


def test_links_lead_somewhere():
    for page in [os.path.join(ROOT, "README.md")] + glob.glob(os.path.join(ROOT, "docs", "*.md")):
        with open(page) as f:
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", f.read()):
                assert os.path.exists(os.path.join(os.path.dirname(page), target)), (page, target)
