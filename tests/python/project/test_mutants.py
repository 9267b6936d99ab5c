"""The tool that plants defects: its list fits the sources, and it finds sites where a defect can be, and only there."""
import json
import os
import shutil
import subprocess
import sys

import pytest
from repository import ROOT

sys.path.insert(0, os.path.join(ROOT, "tools", "mutants"))

import compiling  # noqa: E402
import guarantees  # noqa: E402
import named  # noqa: E402
import outcomes  # noqa: E402
import reach  # noqa: E402
import runner  # noqa: E402
import sites  # noqa: E402
import tree  # noqa: E402
from defects import MUTANT  # noqa: E402

import device  # noqa: E402

OF_GUARANTEES = [g.defect for g in guarantees.GUARANTEES if g.defect not in named.DEFECTS]


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("defect", named.DEFECTS + device.DEFECTS + OF_GUARANTEES, ids=lambda d: d.name)
def test_a_named_defect_fits_its_file(defect):
    assert text_of(defect.path).count(defect.find) == 1
    assert MUTANT in defect.text
    assert defect.text.count("\n") <= defect.find.count("\n")
    assert defect.seen and defect.killer


def test_names_are_unique_and_few_enough():
    names = [d.name for d in named.DEFECTS]
    assert len(set(names)) == len(names) and 40 <= len(names) < tree.FIRST_SEEDED
    others = [d.name for d in OF_GUARANTEES]
    assert len(set(others + names)) == len(others + names)
    of_devices = [d.name for d in device.DEFECTS]
    assert len(set(of_devices)) == len(of_devices) and len(of_devices) >= 20


def test_sites_judged_equivalent_are_still_there():
    for name, why in outcomes.equivalents().items():
        path, kind, line, _, _ = split_name(name)
        assert len(why) > 20 and kind
        assert line in [text.strip() for text in text_of(path).split("\n")], name


def split_name(name):
    """(path, kind, line, text, number): | may occur in the line and in the text."""
    path, kind, rest = name.split("|", 2)
    rest, number = rest.rsplit("|", 1)
    bars = [i for i, c in enumerate(rest) if c == "|"]
    lines = {text.strip() for text in text_of(path).split("\n")}
    for bar in bars:
        if rest[:bar] in lines:
            return path, kind, rest[:bar], rest[bar + 1:], number
    return path, kind, "no such line: " + rest, "", number


SOURCE = """\
#include <vector>
#define LIMIT(n) ((n) < 3)
static_assert(sizeof(int) > 2);
constexpr int twice(int n) { return n + n; }
template <int n = 1 + 1> struct Of {};
struct Defaults { int size = 2 + 3; };
int f(const std::vector<int>& a, int n) {
  constexpr int kTwo = 1 + 1;
  int wide[kTwo * 2];
  std::vector<Of<(3 > 2)>> none;
  if constexpr (kTwo == 2) n = n + 1;
  AB_CHECK(n < 7, InvalidArgument, "n is {}", n - 1);
  int sum = 0;
  for (int i = 0; i < n; ++i) sum += a[i];
  switch (n) { case 1 + 1: return sum; default: break; }
  if (!none.empty() && n > 0) wide[1] = -sum;
  /* n - 3 */ a.push_back(std::min(n, 4));
  throw Error("n" + std::to_string(n - 9));
}
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    (root / "src" / "base").mkdir(parents=True)
    (root / "src" / "base" / "f.cc").write_text(SOURCE)
    return sites.all_sites(str(root), {"base": 1})


def test_expressions_that_the_compiler_evaluates_are_not_sites(found):
    lines = SOURCE.split("\n")
    assert {site.line for site in found} == {n for n, line in enumerate(lines, 1) if line.strip().startswith(
        ("if constexpr", "AB_CHECK", "for (", "if (!none", "/*"))}
    signs = [site.text for site in found if site.kind == "sign"]
    assert sorted(signs) == ["(MUTANT ? (n) - (1) : n + 1)", "(MUTANT ? (sum -= a[i]) : (sum += a[i]))",
                             "(MUTANT ? sum : -sum)"]


@pytest.mark.parametrize("kind, text", [
    ("comparison", "(MUTANT ? (n) <= (7) : n < 7)"),
    ("statement", '{ if (!MUTANT) AB_CHECK(n < 7, InvalidArgument, "n is {}", n - 1); }'),
    ("bound", "(MUTANT ? (i) + 1 < (n) : i < n)"),
    ("bound", "(MUTANT ? 1 : 0)"),
    ("arithmetic", "(MUTANT ? (sum = a[i]) : (sum += a[i]))"),
    ("index", "(i) - (MUTANT && (i) > 0)"),
    ("condition", "(MUTANT != !none.empty())"),
    ("condition", "(MUTANT ? (!none.empty()) || (n > 0) : !none.empty() && n > 0)"),
    ("sign", "(MUTANT ? sum : -sum)"),
    ("sign", "(MUTANT ? (n) - (1) : n + 1)"),
    ("edge", "{ if (!MUTANT) a.push_back(std::min(n, 4)); }"),
    ("arithmetic", "(MUTANT ? std::max(n, 4) : std::min(n, 4))"),
])
def test_sites_of_each_kind(found, kind, text):
    assert (kind, text) in [(site.kind, site.text) for site in found]


def test_a_choice_depends_on_the_seed_and_on_nothing_else(found):
    first = sites.choose(found, 1, {"base": 6})
    assert first == sites.choose(list(reversed(found)), 1, {"base": 6}) and len(first) == 6
    assert len({site.kind for site in first}) == 6
    assert any(first != sites.choose(found, seed, {"base": 6}) for seed in (2, 3, 4))
    ranges = sorted((site.start, site.end) for site in first)
    assert all(a[1] <= b[0] for a, b in zip(ranges, ranges[1:]))
    others = sites.choose(found, 1, {"base": 6}, refused={first[0].name})
    assert first[0] not in others and len(others) == 6


def test_defects_keep_the_number_of_lines(found):
    chosen = sites.choose(found, 3, {"base": 8})
    data = tree.mutated(SOURCE.encode(), list(enumerate(chosen, 200))).decode()
    assert data.count("\n") == SOURCE.count("\n")
    assert all(data.count("::anabranch::mutant(%d)" % n) == 1 for n in range(200, 200 + len(chosen)))
    assert MUTANT not in data


def test_defects_that_do_not_compile_are_found_by_their_lines():
    planted = [{"path": "src/a/b.cc", "line": 3, "last_line": 4, "kind": "sign", "name": "one"},
               {"path": "src/a/b.h", "line": 9, "last_line": 9, "kind": "index", "name": "two"},
               {"path": "src/a/b.h", "line": 9, "last_line": 9, "kind": "named", "name": "three"}]
    assert compiling.planted_at("../../src/a/b.cc:4:7: error: no match for 'operator-'", planted) == {"one"}
    inside = "/usr/include/x.h:1:2: error: no\nsrc/a/b.h:9:1:   required from here"
    assert compiling.planted_at(inside, planted) == {"two"}
    assert compiling.planted_at("ninja: error: stopped", planted) == set()


@pytest.fixture
def command(tmp_path):
    """Calls a copy of the tool, so what this checkout has built does not count: (status, stderr)."""
    tool = str(tmp_path / "tools" / "mutants")
    shutil.copytree(os.path.join(ROOT, "tools", "mutants"), tool, ignore=shutil.ignore_patterns("__pycache__"))

    def call(*words):
        done = subprocess.run([sys.executable, tool, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True)
        return done.returncode, done.stderr
    return call


@pytest.mark.parametrize("words", ["run --named", "run --seeded --again", "report", "record"])
def test_without_a_build_a_command_says_what_to_run_first(command, words):
    status, told = command(*words.split())
    assert status == 1 and told == "tools/mutants %s: no defects are planted yet; run `./dev mutants build` first\n" % (
        words.split()[0])


def built(root, kind, verdict="failed"):
    """Writes the files of a build with one defect, and the verdict on it."""
    site = {"name": "one", "number": 7, "kind": kind, "path": "src/base/x.cc", "line": 1, "text": "t", "file": "f",
            "start": 1}
    planted = root / "build" / "mutants"
    (planted / "tree" / "build" / "mutants").mkdir(parents=True)
    (planted / "tree" / "build" / "mutants" / "anabranch_tests").write_text("")
    (planted / "sites.json").write_text(json.dumps({"numbers": {}, "refused": [], "sites": [site]}))
    outcomes.Ledger(str(planted / "ledger.jsonl")).add(tree.key(site), site, {"verdict": verdict})


@pytest.mark.parametrize("words", ["run --named", "run --only 8"])
def test_a_run_that_selects_no_defect_fails(command, tmp_path, words):
    built(tmp_path, "sign")
    assert command(*words.split()) == (1, "tools/mutants run: the options select none of the 1 planted defects\n")


@pytest.mark.parametrize("kind, verdict, expected", [
    ("named", "failed", (0, "")), ("sign", "survived", (0, "")),
    ("named", "survived", (1, "tools/mutants run: 1 named defects are not found\n"))])
def test_a_run_fails_if_a_named_defect_is_not_found(command, tmp_path, kind, verdict, expected):
    built(tmp_path, kind, verdict)
    assert command("run") == expected


def test_a_ledger_goes_on_where_it_ended(tmp_path):
    planted = [{"name": n, "number": k, "file": "f", "start": k, "kind": "sign", "text": "t", "path": "src/base/x.cc",
                "line": k} for k, n in enumerate(["found", "survives", "unreached", "judged", "new"])]
    path = str(tmp_path / "ledger.jsonl")
    book = outcomes.Ledger(path)
    for site, verdict in zip(planted, ["failed", "survived", "not reached", "survived"]):
        book.add(tree.key(site), site, {"verdict": verdict})
    again = outcomes.Ledger(path)
    assert [again.has(tree.key(site)) for site in planted] == [True] * 4 + [False]
    judged = {"judged": "no test can find it"}
    told = [outcomes.outcome(site, again, judged) for site in planted]
    assert told == ["found", "survived", "not reached", "equivalent", "not run"]
    changed = dict(planted[0], file="other")
    assert not again.has(tree.key(changed))
    again.forget(["survived"])
    with open(path) as lines:
        assert [json.loads(line)["verdict"] for line in lines] == ["failed", "not reached"]


def test_a_site_that_only_loading_reaches_is_run_by_tests_of_its_neighbors(tmp_path, monkeypatch):
    rows = [{"test": "load", "s": 0, "ok": True, "hits": [3]}, {"test": "Cpp.Test", "s": 1, "ok": True, "hits": [2]},
            {"test": "a.py::far", "s": 1, "ok": True, "hits": [1]},
            {"test": "a.py::near", "s": 1, "ok": True, "hits": [2]},
            {"test": "a.py::other", "s": 1, "ok": True, "hits": [4]},
            {"test": "a.py::red", "s": 1, "ok": False, "hits": [2]}]
    (tmp_path / "1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    monkeypatch.setattr(reach, "MAP", str(tmp_path))
    planted = [{"number": n, "path": path, "line": line} for n, path, line in
               [(1, "src/a.cc", 90), (2, "src/a.cc", 12), (3, "src/a.cc", 10), (4, "src/b.cc", 10)]]
    known = reach.Reach(planted)
    assert known.load == {3} and known.tests[2] == ["Cpp.Test", "a.py::near"]
    assert known.near(planted[2]) == ["a.py::near", "a.py::far"]


@pytest.mark.parametrize("log, name", [
    ("[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n[ RUN      ] B.Two/3\n", "B.Two/3"),
    ("[ RUN      ] A.One\n[  FAILED  ] A.One (0 ms)\n[ RUN      ] B.Two\n[  SKIPPED ] B.Two (0 ms)\n", "A.One"),
    ("", None)])
def test_the_test_that_failed_or_was_under_way(tmp_path, log, name):
    (tmp_path / "log").write_text(log)
    assert runner.last_test(str(tmp_path / "log")) == name
