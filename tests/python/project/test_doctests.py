"""The examples in the docstrings of every module that test_docstrings.py does not go through."""
import doctest
import importlib
import inspect
import os
import pkgutil
import weakref

import pytest
from documented import MODULES, RUNNER_FLAGS

import anabranch
import anabranch.fluid as fluid
from anabranch.fluid import memory

ELSEWHERE = tuple("anabranch.fluid." + name for name in MODULES)


class Finder(doctest.DocTestFinder):
    """Finds functions of a module that something wraps, too."""

    def _from_module(self, module, object):
        return super()._from_module(module, inspect.unwrap(object) if inspect.isfunction(object) else object)


def examples():
    """Name -> doctest of everything in the package that has an example."""
    found = {}
    for info in pkgutil.walk_packages(anabranch.__path__, "anabranch."):
        if info.name.startswith((*ELSEWHERE, "anabranch.anabranch_")) or info.name.endswith("._core"):  # plug-ins
            continue
        if info.name == "anabranch.legacy":  # changes the process that imports it: test_run.py runs its example
            continue
        module = importlib.import_module(info.name)
        for test in Finder(exclude_empty=True).find(module):
            if test.examples:
                found[test.name] = test
    return found


EXAMPLES = examples()


def test_there_are_examples():
    assert len(EXAMPLES) > 50


@pytest.fixture
def environment():
    """Examples set their rank in a cluster by the environment: afterwards it is as before."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(name, tmp_path, monkeypatch, environment):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "_engines", weakref.WeakKeyDictionary())  # programs of other tests may still live
    runner, report = doctest.DocTestRunner(verbose=False, optionflags=RUNNER_FLAGS), []
    scope = fluid.Scope()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), fluid.scope_guard(scope):
        runner.run(EXAMPLES[name], out=report.append)
    assert not report, "".join(report)
