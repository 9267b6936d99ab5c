"""The code blocks of the README and of the guides run, and print what stands beneath them; tables say what code says.

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


#: Pages that tools/generate_*.py write.
GENERATED = ("layers.md", "classes.md", "operators.md", "settings.md", "coverage.md", "absent.md", "commands.md",
             os.path.join("errors", ""), os.path.join("understand", "measured.md"))


def pages():
    """Paths of the guide's pages below docs/, as far as people write them."""
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    names = sorted(os.path.relpath(page, os.path.join(ROOT, "docs")) for page in found)
    return [os.path.join("docs", name) for name in names if not name.startswith(GENERATED)]


PAGES = [page for page in ["README.md", *pages()] if blocks(os.path.join(ROOT, page))]


@pytest.mark.parametrize("page", PAGES)
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
    for page in glob.glob(os.path.join(ROOT, "*.md")) + [os.path.join(ROOT, page) for page in pages()]:
        with open(page) as f:
            text = re.sub(r"^```.*?^```$|^    .*?$", "", f.read(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                assert os.path.exists(os.path.join(os.path.dirname(page), target)), (page, target)


# ---- tables and lists that repeat what the code knows

def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def rows(text, heading):
    """Cells of the first table behind a heading, without its head."""
    lines = text[text.index(heading):].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("|")) + 2
    table = []
    for line in lines[begin:]:
        if not line.startswith("|"):
            break
        table.append([cell.strip().strip("`") for cell in line.strip("|").split("|")])
    return table


def test_kinds_of_errors():
    from anabranch.fluid import errors
    engine = {}
    for value in vars(errors).values():
        if isinstance(value, type) and issubclass(value, errors.EnforceNotMet) and value.__qualname__ == value.kind:
            engine[value.kind] = [c.__name__ for c in value.__mro__ if c.__module__ == "builtins"][0]
    engine["EndOfData"] = "fluid.core.EOFException"
    assert len(engine) == 8
    assert {row[0]: row[1] for row in rows(read("docs", "errors.md"), "## Classes")} == engine


def test_folders_and_tiers():
    tiers = re.findall(r"^ab_folder\((\S+) +(\d+)", read("cmake", "tiers.cmake"), re.M)
    there = {folder: tier for folder, tier in tiers if os.path.isdir(os.path.join(ROOT, folder))}
    table = {row[0]: row[1] for row in rows(read("ARCHITECTURE.md"), "## Folders") if row[1].isdigit()}
    assert table.pop("python/anabranch") == str(1 + max(map(int, there.values())))
    assert table == there


def test_the_readme_is_one_screen():
    assert len(read("README.md").splitlines()) <= 66


def test_optimizers_that_work():
    from anabranch.fluid import optimizer
    names = [name for name in optimizer.__all__ if name + "Optimizer" in optimizer.__all__]
    text = read("docs", "what_works.md")
    assert len(names) == 12 and all(re.search(r"\b%s\b" % name, text) for name in names)


def test_number_of_layers():
    from anabranch.fluid import layers
    told = int(re.search(r"More than (\d+) layers", read("docs", "what_works.md")).group(1))
    assert told < len(layers.__all__) < told + 100


def test_columns_of_the_profiler():
    from anabranch.profiling import tables
    told = [name for row in rows(read("docs", "profiling.md"), "## Tables") for name in row[0].split(", ")]
    assert told == list(tables.COLUMNS)


def test_benchmark_rows():
    import sys
    sys.path.insert(0, os.path.join(ROOT, "benchmarks"))
    try:
        import plan
    finally:
        sys.path.pop(0)
    table = {}
    for row in rows(read("benchmarks", "README.md"), "## Rows"):
        table.setdefault(row[0], row[1].split("`")[0])
    assert table == {row: script + ".py" for row, script in plan.PRODUCT.items()}


def test_commands_of_dev():
    help_text = subprocess.check_output([os.path.join(ROOT, "dev"), "--help"], universal_newlines=True)
    known = set(re.findall(r"^  (\w+) ", help_text, re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"\./dev (\w+)", read(page))) <= known


NAMED = re.compile(r"`((?:src|python|tests|tools|docs|cmake|examples|benchmarks)/[\w./]+|\.ci/run)`")


def test_files_that_are_named_exist():
    top = [name for name in os.listdir(ROOT) if name.endswith(".md") and name != "CHANGELOG.md"]
    named = {(page, path) for page in top + pages() for path in NAMED.findall(read(page)) if "GROUP" not in path}
    assert len(named) > 30
    assert not [(page, path) for page, path in named if not os.path.exists(os.path.join(ROOT, path))]


def prose(page):
    """Lines of a page without code, tables and headings; those are empty here."""
    text = re.sub(r"^```.*?^```$", lambda found: "\n" * found.group().count("\n"), read(page), flags=re.M | re.S)
    return ["" if re.match(r"[|#]|    ", line) else line for line in text.splitlines()]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", *pages()])
def test_lines_are_filled(page):
    """What an edit left of a wrapped paragraph: a short line, then one whose first word would have had room."""
    lines = prose(page)
    for line, following in zip(lines, lines[1:]):
        if line and following and not re.match(r" *(- |\d+\. )", following):
            assert len(line) + 1 + len(following.split()[0]) > 80, "%s: %r, %r" % (page, line, following)
