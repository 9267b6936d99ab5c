"""Calls of Executor.run that look like an earlier one are made without looking anything up. What may change between two
of them does change the result; every test asserts that the short way was, or was not, taken."""
import gc
import weakref

import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import bound as bound_module

layers = fluid.layers


class Net:
    """y = 2 x, z = -x, and a persistable number that grows by 1 in each run."""

    def __init__(self, width=3):
        self.main, self.scope = fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, fluid.Program()), fluid.unique_name.guard():
            self.x = fluid.data("x", [None, width], "float32")
            self.y, self.z = layers.scale(self.x, 2.0), layers.scale(self.x, -1.0)
            count = self.main.global_block().create_var(name="count", shape=[1], dtype="float32", persistable=True)
            layers.increment(count)
        self.scope.var("count").get_tensor().set(np.zeros(1, "float32"), fluid.CPUPlace())


@pytest.fixture(params=["program", "compiled"])
def net(request):
    made = Net()
    made.target = made.main if request.param == "program" else fluid.CompiledProgram(made.main)
    return made


@pytest.fixture
def taken(monkeypatch):
    """For each call so far: whether it was made the short way."""
    calls, run, again = [], fluid.Executor.run, bound_module.Bound.again

    def watched(*args, **kwargs):
        calls.append(False)
        return run(*args, **kwargs)

    def watched_again(self, *args):
        result = again(self, *args)
        calls[-1] = result is not None
        return result

    monkeypatch.setattr(fluid.Executor, "run", watched)
    monkeypatch.setattr(bound_module.Bound, "again", watched_again)
    return calls


def test_a_fed_array_that_is_changed_in_place(net, taken):
    exe, x = fluid.Executor(), np.ones((2, 3), "float32")
    feed, fetch = {"x": x}, [net.y]
    for value in (1, 5, -3):
        x[...] = value
        assert (exe.run(net.target, feed, fetch, scope=net.scope)[0] == 2 * value).all()
    assert taken == [False, True, True]


def test_other_arrays_shapes_and_rows(net, taken):
    exe = fluid.Executor()
    for i, rows in enumerate((2, 2, 7, 1, 0, 2)):
        x = np.full((rows, 3), i, "float32")
        np.testing.assert_array_equal(exe.run(net.target, {"x": x}, [net.y], scope=net.scope)[0], 2 * x)
    assert taken == [False] + [True] * 5


def test_values_that_need_a_closer_look_take_the_long_way(net, taken):
    exe = fluid.Executor()
    one = np.ones((2, 3), "float32")
    tensor = fluid.create_lod_tensor(one * 4, [[1, 1]], fluid.CPUPlace())
    for x, expected in ((one, 2), (np.asfortranarray(one * 3), 6), (tensor, 8), (np.ones((4, 3), "float32")[::2], 2)):
        got, = exe.run(net.target, {"x": x}, [net.y], scope=net.scope, return_numpy=False)
        assert (np.array(got) == expected).all()
    with pytest.raises(ValueError):
        exe.run(net.target, {"x": np.ones((2, 4), "float32")}, [net.y], scope=net.scope)
    assert (exe.run(net.target, {"x": one}, [net.y], scope=net.scope)[0] == 2).all()
    assert not taken[0] and taken[-1]


def test_an_array_after_a_tensor_with_sequences_has_none(net, taken):
    exe, one = fluid.Executor(), np.ones((3, 3), "float32")
    for lengths in ([[1, 2]], [[3]], [], [[2, 1]]):
        fed = fluid.create_lod_tensor(one, lengths, fluid.CPUPlace()) if lengths else one
        got, = exe.run(net.target, {"x": fed}, [net.y], scope=net.scope, return_numpy=False)
        assert got.recursive_sequence_lengths() == lengths
    assert taken == [False, True, True, True]


def test_fetches_that_change_places_or_kind(net, taken):
    exe, x = fluid.Executor(), np.ones((1, 3), "float32")
    for fetch, expected in (([net.y, net.z], [2, -1]), ([net.z, net.y], [-1, 2]), ([net.y, net.z], [2, -1]),
                             ([net.z.name], [-1]), ((net.z, net.y), [-1, 2]), (None, []), ([net.z], [-1])):
        assert [float(v[0, 0]) for v in exe.run(net.target, {"x": x}, fetch, scope=net.scope)] == expected
    assert taken == [False, False, True, False, True, False, False]  # a name and a Variable are two ways to ask


def test_a_fetch_list_that_is_changed_in_place(net, taken):
    exe, x, fetch = fluid.Executor(), np.ones((1, 3), "float32"), [net.y]
    exe.run(net.target, {"x": x}, fetch, scope=net.scope)
    assert exe.run(net.target, {"x": x}, fetch, scope=net.scope)[0][0, 0] == 2
    fetch[0] = net.z
    assert exe.run(net.target, {"x": x}, fetch, scope=net.scope)[0][0, 0] == -1
    fetch.append(net.y)
    assert len(exe.run(net.target, {"x": x}, fetch, scope=net.scope)) == 2
    assert taken == [False, True, False, False]


@pytest.mark.parametrize("edit", ["attribute", "append", "persistable", "rename"])
def test_a_program_that_is_edited_between_calls(edit, taken):
    net, exe, x = Net(), fluid.Executor(), np.ones((1, 3), "float32")
    for _ in range(2):
        assert exe.run(net.main, {"x": x}, [net.y], scope=net.scope)[0][0, 0] == 2
    fetch, expected = [net.y], 2
    if edit == "attribute":
        next(op for op in net.main.global_block().ops if op.type == "scale")._set_attr("scale", 7.0)
        expected = 7
    elif edit == "append":
        with fluid.program_guard(net.main, fluid.Program()):
            layers.assign(layers.scale(net.y, 5.0), net.y)
        expected = 10
    elif edit == "persistable":
        net.y.persistable = True
    else:
        net.main.global_block()._rename_var(net.y.name, "other")
        fetch = ["other"]
    for _ in range(2):
        assert exe.run(net.main, {"x": x}, fetch, scope=net.scope)[0][0, 0] == expected
    assert taken == [False, True, False, True]
    assert (net.scope.find_var(net.y.name) is not None) == (edit == "persistable")


def test_every_scope_has_its_own_call(net, taken):
    exe, x, other = fluid.Executor(), np.ones((1, 3), "float32"), fluid.Scope()
    other.var("count").get_tensor().set(np.full(1, 50, "float32"), fluid.CPUPlace())
    target = net.main  # a CompiledProgram is bound to the scope of its first run
    counts = [exe.run(target, {"x": x}, ["count"], scope=s)[0].item()
              for s in (net.scope, other, net.scope, other, net.scope)]
    assert counts == [1, 51, 2, 52, 3] and taken == [False, False, True, True, True]


def test_values_set_between_calls_are_seen(net, taken):
    exe, x = fluid.Executor(), np.ones((1, 3), "float32")
    for value in (0, 10, -7):
        net.scope.find_var("count").get_tensor().set(np.full(1, value, "float32"), fluid.CPUPlace())
        assert exe.run(net.target, {"x": x}, ["count"], scope=net.scope)[0].item() == value + 1
    assert taken == [False, True, True]


def test_fetched_arrays_keep_their_values(net, taken):
    exe = fluid.Executor()
    got = [exe.run(net.target, {"x": np.full((2, 3), i, "float32")}, [net.y, "count"], scope=net.scope)
           for i in range(4)]
    assert [(float(y[0, 0]), c.item()) for y, c in got] == [(0, 1), (2, 2), (4, 3), (6, 4)]
    assert taken == [False, True, True, True]


def test_the_sixty_fifth_program_replaces_the_oldest_and_all_still_run(taken):
    exe, x = fluid.Executor(), np.ones((1, 3), "float32")
    nets = [Net() for _ in range(66)]
    for _ in range(2):
        for net in nets:
            assert exe.run(net.main, {"x": x}, [net.y], scope=net.scope)[0][0, 0] == 2
            assert len(exe._bound) <= 64
    assert not any(taken)  # each was gone when it was run again
    newest, oldest = weakref.ref(nets[-1].main), weakref.ref(nets[0].main)
    del taken[:]
    for again in (nets[40], nets[65], nets[1]):
        assert exe.run(again.main, {"x": x}, ["count"], scope=again.scope)[0].item() == 3
    assert exe.run(nets[40].main, {"x": x}, [nets[40].y], scope=nets[40].scope)[0][0, 0] == 2
    assert taken == [False, False, False, True]  # the first three fetch something new
    del nets, net, again
    gc.collect()
    assert newest() is not None and oldest() is None  # what is no longer kept ready is let go
