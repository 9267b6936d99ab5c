"""The code blocks of the README and of the guides run, and print what stands beneath them; tables say what code says.

The blocks ```python of a page are one program, which a separate process runs in an empty folder. A block ```text that
follows a block ```python is what that one prints; "..." stands for anything. A block "text recorded" is the output of
one real run: any number stands for any other. A comment "<!-- check" after a block holds code that runs after
it, unseen by readers: assertions about the results that the page shows.
"""
import doctest
import glob
import os
import re
import subprocess
import sys

import pytest
from repository import ROOT

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MARK = "<end of block %d>"


FENCE = re.compile(r"^```(\w*)( recorded)?\n(.*?)^```$|^<!-- check\n(.*?)^-->$", re.M | re.S)
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d*)?(e[-+]?\d+)?")


def blocks(page):
    """[(code, expected output or None, whether that was recorded, checks)]."""
    with open(page) as f:
        text = f.read()
    found = []
    for kind, recorded, body, check in FENCE.findall(text):
        if check:
            found[-1][3] += check
        elif kind == "python":
            found.append([body, None, False, ""])
        elif kind == "text" and found and found[-1][1] is None:
            found[-1][1:3] = [body, bool(recorded)]
    return found


def loosely(text):
    """A recorded output without its numbers, and without the lengths of its gaps and bars."""
    return re.sub(r"[ \t]+", " ", NUMBER.sub("#", text))


def printed_as(expected, recorded, output):
    """Whether a block printed what the page says."""
    if recorded:
        expected, output = loosely(expected), loosely(output)
    return doctest.OutputChecker().check_output(expected, output, FLAGS)


def test_recorded_output_has_other_numbers_and_no_other_words():
    assert printed_as("loss 0.0213 at 12,000 rows/s\n", True, "loss  1.5e-05 at 9 rows/s\n")
    assert not printed_as("loss 0.0213\n", True, "loss nan\n")
    assert not printed_as("loss 0.0213\n", True, "loss 0.0213\nstep 2\n")
    assert not printed_as("loss 0.0213\n", False, "loss 0.0214\n")


def test_checks_belong_to_the_block_before(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\na = 1\nprint(a)\n```\n\n```text recorded\n7\n```\n<!-- check\nassert a == 1\n-->\n")
    assert blocks(page) == [["a = 1\nprint(a)\n", "7\n", True, "assert a == 1\n"]]


#: Pages that tools/generate_*.py write.
GENERATED = ("layers.md", "classes.md", "operators.md", "settings.md", "coverage.md", "absent.md", "commands.md",
             *(os.path.join(folder, "") for folder in ("layers", "classes", "operators", "errors")),
             os.path.join("understand", "measured.md"))


def pages():
    """Paths of the guide's pages below docs/, as far as people write them."""
    found = glob.glob(os.path.join(ROOT, "docs", "**", "*.md"), recursive=True)
    names = sorted(os.path.relpath(page, os.path.join(ROOT, "docs")) for page in found)
    return [os.path.join("docs", name) for name in names if not name.startswith(GENERATED)]


def test_tables_and_code_blocks_are_whole():
    """Each row of a table has the cells of its head, and each fence is closed: reflowed text breaks both."""
    broken = []
    for page in subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, universal_newlines=True).split():
        with open(os.path.join(ROOT, page), encoding="utf-8") as file:
            lines = file.read().splitlines()
        inside, head = False, None
        for number, line in enumerate(lines, 1):
            inside ^= bool(re.match(r"\s*(```|~~~)", line))
            cells = len(re.findall(r"(?<!\\)\|", line)) if line.startswith("|") and not inside else None
            head = None if cells is None else head or cells
            if cells != head:
                broken.append("%s:%d" % (page, number))
        if inside:
            broken.append(page)
    assert not broken


#: Traces in a line of a list, a table or a block of commands whose lines have been joined.
JOINED = {
    "item of a list": re.compile(r"^(?!\||    ).*[.;:,)] - [\w`*\[]"),
    "row of a table": re.compile(r"^(?!\s*\|).*\|-{3,}\||^(?!\s*\|).*\S +\|.*\|$"),
    "command": re.compile(r"^    .*\S (\./dev|anabranch|python)( [\w-]+)+ {2,}\S"),
    "sentence": re.compile(r"^(?!\||    ).*[.:;]  +\S"),
}


def joined(text):
    """[(line number, what was joined)] outside of fences."""
    found, inside = [], False
    for number, line in enumerate(text.splitlines(), 1):
        inside ^= bool(re.match(r"\s*(```|~~~)", line))
        plain = re.sub(r"`[^`]*`", "``", line)
        found += [(number, what) for what, pattern in JOINED.items() if not inside and pattern.search(plain)]
    return found


def test_lists_tables_and_commands_keep_their_lines():
    assert joined("- A. - B.\nA:  | a | b |\n    ./dev a  b ./dev c   d\nA.  B.\n- a - b\n| a | b - c |") == [
        (1, "item of a list"), (2, "row of a table"), (2, "sentence"), (3, "command"), (4, "sentence")]
    pages = subprocess.check_output(["git", "ls-files", "*.md"], cwd=ROOT, universal_newlines=True).split()
    assert not [(page, *each) for page in pages for each in joined(read(page))]


PAGES = [page for page in ["README.md", *pages()] if blocks(os.path.join(ROOT, page))]


@pytest.mark.parametrize("page", PAGES)
def test_blocks_run(page, tmp_path):
    found = blocks(os.path.join(ROOT, page))
    program = "".join("%s\nprint(%r)\n%s\n" % (code, MARK % i, check) for i, (code, _, _, check) in enumerate(found))
    (tmp_path / "page.py").write_text(program)
    (tmp_path / "folder").mkdir()
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    environment.pop("CPU_NUM", None)
    done = subprocess.run([sys.executable, str(tmp_path / "page.py")], cwd=str(tmp_path / "folder"), env=environment,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0, done.stdout + done.stderr
    printed = done.stdout
    for i, (code, expected, recorded, _) in enumerate(found):
        output, printed = printed.split(MARK % i + "\n", 1)
        if expected is not None:
            assert printed_as(expected, recorded, output), (
                "block %d\n%s\nprinted\n%s\nexpected\n%s" % (i, code, output, expected))


def run(folder, *command):
    """The output of a command of Python."""
    done = subprocess.run([sys.executable, *command], cwd=str(folder), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python")), universal_newlines=True)
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.mark.slow(3)
def test_the_script_of_a_page_for_one_worker_also_runs_on_several(tmp_path):
    """docs/clusters.md tells readers to replace the role, and to launch the script."""
    script = blocks(os.path.join(ROOT, "docs", "clusters.md"))[-1][0]
    role, = re.findall(r"^    (role = .*)$", read("docs", "clusters.md"), re.M)
    (tmp_path / "train.py").write_text(re.sub(r"^role = .*$", role, script, flags=re.M))
    assert "worker 0 of 2" in run(tmp_path, "-m", "anabranch", "launch", "--nproc", "2", "train.py")


@pytest.mark.slow(3)
def test_the_training_script_of_a_page_also_runs_on_a_cluster(tmp_path):
    """docs/do/clicks_to_answers.md tells readers to save two sections as train.py and to launch it."""
    write, *train, _ = [code for code, *_ in blocks(os.path.join(ROOT, "docs", "do", "clicks_to_answers.md"))]
    (tmp_path / "write.py").write_text(write)
    (tmp_path / "train.py").write_text("".join(train))
    run(tmp_path, "write.py")
    run(tmp_path, "-m", "anabranch", "launch", "--servers", "2", "--workers", "2", "train.py")
    assert (tmp_path / "model" / "__model__").exists()
    assert sorted(os.listdir(str(tmp_path / "run")))[-1] == "checkpoint-000004"


def test_links_lead_somewhere():
    for page in glob.glob(os.path.join(ROOT, "*.md")) + [os.path.join(ROOT, page) for page in pages()]:
        with open(page) as f:
            text = re.sub(r"^```.*?^```$|^    .*?$", "", f.read(), flags=re.M | re.S)
            for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", text):
                path = os.path.normpath(os.path.join(os.path.dirname(page), target))
                generated = os.path.relpath(path, os.path.join(ROOT, "docs")).startswith(GENERATED)
                assert generated or os.path.exists(path), (page, target)


# ---- tables and lists that repeat what the code knows

def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def rows(text, heading):
    """Cells of the first table after a heading, without its head."""
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


def test_classes_of_python_errors():
    """The second table of docs/errors.md has the classes that the Python package raises about arguments."""
    from anabranch.fluid import errors
    engine = {error.__qualname__ for error in (errors.EnforceNotMet, *errors.BY_KIND.values())}
    expected = {}
    for error in errors.LISTED:
        if error.__qualname__ not in engine:
            expected[error.__qualname__] = [c.__name__ for c in error.__mro__ if c.__module__ == "builtins"][0]
    table = rows(read("docs", "errors.md").replace("| class | also", "## Python\n\n| class | also"), "## Python")
    assert {row[0]: row[1] for row in table} == expected


def test_folders_and_tiers():
    tiers = re.findall(r"^ab_folder\((\S+) +(\d+)", read("cmake", "tiers.cmake"), re.M)
    there = {folder: tier for folder, tier in tiers if os.path.isdir(os.path.join(ROOT, folder))}
    table = {row[0]: row[1] for row in rows(read("ARCHITECTURE.md"), "## Folders") if row[1].isdigit()}
    assert table.pop("python/anabranch") == str(1 + max(map(int, there.values())))
    assert table == there


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
    known = set(re.findall(r"^  ([\w-]+) ", help_text, re.M))
    for page in ("README.md", "CONTRIBUTING.md"):
        assert set(re.findall(r"\./dev ([\w-]+)", read(page))) <= known


NAMED = re.compile(r"`((?:src|python|tests|tools|docs|cmake|examples|benchmarks)/[\w./]+|\.ci/run)`")


def test_files_that_are_named_exist():
    top = [name for name in os.listdir(ROOT) if name.endswith(".md") and name != "CHANGELOG.md"] + ["tests/README.md"]
    named = {(page, path) for page in top + pages() for path in NAMED.findall(read(page)) if "GROUP" not in path}
    assert len(named) > 30
    assert not [(page, path) for page, path in named if not os.path.exists(os.path.join(ROOT, path))]


def prose(page):
    """Lines of a page without code, tables and headings; those are empty here."""
    text = re.sub(r"^```.*?^```$|^<!--.*?-->$", lambda found: "\n" * found.group().count("\n"), read(page),
                  flags=re.M | re.S)
    return ["" if re.match(r"[|#]|    ", line) else line for line in text.splitlines()]


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md", *pages()])
def test_lines_are_filled(page):
    """No short line comes before a line whose first word would have had room in it: an edit leaves such lines."""
    lines = prose(page)
    for line, following in zip(lines, lines[1:]):
        if line and following and not re.match(r" *(- |\d+\. )", following):
            assert len(line) + 1 + len(following.split()[0]) > 80, "%s: %r, %r" % (page, line, following)
