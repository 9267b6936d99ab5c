"""Gradients of a sum's terms, which are the sum's."""
import numpy as np
import pytest
from trained_nets import PASSES, Trained, changes

import anabranch.fluid as fluid

layers = fluid.layers


def batch(rng):
    return {"x": rng.normal(0, 1, (4, 6)).astype("float32"), "more": rng.normal(0, 1, (4, 6)).astype("float32")}


def net(build, make_batch=batch):
    def model():
        x, more = fluid.data("x", [None, 6], "float32"), fluid.data("more", [None, 6], "float32")
        h = layers.fc(x, 6, act="tanh")
        loss = layers.mean(layers.square(layers.fc(layers.softmax(build(h, more)), 3)))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, make_batch
    return Trained(model)


def told_of(trained, fetch=(), off=()):
    """The explanation of steps with the pass, which have the bits of those without it."""
    fetch = [trained.loss.name, *fetch, *[p.name for p in trained.main.all_parameters()]]
    passes = [name for name in PASSES if name not in off]
    expected, _ = trained.run([name for name in passes if name != "share_sum_gradients"], fetch=fetch, steps=3)
    got, told = trained.run(passes, fetch=fetch, steps=3)
    for a, b in zip(expected, got):
        np.testing.assert_array_equal(a, b)
    return told


def branch(h):
    return layers.softmax(layers.fc(h, 6))


def test_gradients_of_a_residual_block_are_not_copied():
    assert changes(told_of(net(lambda h, _: layers.elementwise_add(h, branch(h)))), "share_sum_gradients") == 1


def test_gradients_through_heads_and_products_of_them_are_not_copied():
    """Rows stay through reshapes, transposes and products of matrices."""
    def attention(h, _):
        q = layers.transpose(layers.reshape(h, [0, 2, 3]), [0, 2, 1])
        p = layers.softmax(layers.matmul(q, layers.transpose(q, [0, 2, 1])))
        return layers.elementwise_add(h, layers.reshape(layers.matmul(p, q), [0, 6]))
    assert changes(told_of(net(attention)), "share_sum_gradients") == 1


def test_a_chain_of_sums_has_one_gradient():
    def chain(h, _):
        return layers.elementwise_add(layers.elementwise_add(h, branch(h)), branch(h))
    told = told_of(net(chain), off=["fuse_elementwise"])  # which would make one operator of both sums
    assert changes(told, "share_sum_gradients") == 2


def test_a_gradient_that_is_fetched_is_made():
    trained = net(lambda h, _: layers.elementwise_add(h, branch(h)))
    block = trained.main.global_block()
    add, = [op for op in block.ops if op.type == "elementwise_add_grad" and op.input("X") == ["fc_0.tmp_2"]]
    assert changes(told_of(trained, fetch=add.output("Y@GRAD")), "share_sum_gradients") == 0


def test_the_gradient_of_a_parameter_keeps_its_name():
    def model():
        x = fluid.data("x", [4, 6], "float32")
        weight = layers.create_parameter([4, 6], "float32", name="weight")
        loss = layers.mean(layers.softmax(layers.elementwise_add(layers.fc(x, 6, act="softmax"), weight)))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss, batch
    assert changes(told_of(Trained(model)), "share_sum_gradients") == 0


@pytest.mark.parametrize("rows", [4, 1])
def test_rows_that_may_be_others_are_added_up(rows):
    """The number of rows of `more` is fed, and may be one."""
    def make_batch(rng):
        return dict(batch(rng), more=rng.normal(0, 1, (rows, 6)).astype("float32"))

    def plus_more(h, more):
        return layers.elementwise_add(h, layers.fc(more, 6, act="tanh"))
    assert changes(told_of(net(plus_more, make_batch)), "share_sum_gradients") == 0


def test_a_gradient_that_is_added_to_in_place_is_copied():
    """Later changes of the sum's gradient do not reach its terms."""
    def model():
        x, y = fluid.data("x", [4, 6], "float32"), fluid.data("more", [4, 6], "float32")
        block = x.block
        made = [block.create_var(name=name, shape=[4, 6], dtype="float32") for name in ("dsum", "dx", "dy")]
        layers.assign(layers.scale(x, 3.0), made[0])
        block.append_op(type="elementwise_add_grad", inputs={"X": [x], "Y": [y], "Out@GRAD": [made[0]]},
                        outputs={"X@GRAD": [made[1]], "Y@GRAD": [made[2]]}, attrs={"axis": -1})
        layers.assign(layers.relu(x), made[0])
        return layers.reduce_sum(layers.sum([layers.tanh(made[1]), layers.softmax(made[2]), made[0]])), batch
    assert changes(told_of(Trained(model)), "share_sum_gradients") == 0
