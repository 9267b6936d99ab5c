"""Histograms of layers.auc that a script sets itself, to clear them between passes for instance."""
import numpy as np
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import layers


class Counted:
    """A program with ``layers.auc``, and its variables of histograms."""

    def __init__(self):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            predict, label = fluid.data("p", [None, 2]), fluid.data("l", [None, 1], "int64")
            self.of_all, self.of_batch, self.states = layers.auc(predict, label, num_thresholds=7)
        self.exe = fluid.Executor(fluid.CPUPlace())
        self.exe.run(startup, scope=self.scope)

    def tensors(self):
        return [self.scope.find_var(state.name).get_tensor() for state in self.states]

    def clear(self, dtype, to=0):
        for tensor in self.tensors():
            tensor.set((np.zeros(tensor.shape()) + to).astype(dtype), fluid.CPUPlace())

    def step(self, seed):
        draw = np.random.RandomState(seed)
        score = draw.rand(9, 1).astype("float32")
        feed = {"p": np.concatenate([1 - score, score], 1), "l": draw.randint(0, 2, (9, 1))}
        return [float(v.item()) for v in self.exe.run(self.main, feed=feed, fetch_list=[self.of_all, self.of_batch],
                                                      scope=self.scope)]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_counting_starts_again_from_zeros_of_any_dtype(dtype):
    cleared, fresh = Counted(), Counted()
    cleared.step(0)
    cleared.clear(dtype)
    assert [cleared.step(seed) for seed in (1, 2)] == [fresh.step(seed) for seed in (1, 2)]
    for one, other in zip(cleared.tensors(), fresh.tensors()):
        np.testing.assert_array_equal(np.array(one), np.array(other))
        assert np.array(one).dtype == dtype


def test_numbers_are_counted_on():
    floats, integers = Counted(), Counted()
    floats.clear("float32", to=2)
    integers.clear("int64", to=2)
    assert floats.step(1) == integers.step(1)


def test_other_dtypes_are_refused_before_a_count_changes():
    counted = Counted()
    counted.step(0)
    before = np.array(counted.tensors()[2])
    last = counted.tensors()[3]
    last.set(np.zeros(last.shape(), "bool"), fluid.CPUPlace())
    with pytest.raises(fluid.core.EnforceNotMet, match="must hold int64, float32, float64 or int32, got bool"):
        counted.step(1)
    np.testing.assert_array_equal(np.array(counted.tensors()[2]), before)
