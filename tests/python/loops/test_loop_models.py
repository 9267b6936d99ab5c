"""Programs with loops, branches and arrays compute the same when they are cloned, pruned, saved and loaded; their files
are read by Paddle 1.8.5, and those of 1.8.5 here."""
import base64
import json
import os
import subprocess

import loop_models
import pytest

import anabranch.fluid as fluid

RECORD = loop_models.recorded()
VARIABLE = "BENCH_FLUID18_PYTHON"
names = pytest.mark.parametrize("name", sorted(loop_models.MODELS))


def test_all_models_are_recorded():
    assert set(RECORD) == set(loop_models.MODELS)


@names
def test_the_file_of_1_8_5_computes_its_values(name, tmp_path):
    (tmp_path / name).mkdir()
    for key, file in (("model", "__model__"), ("params", "params")):
        if key in RECORD[name]:
            (tmp_path / name / file).write_bytes(base64.b64decode(RECORD[name][key]))
    assert loop_models.difference(loop_models.load(fluid, name, str(tmp_path)), RECORD[name]["values"]) is None


@names
def test_saved_and_loaded(name, tmp_path):
    found = loop_models.save(fluid, name, str(tmp_path))
    assert loop_models.difference(found, RECORD[name]["values"]) is None
    assert loop_models.difference(loop_models.load(fluid, name, str(tmp_path)), loop_models.as_data(found)) is None


@names
def test_cloned_and_pruned(name):
    session, main, feeds, fetched = loop_models.built(fluid, name)
    expected = RECORD[name]["values"]
    fetched = [v.name for v in fetched]
    with fluid.scope_guard(session.scope):
        for program in (main.clone(for_test=True), main.clone(), main._prune(fetched),
                        fluid.Program.parse_from_string(main.desc.serialize_to_string())):
            assert loop_models.difference(session.run(program, feeds, fetched), expected) is None


@pytest.mark.slow
@pytest.mark.skipif(VARIABLE not in os.environ, reason=VARIABLE + " is not set")
def test_1_8_5_reads_our_files(tmp_path):
    values = {name: loop_models.as_data(loop_models.save(fluid, name, str(tmp_path))) for name in loop_models.MODELS}
    (tmp_path / "values.json").write_text(json.dumps(values))
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run([os.environ[VARIABLE], loop_models.__file__, "--fluid", "paddle.fluid", "--load",
                           str(tmp_path)], env=environment, stdout=subprocess.PIPE, universal_newlines=True)
    assert done.returncode == 0 and sorted(done.stdout.split("\n")[:-1]) == sorted(n + " ok" for n in values)
