"""Scripts of the guides and of the years 2018 to 2020 with ``use_cuda = True``: on the simulated device they say what
1.8.5 said on the CPU, to four digits."""
import os
import re

import old_scripts as scripts
import pytest
from device_runs import pytestmark  # noqa: F401

import archives as small  # isort: skip  old_scripts knows the way to it

#: Whole scripts that the guides begin with.
FIRST = ["fit_a_line", "recognize_digits_mlp", "word2vec_ngram"]
#: Samples of the guides whose records are of two replicas.
TWO_REPLICAS = ["cpu_recipe", "single_and_multi_card"]


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("archives"))
    small.write(folder)
    return folder


@pytest.fixture(autouse=True)
def simulated(monkeypatch):
    monkeypatch.setitem(scripts.ENVIRONMENT, "FLAGS_device_plugin", "simdevice")
    monkeypatch.setitem(scripts.ENVIRONMENT, "FLAGS_simdevice_devices", "1")


def on_a_device(name, folder):
    """The script with the device as its place, as its users would write it."""
    with open(os.path.join(scripts.SCRIPTS, "old", name + ".py")) as file:
        text = file.read()
    changed = re.sub(r"use_cuda\s*=\s*False", "use_cuda=True", text)
    changed = re.sub(r"\b(fluid|core)\.CPUPlace\(\)", r"\1.CUDAPlace(0)", changed)
    assert changed != text
    path = os.path.join(str(folder), name + ".py")
    with open(path, "w") as file:
        file.write(changed)
    return path


def say_the_same(name, archives, folder):
    done = scripts.run(archives, folder, os.path.join(scripts.SCRIPTS, "start.py"), on_a_device(name, folder))
    scripts.compare(name, done)
    assert "no GPU is available" not in done.stderr


@pytest.mark.parametrize("name", FIRST)
def test_a_first_script_of_the_guides_runs_on_a_device(name, archives, tmp_path):
    say_the_same(name, archives, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.values[0] for p in scripts.named("old") if p.values[0] not in FIRST])
def test_an_old_script_runs_on_a_device(name, archives, tmp_path):
    say_the_same(name, archives, tmp_path)


@pytest.mark.parametrize("name", [pytest.param(p.values[0], marks=() if p.values[0] == "single_and_multi_card"
                                               else pytest.mark.slow) for p in scripts.named("guides")])
def test_a_sample_of_the_guides_runs_on_devices(name, archives, tmp_path, monkeypatch):
    if name in TWO_REPLICAS:
        monkeypatch.setitem(scripts.ENVIRONMENT, "FLAGS_simdevice_devices", "2")
    done = scripts.run(archives, tmp_path, *scripts.start("guides", name), "--use_cuda")
    scripts.compare(name, done)
    assert "no GPU is available" not in done.stderr
