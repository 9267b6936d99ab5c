"""Files for people who look at the project: workflows, forms, containers, versions, the map of the tests."""
import glob
import importlib
import json
import os
import re
import shutil
import subprocess
import sys

import pytest
import yaml
from repository import ROOT

FORGE = sorted(glob.glob(os.path.join(ROOT, ".github", "**", "*.yml"), recursive=True))
WORKFLOWS = [path for path in FORGE if os.path.basename(os.path.dirname(path)) == "workflows"]
FORMS = [path for path in FORGE if "ISSUE_TEMPLATE" in path and not path.endswith("config.yml")]
#: Files that a run of a workflow makes.
MADE = ("dist/", "build/")
COMMANDS = set(re.findall(r"^  ([\w-]+) ", subprocess.check_output([os.path.join(ROOT, "dev"), "--help"],
                                                                  universal_newlines=True), re.M))
PATH = re.compile(r"(?<![\w/.$}-])\.?[\w-]+(?:/[\w.-]+)+")


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as file:
        return file.read()


def missing(text):
    """Paths of the repository that a text names and that are not there; commands of ./dev that do not exist."""
    paths = [path.rstrip(".") for path in PATH.findall(text) if not path.startswith(MADE)]
    tops = set(os.listdir(ROOT))
    absent = [path for path in paths if path.split("/")[0] in tops and not os.path.exists(os.path.join(ROOT, path))]
    return absent + ["./dev " + name for name in re.findall(r"\./dev ([\w-]+)", text) if name not in COMMANDS]


def test_missing_files_and_commands_are_found():
    assert missing("run: .ci/run && ./dev test tests/python") == []
    assert missing("run: .ci/gone && ./dev nothing tests/gone.py") == [".ci/gone", "tests/gone.py", "./dev nothing"]


@pytest.mark.parametrize("path", FORGE, ids=os.path.basename)
def test_forge_files_name_files_that_exist(path):
    text = read(path)
    assert isinstance(yaml.safe_load(text), dict)
    assert missing(text) == []


@pytest.mark.parametrize("path", WORKFLOWS, ids=os.path.basename)
def test_workflows_have_jobs_with_steps(path):
    workflow = yaml.safe_load(read(path))
    assert workflow["name"] and workflow[True] and workflow["permissions"]  # YAML reads the key `on` as True
    for job in workflow["jobs"].values():
        assert job["runs-on"] and all(("run" in step) != ("uses" in step) for step in job["steps"])
        assert set(job.get("needs", "").split()) <= set(workflow["jobs"])


def test_one_workflow_runs_what_everybody_can_run():
    jobs = yaml.safe_load(read(".github", "workflows", "tests.yml"))["jobs"]
    assert [job["container"] for job in jobs.values()] == ["debian:12"]
    assert ".ci/run" in [step.get("run") for step in jobs["ci"]["steps"]]


def test_wheels_are_built_of_tags_for_the_pythons_of_the_table():
    text = read(".github", "workflows", "wheels.yml")
    workflow = yaml.safe_load(text)
    assert workflow[True]["push"]["tags"] == ["v*"] and "./dev wheels" in text
    tabled = set(re.findall(r"^\| (3\.\d+) \|", read("docs", "install.md"), re.M))
    versions = set(re.findall(r"\b3\.\d+\b", re.search(r"python install (.*)", text).group(1)))
    assert versions == {"3.9", "3.10", "3.11", "3.12", "3.13"} <= tabled


@pytest.mark.parametrize("path", FORMS, ids=os.path.basename)
def test_issue_forms_are_complete(path):
    form = yaml.safe_load(read(path))
    assert form["name"] and form["description"]
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert all(field["type"] in ("textarea", "input", "dropdown", "checkboxes") for field in fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert len({field["id"] for field in fields}) == len(fields) > 1


def test_the_pull_request_template_names_files_that_exist():
    assert missing(read(".github", "pull_request_template.md")) == []


def test_the_container_copies_and_runs_what_is_there():
    text = read("Dockerfile")
    assert missing(text) == []
    copied = [words.split()[:-1] for words in re.findall(r"^COPY (.*)$", text, re.M)]
    assert copied and all(os.path.exists(os.path.join(ROOT, path)) for paths in copied for path in paths)
    settings = json.loads(read(".devcontainer", "devcontainer.json"))
    stages = re.findall(r"^FROM \S+ AS (\w+)", text, re.M)
    assert settings["build"]["target"] in stages
    assert os.path.samefile(os.path.join(ROOT, ".devcontainer", settings["build"]["dockerfile"]),
                            os.path.join(ROOT, "Dockerfile"))
    assert missing(settings["postCreateCommand"]) == []


ROOT_ENTRIES = set("""
    .ci .clang-format .clang-tidy .devcontainer .dockerignore .gitattributes .github .gitignore .pre-commit-config.yaml
    ARCHITECTURE.md CHANGELOG.md CMakeLists.txt CMakePresets.json CODE_OF_CONDUCT.md CONTRIBUTING.md Dockerfile LICENSE
    README.md RELEASING.md SECURITY.md benchmarks cmake dev docs examples plugins pyproject.toml python src tests tools
""".split())


def test_nothing_was_left_in_the_root():
    """Programs write files where they are started; one that was committed by accident is named."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, stdout=subprocess.PIPE, universal_newlines=True).stdout
    if not listed:
        pytest.skip("not a clone")
    assert {path.split("/")[0] for path in listed.splitlines()} == ROOT_ENTRIES


def test_one_version():
    version = re.search(r'^version = "(.*)"', read("pyproject.toml"), re.M).group(1)
    assert '__version__ = "%s"' % version in read("python", "anabranch", "version.py")
    headings = re.findall(r"^## \[(.*?)\](.*)", read("CHANGELOG.md"), re.M)
    assert headings[0][0] == "Unreleased" and headings[1][0] == version
    assert re.fullmatch(r" - \d{4}-\d\d-\d\d", headings[1][1])
    minor = ".".join(version.split(".")[:2])
    for page in ("docs/install.md", "docs/develop/versions.md", "examples/cpp_project/CMakeLists.txt"):
        assert set(re.findall(r"find_package\(anabranch (\S+?)[ )]", read(page))) == {minor}, page


def test_front_pages_are_short():
    assert len(read("README.md").splitlines()) <= 95
    assert len(read("CONTRIBUTING.md").splitlines()) <= 100
    architecture = read("ARCHITECTURE.md").splitlines()
    assert len(architecture) <= 70 and max(map(len, architecture)) <= 120
    assert {"demo", "test"} <= set(re.findall(r"^    \./dev (\w+)", read("README.md"), re.M))


def test_pages_for_developers_have_a_place_in_the_contents():
    index = read("docs", "develop", "index.md")
    listed = re.search(r"```{toctree}\n.*?\n\n(.*?)```", index, re.S).group(1).split()
    there = [os.path.basename(path)[:-3] for path in glob.glob(os.path.join(ROOT, "docs", "develop", "*.md"))]
    assert sorted(listed) == sorted(name for name in there if name != "index")


# ---- the map of the tests

def generate(root, *arguments):
    return subprocess.run([sys.executable, os.path.join(root, "tools", "generate_test_map.py"), *arguments],
                          stdout=subprocess.PIPE, universal_newlines=True)


def test_the_map_of_the_tests_is_up_to_date():
    done = generate(ROOT, "--check")
    assert done.returncode == 0, done.stdout


def test_a_new_test_makes_the_map_stale(tmp_path):
    for folder in ("tools", "tests/cpp", "tests/python/reading"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(os.path.join(ROOT, "tools", "generate_test_map.py"), str(tmp_path / "tools"))
    shutil.copy(os.path.join(ROOT, "tests", "README.md"), str(tmp_path / "tests"))
    (tmp_path / "tests" / "python" / "reading" / "test_multislot.py").touch()
    assert generate(str(tmp_path), "--check").returncode == 1
    assert generate(str(tmp_path)).returncode == 0 and generate(str(tmp_path), "--check").returncode == 0
    text = (tmp_path / "tests" / "README.md").read_text()
    assert "| `src/data` | - | `reading/` |" in text and "several folders" not in text
    (tmp_path / "tests" / "cpp" / "novel_test.cc").touch()
    assert "stale" in generate(str(tmp_path), "--check").stdout
    generate(str(tmp_path))
    assert "| several folders | `novel` | - |" in (tmp_path / "tests" / "README.md").read_text()


# ---- the parts of an op

def check_op(name):
    environment = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "python"))
    done = subprocess.run([sys.executable, os.path.join(ROOT, "tools", "check_op.py"), name], env=environment,
                          stdout=subprocess.PIPE, universal_newlines=True)
    rows = {line[:15].strip(): line[16:24].strip() for line in done.stdout.splitlines()[:-1]}
    return done.returncode, rows, done.stdout


def of_state(rows, state):
    return {place for place, of_place in rows.items() if of_place == state}


def test_a_complete_op_lacks_nothing():
    code, rows, text = check_op("relu")
    assert code == 0 and set(rows.values()) == {"ok"} and len(rows) == 11, text
    assert "tools/layer_table.py: relu" in text and text.endswith("relu: complete\n")


@pytest.mark.parametrize("name, file", [
    ("l1_norm", "reduce/l1_norm.cc"), ("relu", "math/rectifiers.cc"), ("tanh", "math/activations.cc"),
    ("equal", "math/compare.cc"), ("reduce_all", "reduce/reduce.cc"), ("arg_max", "tensor/arg_max.cc")])
def test_the_declaration_is_where_the_op_is_declared(op_checks, name, file):
    """Not a file that only names the op, such as one that fuses it."""
    assert op_checks.declaration(name, {"family": file.split("/")[0]}) == ("ok", "src/ops/" + file)


def test_an_op_that_is_not_there_lacks_everything():
    code, rows, text = check_op("relu_of_absent")
    assert code == 1, text
    assert of_state(rows, "MISSING") == {
        "declaration", "documentation", "gradient", "test case", "changes"}
    assert of_state(rows, "-") == {
        "device", "layer", "layer calls", "golden records", "sequences", "differential"}


@pytest.fixture
def op_checks(monkeypatch):
    monkeypatch.setattr(sys, "path", [os.path.join(ROOT, "tools"), *sys.path])
    return importlib.import_module("check_op")


@pytest.mark.parametrize("line, found", [
    ("- `soft_rank` computes ranks.", True), ("- `fluid.layers.soft_rank` is new.", True),
    ("- `soft_rank(x, axis)` is new.", True), ("- `layers.soft_rank(x)` is new.", True),
    ("- `soft_ranking` is new.", False), ("- soft_rank without code marks", False)])
def test_a_change_may_be_written_as_the_changelog_writes_it(op_checks, monkeypatch, line, found):
    monkeypatch.setattr(op_checks, "read", lambda *path: "## [0.1.0]\n" + line)
    assert (op_checks.changes("soft_rank", None)[0] == "ok") == found


def test_a_layer_that_fluid_lacks_belongs_elsewhere(op_checks, monkeypatch):
    """Names that Fluid does not have are not in fluid.layers; the check says so before the tests of the API do."""
    import layer_table
    expected = "MISSING", "move soft_rank out of fluid.layers: not a name of Fluid"
    assert op_checks.layer("relu", None)[0] == op_checks.layer("skip_gram", None)[0] == "ok"
    with monkeypatch.context() as patch:
        patch.setitem(layer_table.FAMILIES, "novel", ("", [layer_table.Layer("soft_rank(x)")]))
        assert op_checks.layer("soft_rank", None) == expected
    monkeypatch.setattr(op_checks, "defining", lambda name, folder: ["python/anabranch/fluid/layers/ranks.py"])
    assert op_checks.layer("soft_rank", None) == expected


def test_dtypes_of_devices_need_a_kernel(op_checks):
    """A table row declares them before there is a kernel, and the tests of the op pass on the CPU."""
    info = {"device_dtypes": ["float32"], "traits": ["elementwise"]}
    assert op_checks.device("double_relu", info) == ("MISSING", "no function in src/ops/math/step_functions.h")
    assert op_checks.device("relu", info)[0] == "ok"
    assert op_checks.device("double_relu", dict(info, device_dtypes=[]))[0] == "-"


def test_a_layer_that_fluid_lacks_needs_a_test(op_checks, monkeypatch):
    assert op_checks.layer_calls("skip_gram", None) == ("ok", "tests/python/layers/test_word2vec.py")
    monkeypatch.setattr(op_checks, "naming", lambda name, folder, ends: [])
    monkeypatch.setattr(op_checks, "layer", lambda name, info: ("ok", "python/anabranch/word2vec.py"))
    assert op_checks.layer_calls("double_relu", None) == ("MISSING", "no test in tests/python calls the layer")


def test_an_op_of_fluid_that_is_absent_lacks_its_records_too():
    _, rows, text = check_op("run_program")
    assert {"declaration", "sequences", "differential"} <= of_state(rows, "MISSING"), text
