"""explain() names the condition that kept a pass from fusing ops which almost fit its pattern."""
import numpy as np
import pytest

import anabranch.fluid as fluid

layers = fluid.layers


def near_misses(build):
    """The near misses of a program; build() gives the variables to fetch."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        fetched = build()
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
    feed = {name: np.ones(main.global_block().var(name).shape, "float32")
            for name in ("x", "image") if main.global_block().has_var(name)}
    exe.run(target, feed=feed, fetch_list=fetched, scope=scope)
    lines = target.explain().splitlines()
    at = next((i for i, line in enumerate(lines) if line.startswith("  near misses")), len(lines))
    found = []
    for line in lines[at + 1:]:
        if not line.startswith(" " * 6):
            break
        found.append(line.strip())
    return found


def rows():
    return fluid.data("x", [2, 3, 8], "float32")


def image():
    return fluid.data("image", [2, 3, 6, 6], "float32")


def parameter(*shape):
    return layers.create_parameter(list(shape), "float32", name="p")


def product_with_two_readers():
    product = layers.mul(layers.reshape(rows(), [6, 8]), parameter(8, 4))
    return [layers.elementwise_add(product, layers.fill_constant([4], "float32", 1.0)), layers.square(product)]


def fetched_sum():
    total = layers.fc(rows(), 4, num_flatten_dims=2)
    return [total, layers.relu(total)]


def bias_of_another_axis():
    return [layers.elementwise_add(layers.mul(layers.reshape(rows(), [4, 12]), parameter(12, 4)),
                                   layers.fill_constant([4], "float32", 1.0), axis=0)]


def numbers_for_each_row():
    return [layers.elementwise_add(layers.conv2d(image(), 6, 3, padding=1, bias_attr=False),
                                   layers.fill_constant([6], "float32", 1.0), axis=2)]


def dropped_again():
    """A sum that the next block of a transformer reads, too."""
    x = rows()
    total = layers.elementwise_add(layers.dropout(layers.scale(x, 2.0), 0.1, seed=3), layers.scale(x, 3.0))
    return [layers.layer_norm(total, begin_norm_axis=2), layers.square(total)]


def softmax_of_columns():
    x = rows()
    weights = layers.softmax(layers.matmul(x, x, transpose_y=True), axis=1)
    return [layers.matmul(weights, x)]


CASES = [
    (product_with_two_readers, "fuse_fc: mul -> elementwise_add: 'mul_0.tmp_0' has 2 readers"),
    (fetched_sum, "fuse_fc: mul -> elementwise_add -> relu: 'fc_0.tmp_1' is fetched"),
    (bias_of_another_axis, "fuse_fc: mul -> elementwise_add: Y does not have one number for each column"),
    (numbers_for_each_row, "fuse_conv: conv2d -> elementwise_add: Y does not have one number for each channel; "
                           "the images may differ in shape"),
    (dropped_again, "fuse_layer_norm: dropout -> elementwise_add -> layer_norm: 'elementwise_add_0.tmp_0' is also read "
                    "by square"),
    (softmax_of_columns, "fuse_attention: matmul -> softmax: it is not by row"),
]


@pytest.mark.parametrize("build, text", CASES, ids=[case[0].__name__ for case in CASES])
def test_the_failed_condition_is_named(build, text):
    assert text in near_misses(build)


def test_fused_ops_are_not_near_misses():
    def build():
        x = fluid.data("image", [2, 108], "float32")
        return [layers.fc(x, 4, act="tanh"), layers.fc(x, 4)]

    assert near_misses(build) == []


def test_a_changed_program_is_not_explained_again():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        fetched = fetched_sum()
        exe = fluid.Executor()
        exe.run(startup)
        target = fluid.CompiledProgram(main).with_data_parallel(places=[fluid.CPUPlace()])
        exe.run(target, feed={"x": np.ones((2, 3, 8), "float32")}, fetch_list=fetched)
        assert "near misses" in target.explain()
        layers.square(fetched[0])
        assert "near misses" not in target.explain()
