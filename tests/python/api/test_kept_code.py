"""Code of rewritten files under ``anabranch run`` is kept in ``__pycache__`` and used again."""
import glob
import os
import subprocess
import sys
import threading

import pytest
from repository import PYTHON

from anabranch._legacy import kept_code, python2, rewriting, user_files

ENVIRONMENT = dict(os.environ, PYTHONPATH=PYTHON)
ENVIRONMENT.pop("PYTHONDONTWRITEBYTECODE", None)
SOURCE = b"def f(x):\n    return '%d' % x, xrange(2)\n"


def run(folder, script, code=0, **environment):
    done = subprocess.run([sys.executable, "-m", "anabranch", "run", script], cwd=folder,
                          env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=120)
    assert done.returncode == code, done.stderr
    return done


def kept(folder):
    return sorted(os.path.basename(path).split(".")[0] for path in glob.glob(os.path.join(
        str(folder), "__pycache__", "*.opt-anabranch*.pyc")))


@pytest.fixture
def rewrites(monkeypatch):
    """Paths of the files that are rewritten in this process."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(python2, "program", [])
    monkeypatch.setattr(user_files, "choosing", set())
    made, original = [], rewriting.rewritten

    def rewritten(source, path):
        made.append(os.path.basename(path))
        return original(source, path)
    monkeypatch.setattr(rewriting, "rewritten", rewritten)
    return made


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "net.py"
    path.write_bytes(SOURCE)
    return str(path)


def entry(file):
    found, = glob.glob(os.path.join(os.path.dirname(file), "__pycache__", "*"))
    return found


def value(source, path):
    code, names = rewriting.compiled(source, path)
    names = dict(names)
    exec(code, names)  # noqa: S102 - as an import runs it
    return names["f"](3)


def test_a_file_is_rewritten_once(file, rewrites):
    assert [value(SOURCE, file) for _ in range(3)] == [("3", range(2))] * 3
    assert rewrites == ["net.py"]


@pytest.mark.parametrize("change", [lambda source: source.replace(b"%d", b"%i"), lambda source: source + b"\n"])
def test_another_text_is_rewritten_though_size_and_time_may_be_equal(change, file, rewrites):
    value(SOURCE, file)
    value(change(SOURCE), file)
    value(change(SOURCE), file)
    assert rewrites == ["net.py"] * 2


def test_another_version_of_the_rewriter_rewrites(file, rewrites, monkeypatch):
    value(SOURCE, file)
    monkeypatch.setattr(kept_code, "_version", lambda: b"another")
    value(SOURCE, file)
    assert rewrites == ["net.py"] * 2


def test_damaged_entries_are_ignored_and_replaced(file, rewrites):
    value(SOURCE, file)
    with open(entry(file), "rb") as stream:
        whole = stream.read()
    damaged = [whole[:size] for size in (0, 7, 15, 16, len(whole) - 1)] + [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1:] for at in range(0, len(whole), 5)]
    for data in damaged:
        with open(entry(file), "wb") as stream:
            stream.write(data)
        assert value(SOURCE, file) == ("3", range(2))
    assert len(rewrites) == 1 + len(damaged)
    with open(entry(file), "rb") as stream:
        assert stream.read() == whole


def test_an_entry_of_other_contents_is_ignored(file, rewrites):
    value(SOURCE, file)
    import importlib.util
    import marshal
    body = marshal.dumps((1, 2))
    with open(entry(file), "r+b") as stream:
        key = stream.read(8)
        stream.seek(0)
        stream.write(key + importlib.util.source_hash(body) + body)
        stream.truncate()
    assert value(SOURCE, file) == ("3", range(2))


def test_nothing_is_written_where_python_writes_nothing(file, rewrites, monkeypatch):
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    value(SOURCE, file)
    assert os.listdir(os.path.dirname(file)) == ["net.py"]
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    value(SOURCE, file)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # entries are read all the same
    value(SOURCE, file)
    assert rewrites == ["net.py"] * 2


def test_a_folder_that_cannot_be_written_changes_nothing(file, rewrites):
    with open(os.path.join(os.path.dirname(file), "__pycache__"), "w"):
        pass  # a folder of this name cannot be created
    assert [value(SOURCE, file) for _ in range(2)] == [("3", range(2))] * 2
    assert rewrites == ["net.py"] * 2


def test_entries_have_the_permissions_of_their_files(file, rewrites):
    os.chmod(file, 0o600)
    value(SOURCE, file)
    assert os.stat(entry(file)).st_mode & 0o777 == 0o600


def test_another_folder_for_bytecode(file, rewrites, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "elsewhere"))
    value(SOURCE, file)
    value(SOURCE, file)
    assert sorted(os.listdir(tmp_path)) == ["elsewhere", "net.py"]
    assert rewrites == ["net.py"]


def test_many_threads_write_one_entry(file, rewrites):
    values = []
    threads = [threading.Thread(target=lambda: values.append(value(SOURCE, file))) for _ in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert values == [("3", range(2))] * 16
    assert os.listdir(os.path.dirname(entry(file))) == [os.path.basename(entry(file))]


def test_a_file_has_one_meaning_in_a_program_of_python_2_and_another_in_one_of_python_3(file, rewrites):
    pytest.importorskip("lib2to3")
    source = b"def f(x):\n    return x / 2\n"
    main = os.path.join(os.path.dirname(file), "main.py")
    with open(main, "w") as stream:
        stream.write("print 'a'\n")
    for _ in range(2):
        del python2.program[:]
        assert value(source, file) == 1.5
        rewriting.compiled(b"print 'a'\n", main)
        assert python2.program == [main]
        assert value(source, file) == 1
    assert rewrites == ["net.py", "main.py", "net.py"]


def test_a_file_that_chooses_a_module_is_known_as_such(file, rewrites):
    for _ in range(2):
        user_files.choosing.clear()
        rewriting.compiled(b"try:\n    import cPickle\nexcept ImportError:\n    import pickle\n", file)
        assert user_files.choosing == {file}
    assert rewrites == ["net.py"]


def test_tracebacks_name_the_file_as_it_was_imported(file, rewrites):
    rewriting.compiled(SOURCE, file)
    code, _ = rewriting.compiled(SOURCE, os.path.relpath(file))
    assert code.co_filename == os.path.relpath(file)
    assert code.co_consts[0].co_filename == os.path.relpath(file)
    assert rewrites == ["net.py"]


def test_a_script_and_its_modules_run_again_from_what_is_kept(tmp_path):
    (tmp_path / "script.py").write_text("import other\nprint('%d' % other.f(1))\nother.g()\n")
    (tmp_path / "other.py").write_text("def f(x):\n    return x\n\n\ndef g():\n    return [][0]\n")
    first = run(tmp_path, "script.py", 1)
    assert kept(tmp_path) == ["other", "script"]
    second = run(tmp_path, "script.py", 1)
    assert (first.stdout, first.stderr) == (second.stdout, second.stderr)
    assert 'other.py", line 6, in g' in second.stderr
    assert "    return [][0]" in second.stderr
    (tmp_path / "other.py").write_text("def f(x):\n    return 2\n\n\ndef g():\n    pass\n")
    assert run(tmp_path, "script.py").stdout == "2\n"


def test_a_run_without_bytecode_leaves_no_files(tmp_path):
    (tmp_path / "script.py").write_text("import other\n")
    (tmp_path / "other.py").write_text("print(1)\n")
    assert run(tmp_path, "script.py", PYTHONDONTWRITEBYTECODE="1").stdout == "1\n"
    assert sorted(os.listdir(tmp_path)) == ["other.py", "script.py"]
