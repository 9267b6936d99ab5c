"""Warm start: what fits is loaded, what does not is listed, training goes on as it would have."""
import io
import os

import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch import warm_start


class Net:
    """An embedding of ids in a growable table and in a fixed one, a hidden layer, a top."""

    def __init__(self, classes=3, prefix="", width=4, seed=3):
        self.main, startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = startup.random_seed = seed
        with fluid.program_guard(self.main, startup), fluid.unique_name.guard():
            ids = fluid.data("ids", [None, 1], "int64")
            table = fluid.GrowableTable(prefix + "grows", fluid.initializer.Uniform(-0.5, 0.5))
            rows = [fluid.layers.embedding(ids, [-1, width], is_sparse=True, param_attr=table),
                    fluid.layers.embedding(ids, [50, 4], is_sparse=True, param_attr=prefix + "fixed")]
            hidden = fluid.layers.fc(fluid.layers.concat(rows, 1), 6, param_attr=prefix + "w", bias_attr=prefix + "b")
            out = fluid.layers.fc(hidden, classes, param_attr=prefix + "top", bias_attr=False)
            self.loss = fluid.layers.mean(fluid.layers.square(out - 1.0))
            fluid.optimizer.Adagrad(0.1).minimize(self.loss)
        self.table, self.exe, self.names = table, fluid.Executor(), prefix
        with fluid.scope_guard(self.scope):
            self.exe.run(startup)

    def train(self, steps, begin=0):
        losses = []
        with fluid.scope_guard(self.scope):
            for step in range(begin, begin + steps):
                ids = np.random.RandomState(step).randint(0, 50, (8, 1)).astype("int64")
                losses.append(self.exe.run(self.main, feed={"ids": ids}, fetch_list=[self.loss])[0].tobytes())
        return losses

    def value(self, name):
        return np.array(self.scope.find_var(self.names + name).get_tensor())


def by_save(net, folder):
    with fluid.scope_guard(net.scope):
        fluid.save(net.main, os.path.join(folder, "net"))
    return os.path.join(folder, "net")


def by_files(net, folder):
    with fluid.scope_guard(net.scope):
        fluid.io.save_persistables(net.exe, folder, net.main)
    return folder


def by_checkpoints(net, folder):
    run = anabranch.Checkpoints(folder, net.main, net.exe, scope=net.scope, stream=io.StringIO())
    assert list(run.epochs(1)) == [0]
    return folder


@pytest.mark.parametrize("how", [by_save, by_files, by_checkpoints])
def test_training_goes_on_with_tables_and_optimizer_state(tmp_path, how):
    net = Net()
    net.train(5)
    path, expected = how(net, str(tmp_path)), net.train(5, 5)
    again = Net()
    again.train(2, 20)
    done = warm_start(again.main, path, scope=again.scope)
    assert not (done.fresh or done.other_shape or done.unused) and "grows" in done.loaded
    assert again.train(5, 5) == expected


def test_what_does_not_fit_is_listed_and_stays(tmp_path):
    net = Net()
    net.train(3)
    path = by_save(net, str(tmp_path))
    other = Net(classes=5, prefix="new_", width=2, seed=4)
    before = other.value("top")
    done = warm_start(other.main, path, rename=lambda name: name.replace("new_", ""), scope=other.scope)
    assert ("new_top", "[6, 5] float32", "[6, 3] float32") in done.other_shape
    assert ("new_grows", "rows of 2", "rows of 4") in done.other_shape and "new_w" not in done.loaded
    assert "new_fixed" in done.loaded and (other.value("fixed") == net.value("fixed")).all()
    assert (other.value("top") == before).all()
    assert "left as it was" in str(done)
    other.train(1)


def test_names_of_a_dict_and_parameters_alone(tmp_path):
    net = Net()
    net.train(3)
    path = by_files(net, str(tmp_path))
    other = Net(prefix="new_", seed=4)
    done = warm_start(other.main, path, {"new_w": "w"}, optimizer_state=False, scope=other.scope)
    assert done.loaded == ["new_w"] and "new_top" in done.fresh and "top" in done.unused
    assert "as the startup program made them: " in str(done)


def test_bad_calls_change_nothing(tmp_path):
    net = Net()
    before = net.value("w")
    with pytest.raises(FileNotFoundError):
        warm_start(net.main, str(tmp_path / "none"), scope=net.scope)
    with pytest.raises(TypeError, match="must be a Program"):
        warm_start(3, str(tmp_path))
    path = by_save(Net(seed=5), str(tmp_path))
    with open(path + ".pdparams", "r+b") as file:
        file.truncate(40)
    with pytest.raises(fluid.core.EnforceNotMet):
        warm_start(net.main, path, scope=net.scope)
    assert (net.value("w") == before).all()


@pytest.mark.parametrize("source, used", [("script", 0.1), ("saved", 0.5)])
def test_a_learning_rate_that_differs_is_chosen_and_listed(tmp_path, source, used):
    old, new = Net(), Net()
    old.scope.find_var("learning_rate_0").get_tensor().set(np.full(1, 0.5, "float32"), fluid.CPUPlace())
    how = {} if source == "script" else {"learning_rate": source}
    done = warm_start(new.main, by_save(old, str(tmp_path)), scope=new.scope, **how)
    assert new.value("learning_rate_0") == np.float32(used)
    other = "0.5" if source == "script" else "0.1"
    assert done.constants == [("learning_rate_0", str(used), other)]
    assert "learning_rate_0: %s is used, not %s" % (used, other) in str(done)
    assert ("learning_rate_0" in done.loaded) == (source == "saved")


def test_an_unknown_source_of_the_learning_rate_is_refused(tmp_path):
    with pytest.raises(ValueError, match="learning_rate must be 'script' or 'saved', got 'file'"):
        warm_start(Net().main, str(tmp_path), learning_rate="file")
