"""Flags reach programs that have run already, by every way of calling them."""
import os
import subprocess
import sys

import numpy as np
import pytest

import anabranch.fluid as fluid


@pytest.mark.parametrize("compiled", [False, True])
def test_passes_are_switched_off_between_runs(compiled):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 4])
        y = fluid.layers.fc(x, 3, act="relu")
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    program = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()]) if compiled else main
    feed = {"x": np.ones((2, 4), "float32")}

    def nodes():
        for _ in range(3):   # the first calls look things up, the later ones do not
            values = exe.run(program, feed=feed, fetch_list=[y], scope=scope)[0]
        engine = program._engine if compiled else exe._bind(main, scope).engine
        return int(engine.explain().split()[0]), values

    fused, first = nodes()
    fluid.set_flags({"FLAGS_disable_passes": "all"})
    try:
        apart, second = nodes()
    finally:
        fluid.set_flags({"FLAGS_disable_passes": ""})
    assert fused < apart
    assert nodes()[0] == fused
    assert (first == second).all()


@pytest.fixture
def flags():
    kept = fluid.get_flags(["FLAGS_check_nan_inf", "FLAGS_eager_delete_tensor_gb"])
    yield fluid.core.globals()
    fluid.set_flags(kept)


@pytest.mark.parametrize("name, value", [
    ("FLAGS_check_nan_inf", True), ("FLAGS_check_nan_inf", 1), ("FLAGS_eager_delete_tensor_gb", 2)])
def test_an_item_of_the_global_flags_sets_the_flag(flags, name, value):
    flags[name] = value
    assert flags[name] == value
    assert fluid.get_flags(name) == {name: value}


def test_the_global_flags_show_later_changes(flags):
    fluid.set_flags({"FLAGS_check_nan_inf": True})
    assert flags["FLAGS_check_nan_inf"] is True and flags.get("FLAGS_check_nan_inf") is True
    assert "FLAGS_check_nan_inf" in flags.keys() and flags.is_public("FLAGS_check_nan_inf")
    assert len(flags) == len(list(flags)) > 20


def test_flags_that_do_not_exist(flags):
    assert "FLAGS_none" not in flags and not flags.is_public("FLAGS_none") and flags.get("FLAGS_none", 5) == 5
    with pytest.raises(fluid.core.EnforceNotMet, match="there is no flag 'FLAGS_none'"):
        flags["FLAGS_none"]
    with pytest.raises(ValueError, match="there is no flag 'FLAGS_none'"):
        flags["FLAGS_none"] = 1
    with pytest.raises(TypeError, match="FLAGS_check_nan_inf must be a bool"):
        flags["FLAGS_check_nan_inf"] = "a"
    with pytest.raises(TypeError, match="cannot be deleted"):
        del flags["FLAGS_check_nan_inf"]


@pytest.mark.parametrize("value", ["1", "true", "1.8", "1.8.5 "])
def test_the_exact_mode_has_one_value(value):
    with pytest.raises(ValueError, match='FLAGS_fluid_exact must be "1.8.5" or empty, got "%s"' % value):
        fluid.set_flags({"FLAGS_fluid_exact": value})
    assert fluid.get_flags("FLAGS_fluid_exact") == {"FLAGS_fluid_exact": ""}
    code = "import anabranch.fluid as fluid; print(fluid.get_flags('FLAGS_fluid_exact'))"
    run = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True,
                         env={**os.environ, "FLAGS_fluid_exact": value})
    assert "FLAGS_fluid_exact must be" in run.stderr and run.stdout.strip() == "{'FLAGS_fluid_exact': ''}"
