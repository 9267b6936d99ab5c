"""The table of layers, parameters and operations: the numbers are those of Fluid 1.8.5."""
import pytest

from anabranch import fluid
from anabranch.fluid import layers
from anabranch.fluid.contrib.model_stat import summary


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def _image(*shape):
    return fluid.data("image", list(shape))


def _net():
    x = layers.conv2d(_image(None, 3, 32, 32), 8, 3, padding=1, stride=2, bias_attr=False)
    x = layers.batch_norm(x, act="relu")
    x = layers.conv2d(x, 8, 3, groups=8, padding=1, use_cudnn=False)
    x = layers.conv2d(x, 8, 1, groups=2)
    x = layers.pool2d(layers.prelu(x, "all"), 2, pool_stride=2)
    x = layers.dropout(layers.pool2d(layers.sigmoid(x), global_pooling=True), 0.5)
    layers.fc(x, 10, act="softmax")


#: Name: (builder, rows of type, shapes, parameters and FLOPs, the two lines of totals) as Fluid 1.8.5 prints them.
CASES = {
    "net": (_net, [
        "conv2d (3, 32, 32) (8, 16, 16) 216 110592", "batch_norm (8, 16, 16) (8, 16, 16) 16 4096",
        "relu (8, 16, 16) (8, 16, 16) 0 -2048", "depthwise_conv2d (8, 16, 16) (8, 16, 16) 9 4608",
        "conv2d (8, 16, 16) (8, 16, 16) 16 8192", "prelu (8, 16, 16) (8, 16, 16) 1 -2048",
        "pool2d (8, 16, 16) (8, 8, 8) 0 2048", "sigmoid (8, 8, 8) (8, 8, 8) 0 -512",
        "pool2d (8, 8, 8) (8, 1, 1) 0 8", "mul (8, 1, 1) (10,) 81 80"],
        "Total PARAMs: 339(0.0003M)", "Total FLOPs: 125016(0.00G)"),
    "unknown extents": (lambda: layers.conv2d(_image(None, 3, -1, -1), 4, 3),
                        ["conv2d (3, -1, -1) (4, -1, -1) 108 216"],
                        "Total PARAMs: 108(0.0001M)", "Total FLOPs: 216(0.00G)"),
    "groups": (lambda: layers.conv2d(_image(4, 8, 8, 8), 24, [2, 3], groups=4, act="sigmoid"),
               ["conv2d (8, 8, 8) (24, 7, 6) 72 6048", "sigmoid (24, 7, 6) (24, 7, 6) 0 4032"],
               "Total PARAMs: 72(0.0001M)", "Total FLOPs: 10080(0.00G)"),
    "large": (lambda: layers.conv2d(_image(2, 64, 300, 300), 512, 3, padding=1),
              ["conv2d (64, 300, 300) (512, 300, 300) 294912 53084160000"],
              "Total PARAMs: 294912(0.2949M)", "Total FLOPs: 53084160000(53.08G)"),
    "channels last": (lambda: layers.pool2d(_image(4, 8, 8, 6), 3, data_format="NHWC"),
                      ["pool2d (8, 8, 6) (6, 6, 6) 0 1944"], "Total PARAMs: 0(0.0000M)", "Total FLOPs: 1944(0.00G)"),
    "rank 3": (lambda: layers.fc(_image(None, 3, 4), 3, num_flatten_dims=2), ["mul (3, 4) (3, 3) 13 12"],
               "Total PARAMs: 13(0.0000M)", "Total FLOPs: 12(0.00G)"),
    "nothing": (lambda: None, [], "Total PARAMs: 0(0.0000M)", "Total FLOPs: 0(0.00G)"),
}


@pytest.mark.parametrize("case", CASES)
def test_the_table(case, capsys):
    build, rows, params, flops = CASES[case]
    build()
    summary(fluid.default_main_program())
    lines = capsys.readouterr().out.splitlines()
    rule = lines[0]
    assert set(rule) == {"+", "-"} and lines[2] == rule == lines[3 + len(rows)]
    assert {len(line) for line in lines[:4 + len(rows)]} == {len(rule)}
    assert [" ".join(cell.strip() for cell in line.split("|")[2:-1]) for line in lines[3:3 + len(rows)]] == rows
    assert lines[4 + len(rows):6 + len(rows)] == [params, flops]


def test_training_adds_no_row(capsys):
    fluid.optimizer.SGD(0.1).minimize(layers.mean(layers.fc(_image(None, 4), 2)))
    summary(fluid.default_main_program())
    assert capsys.readouterr().out.count("|  mul |") == 1


def test_layers_of_a_loop_are_counted(capsys):
    x, steps, limit = _image(2, 3), layers.fill_constant([1], "int64", 0), layers.fill_constant([1], "int64", 3)
    more = layers.less_than(steps, limit)
    loop = layers.While(more)
    with loop.block():
        layers.relu(x)
        layers.less_than(layers.increment(steps), limit, cond=more)
    summary(fluid.default_main_program())
    assert "| relu |  (3,) |   (3,) |      0 |     6 |" in capsys.readouterr().out


def test_the_package_has_the_function_too():
    assert fluid.contrib.summary is summary


def test_something_else_than_a_program():
    with pytest.raises(TypeError, match="main_prog must be a Program, got int"):
        summary(3)
