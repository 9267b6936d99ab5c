"""Quantized layers as products of integers: the same bits as the ops of the program; other layers stay."""
import os
import subprocess
import sys

import numpy as np
import pytest
from trained_nets import PASSES, changes

import anabranch.fluid as fluid

layers = fluid.layers
VNNI = any(f in open("/proc/cpuinfo").read() for f in ("avx512_vnni", "avx_vnni"))
pytestmark = pytest.mark.skipif(not VNNI, reason="this processor has no instructions for 8-bit integers")


class Quantized:
    """A layer as QuantizationFreezePass leaves it; `training`: the scale changes."""

    def __init__(self, k=24, n=20, act="relu", bias=True, scale=2.0, weights=None, kind="range_abs_max", axes=1,
                 bits=8, training=False, back_by="scale", extents=()):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        draw = np.random.RandomState(5)
        self.levels = draw.randint(-127, 128, (k, n)).astype("float32") if weights is None else weights
        self.exe = fluid.Executor(fluid.CPUPlace())
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard(), fluid.scope_guard(self.scope):
            x = fluid.data("x", [None, *extents, k], "float32")
            block = self.main.global_block()
            kept = self.parameter("scale", np.array([scale], "float32"))
            levels, other = self.parameter("levels", self.levels), self.parameter("other", np.ones(1, "float32"))
            quantized, product, back = (block.create_var(name=name, dtype="float32", shape=shape) for name, shape in (
                ("quantized", x.shape), ("product", [-1, *extents, n]), ("back", [-1, *extents, n])))
            state = {name: [self.parameter(name, np.ones(1, "float32"))] for name in ("State", "Accum") if training}
            block.append_op(
                type="fake_quantize_" + kind,
                inputs={"X": [x], "InScale": [kept], **{"In" + name: var for name, var in state.items()}},
                outputs={"Out": [quantized], "OutScale": [kept], **{"Out" + name: var for name, var in state.items()}},
                attrs={"is_test": not training, "bit_length": bits})
            block.append_op(type="mul", inputs={"X": [quantized], "Y": [levels]}, outputs={"Out": [product]},
                            attrs={"x_num_col_dims": axes})
            block.append_op(type="fake_dequantize_max_abs", outputs={"Out": [back]}, attrs={"max_range": 4000.0},
                            inputs={"X": [product], "Scale": [kept if back_by == "scale" else other]})
            made = layers.elementwise_add(back, self.parameter("bias", draw.normal(size=n).astype("float32"))) \
                if bias else back
            self.out = getattr(layers, act)(made) if act else made

    def parameter(self, name, value):
        self.scope.var(name).get_tensor().set(value, fluid.CPUPlace())
        return self.main.global_block().create_var(name=name, dtype="float32", shape=value.shape, persistable=True)

    def run(self, on, feeds, fetch=(), threads=1):
        build, execution = fluid.BuildStrategy(), fluid.ExecutionStrategy()
        execution.num_threads = threads
        builder = build._finalize_strategy_and_create_passes()
        for name in set(PASSES) - set(on):
            builder.remove_pass([p.type() for p in builder.all_passes()].index(name))
        target = fluid.CompiledProgram(self.main).with_data_parallel(
            build_strategy=build, exec_strategy=execution, places=fluid.cpu_places(1))
        fetch = [self.out, *fetch]
        out = [value.copy() for x in feeds for value in self.exe.run(target, {"x": x}, fetch, scope=self.scope)]
        return out, changes(target.explain(), "fuse_quantized") if "fuse_quantized" in on else 0


def same_bits(net, feeds, nodes=1, fetch=()):
    expected, _ = net.run([], feeds, fetch)
    for on in (["fuse_quantized"], PASSES):
        for threads in (1, 2, 7):
            got, made = net.run(on, feeds, fetch, threads)
            assert made == nodes
            for a, b in zip(expected, got, strict=True):
                np.testing.assert_array_equal(a.view("int32"), b.view("int32"))
    return expected


def rows(*counts, k=24, spread=1.0):
    draw = np.random.RandomState(6)
    return [(spread * draw.normal(size=(count, k))).astype("float32") for count in counts]


@pytest.mark.parametrize("kind", ["range_abs_max", "moving_average_abs_max"])
@pytest.mark.parametrize("act, bias", [("relu", True), ("sigmoid", True), ("", True), ("tanh", False), ("", False)])
def test_layers_that_fit(kind, act, bias):
    expected = same_bits(Quantized(act=act, bias=bias, kind=kind), rows(1, 33, 5, 64, 700, 33, 0))
    assert np.unique(expected[4]).size > 100


@pytest.mark.parametrize("k, n", [(1, 1), (1, 40), (3, 7), (400, 1), (429, 256), (1040, 16)])
def test_shapes(k, n):
    same_bits(Quantized(k, n), rows(1, 2, 31, 200, k=k))


def test_many_numbers_of_rows():
    """More than are kept."""
    net = Quantized()
    same_bits(net, rows(*range(1, 160, 2), 1))


def test_axes_of_rows():
    net = Quantized(k=24, axes=2, extents=(3,))
    same_bits(net, [x.reshape(-1, 3, 24) for x in rows(6, 66)])


def test_values_at_the_edges():
    """Beyond the scale, halves, zeros of both signs, denormals, infinities, NaN: in some rows, and in all."""
    x = rows(40, spread=3.0)[0]
    steps = (np.arange(-48, 48) + 0.5) * np.float32(2.0 / 127)
    x[1:5] = steps.reshape(4, 24)
    x[5], x[6], x[7, ::2], x[8, 3], x[9, 4] = 0.0, -0.0, 1e-42, np.inf, -np.inf
    net = Quantized(act="")
    out = same_bits(net, [x])[0]
    assert np.isfinite(out).all()
    x[30, 2] = np.nan
    out = same_bits(net, [x, rows(3)[0], np.full((3, 24), np.nan, "float32")])
    assert np.isnan(out[0][30]).all() and np.isfinite(out[0][:30]).all()


@pytest.mark.parametrize("scale", [0.0, -1.0, np.nan, np.inf, 1e-38, 3e38])
def test_scales_at_the_edges(scale):
    same_bits(Quantized(scale=scale, act=""), rows(4, 40))


def test_other_weights():
    """A program may hold any numbers: fractions, more than 127, NaN, sums that float32 rounds."""
    half, large, nan = (np.full((24, 20), value, "float32") for value in (3, 3, 3))
    half[3, 4], large[3, 4], nan[3, 4] = 0.5, 128.0, np.nan
    for weights in (half, large, nan):
        same_bits(Quantized(weights=weights, act=""), rows(4, 70))
    same_bits(Quantized(1041, 9, weights=np.full((1041, 9), 127, "float32")), [np.full((40, 1041), 5, "float32")])


def test_weights_that_a_user_sets_between_runs():
    net = Quantized()
    x = rows(40)
    first = same_bits(net, x)
    for change in (-1, 0.3):
        net.scope.find_var("levels").get_tensor().set(net.levels * change, fluid.CPUPlace())
        assert (same_bits(net, x)[0] != first[0]).any()


def test_a_call_that_is_kept_sees_new_weights():
    net = Quantized(act="")
    x = {"x": rows(40)[0]}
    first = net.exe.run(net.main, x, [net.out], scope=net.scope)[0].copy()
    net.exe.run(net.main, x, [net.out], scope=net.scope)
    net.scope.find_var("levels").get_tensor().set(-net.levels, fluid.CPUPlace())
    other = net.exe.run(net.main, x, [net.out], scope=net.scope)[0]
    bias = np.array(net.scope.find_var("bias").get_tensor())
    np.testing.assert_allclose(other - bias, bias - first, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("what", [dict(bits=9), dict(back_by="other"),
                                  dict(kind="moving_average_abs_max", training=True)])
def test_layers_that_do_not_fit(what):
    net = Quantized(**what)
    start = {name: np.array(net.scope.find_var(name).get_tensor()) for name in ("scale", "State", "Accum")
             if net.main.global_block().has_var(name)}
    results = []
    for on in ([], PASSES):
        for name, value in start.items():
            net.scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
        got, made = net.run(on, rows(5, 40))
        assert made == 0
        results.append(got)
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("fetched, nodes", [("quantized", 0), ("product", 0), ("back", 1), ("levels", 1), ("scale", 1)])
def test_fetched_values_are_made(fetched, nodes):
    same_bits(Quantized(), rows(5), nodes=nodes, fetch=[fetched])


SUM = """
import hashlib, sys
sys.path[:0] = %r
from test_fuse_quantized import Quantized, rows
out, nodes = Quantized(429, 33).run(["fuse_quantized"], rows(1, 200, k=429))
print(nodes, hashlib.sha256(b"".join(x.tobytes() for x in out)).hexdigest())
"""


@pytest.mark.parametrize("instructions", ["AVX2", "AVX512_CORE", "AVX512_CORE_VNNI"])
def test_bits_do_not_depend_on_the_instructions_of_the_library(instructions):
    """Without VNNI the library's sums of 8-bit products saturate: it must not be asked for them."""
    def run(**more):
        return subprocess.run([sys.executable, "-c", SUM % sys.path], env={**os.environ, **more}, check=True,
                              capture_output=True, text=True).stdout
    assert run().startswith("1 ")
    assert run(DNNL_MAX_CPU_ISA=instructions) == run()
