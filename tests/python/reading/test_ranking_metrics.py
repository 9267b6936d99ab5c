"""``anabranch.RankingMetrics``: equal to brute force over all pairs, in passes over data sets and in loops."""
import numpy as np
import pytest

import anabranch
import anabranch.fluid as fluid
from anabranch import _group_areas, ranking


def pairs(chance, label):
    """The AUC by all pairs."""
    up, down = chance[label == 1], chance[label == 0]
    return ((up[:, None] > down).sum() + 0.5 * (up[:, None] == down).sum()) / (len(up) * len(down))


def expected(chance, label, group=None):
    """The metrics by their definitions."""
    chance, mean = chance.astype("float64"), label.mean()
    clipped = np.clip(chance, 2.0 ** -25, 1 - 2.0 ** -25)
    loss = -np.where(label == 1, np.log(clipped), np.log1p(-clipped)).mean()
    found = {"auc": pairs(chance, label), "ne": loss / -(mean * np.log(mean) + (1 - mean) * np.log1p(-mean)),
             "calibration": chance.sum() / label.sum()}
    if group is not None:
        parts = [(chance[group == key], label[group == key]) for key in np.unique(group)]
        parts = [part for part in parts if 0 < part[1].mean() < 1]
        rows = [len(part[1]) for part in parts]
        found["gauc"] = np.average([pairs(*part) for part in parts], weights=rows)
    return found


def drawn(rows, seed, groups=50, shift=0.0, width=1.0):
    """Predictions of about the right size, labels and groups; some predictions are equal."""
    draw = np.random.RandomState(seed)
    score = shift + width * draw.normal(size=rows)
    chance = (1 / (1 + np.exp(-score))).astype("float32")
    chance[::7] = chance[0]
    label = (draw.rand(rows) < chance).astype("int64")
    return chance, label, draw.zipf(1.3, rows) % groups


KINDS = {"plain": {}, "rare": {"shift": -4.0}, "alike": {"width": 0.02}, "near to one": {"shift": 6.0, "width": 2.0},
         "small ones": {"shift": -7.0, "width": 3.0}}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rows", [60, 5000])
def test_brute_force(kind, rows):
    chance, label, group = drawn(rows, 3, **KINDS[kind])
    label[:2] = 0, 1
    metrics = anabranch.RankingMetrics()
    for at in range(0, rows, 97):
        part = slice(at, at + 97)
        metrics.update(chance[part], label[part], group[part])
    assert metrics.result().metrics == pytest.approx(expected(chance, label, group), abs=1e-6, nan_ok=True)


@pytest.mark.parametrize("kind", KINDS)
def test_bins_of_many_rows(kind):
    """As with more rows than are kept."""
    chance, label, _ = drawn(300_000, 4, **KINDS[kind])
    metrics = anabranch.RankingMetrics()
    metrics.update(chance, label)
    exact = metrics.result().metrics
    binned = ranking._of_bins(*metrics._counts.bins()[1:])
    # A bin with a seventh of all rows is the worst case: these predictions cannot be told from those next to them.
    assert {name: binned[name] for name in exact} == pytest.approx(exact, abs=1e-5 if kind == "alike" else 1e-6)


def test_predictions_of_zero_and_one_have_a_finite_loss():
    chance, label = np.array([0, 1, 0, 1, -0.0, 1e-12], "float64"), np.array([0, 1, 1, 0, 0, 0])
    metrics = anabranch.RankingMetrics()
    metrics.update(chance, label)
    assert metrics.result().metrics == pytest.approx(expected(chance, label), abs=1e-6)


def test_parts_of_groups_are_the_whole(monkeypatch):
    """Many parts, as for many rows."""
    chance, label, group = drawn(5000, 4, groups=400)
    metrics = anabranch.RankingMetrics()
    metrics.update(chance, label, group * 2 ** 40 - 2 ** 55)     # wide and negative numbers are groups, too
    whole = metrics.result().metrics["gauc"]
    monkeypatch.setattr(_group_areas, "_ROWS_OF_A_PART", 300)
    assert metrics.result().metrics["gauc"] == pytest.approx(whole, abs=1e-12)
    assert whole == pytest.approx(expected(chance, label, group)["gauc"], abs=1e-9)


def test_calibration_by_bucket():
    chance, label, _ = drawn(4000, 5)
    chance = np.round(chance, 2) + np.float32(0.001)     # so that each bin holds one prediction
    metrics = anabranch.RankingMetrics(buckets=7)
    metrics.update(chance, label)
    found = metrics.result().calibration
    below = (chance[:, None] > chance).sum(axis=1)       # rows with a smaller prediction
    place = below * 7 // len(chance)
    assert [bucket.rows for bucket in found] == [np.sum(place == key) for key in np.unique(place)]
    for key, bucket in zip(np.unique(place), found):
        here = place == key
        assert bucket.predicted == pytest.approx(chance[here].astype("float64").mean(), abs=1e-9)
        assert bucket.observed == pytest.approx(label[here].mean(), abs=1e-9)


def test_metrics_that_are_not_defined_are_nan():
    metrics = anabranch.RankingMetrics()
    assert all(np.isnan(value) for value in metrics.result().metrics.values()) and metrics.result().calibration == []
    metrics.update([0.25, 0.5], [1, 1], [7, 7])
    found = metrics.result().metrics
    assert np.isnan([found[name] for name in ("auc", "gauc", "ne")]).all() and found["calibration"] == 0.375
    metrics.reset()
    metrics.update([0.25, 0.5], [-1, 0])                 # a label below 0 is ignored
    assert metrics.result().calibration == [(1, 0.5, 0.0)]
    assert np.isnan(metrics.result().metrics["calibration"])


@pytest.mark.parametrize("call, error, text", [
    (lambda: anabranch.RankingMetrics("p"), ValueError, "prediction and label must both be given"),
    (lambda: anabranch.RankingMetrics("p", "y", buckets=0), ValueError, "buckets must be at least 1, got 0"),
    (lambda: anabranch.RankingMetrics("p", "y", prefix=3), TypeError, "prefix must be a str, got int"),
    (lambda: anabranch.RankingMetrics(3, "y"), TypeError, "prediction must be a Variable or its name, got int"),
    (lambda: anabranch.RankingMetrics(fluid.data("p", [None, 1], "int64"), "y"), TypeError,
     "prediction p must be float32 or float64, got int64"),
    (lambda: anabranch.RankingMetrics().update([0.5], [1], ["red"]), TypeError, "group must be integers"),
    (lambda: anabranch.RankingMetrics().update([0.5, 1.5], [1, 0]), ValueError,
     "prediction of sample 1 must be from 0 to 1, got 1.5"),
    (lambda: anabranch.RankingMetrics().update([0.5, np.nan], [1, 0]), ValueError, "must be from 0 to 1, got nan"),
    (lambda: anabranch.RankingMetrics().update([0.5], [np.nan]), ValueError, "label of sample 0 must be a number"),
    (lambda: anabranch.RankingMetrics().update([0.5] * 3, [1, 0]), ValueError, "one or two columns for each of 2"),
    (lambda: anabranch.RankingMetrics().update([0.5], [1], [1, 2]), ValueError, "one integer for each of 1 labels"),
    (lambda: anabranch.RankingMetrics().update([1, 0], [1, 0]), ValueError, "float32 or float64, got int64"),
])
def test_mistakes(call, error, text):
    with fluid.program_guard(fluid.Program(), fluid.Program()), pytest.raises(error, match=text):
        call()


def test_a_batch_that_is_refused_changes_nothing():
    metrics = anabranch.RankingMetrics()
    metrics.update([0.25, 0.5], [0, 1])
    before = metrics.result().metrics
    with pytest.raises(ValueError):
        metrics.update([0.75, 1.5], [0, 1])
    assert metrics.result().metrics == before
    with pytest.raises(RuntimeError, match="in all calls or in none"):
        metrics.update([0.5], [1], [3])


# ---- passes

ROWS = 1003


class Model:
    """Two columns of probabilities from three numbers."""

    def __init__(self, rate=0.0):
        self.main, self.startup, self.scope = fluid.Program(), fluid.Program(), fluid.Scope()
        self.main.random_seed = self.startup.random_seed = 5
        with fluid.program_guard(self.main, self.startup), fluid.unique_name.guard():
            self.inputs = [fluid.data("x", [None, 3]), fluid.data("y", [None, 1], "int64"),
                           fluid.data("user", [None, 1], "int64")]
            self.chance = fluid.layers.fc(self.inputs[0], 2, act="softmax")
            self.loss = fluid.layers.mean(fluid.layers.cross_entropy(self.chance, self.inputs[1]))
            self.test = self.main.clone(for_test=True)
            fluid.optimizer.SGD(rate).minimize(self.loss)
        self.exe = fluid.Executor()
        self.exe.run(self.startup, scope=self.scope)
        self.metrics = anabranch.RankingMetrics(self.chance, *self.inputs[1:])

    def dataset(self, path, threads=1):
        made = fluid.DatasetFactory().create_dataset("QueueDataset")
        made.set_use_var(self.inputs)
        made.set_batch_size(64)
        made.set_thread(threads)
        made.set_filelist([path])
        return made

    def expected(self, rows):
        x, y, user = rows
        chance, = self.exe.run(self.test._prune_with_input(["x"], [self.chance.name]), {"x": x}, [self.chance.name],
                               scope=self.scope)
        return expected(chance[:, 1], y, user)


def written(path, seed=1, count=ROWS):
    """The rows of a file that is written."""
    draw = np.random.RandomState(seed)
    x = draw.normal(size=(count, 3)).round(3).astype("float32")
    y, user = (draw.rand(count) < 1 / (1 + np.exp(-x[:, 0]))).astype("int64"), draw.randint(0, 40, count)
    with open(path, "w") as file:
        for row in zip(x, y, user):
            file.write("3 %s 1 %d 1 %d\n" % (" ".join("%.3f" % v for v in row[0]), row[1], row[2]))
    return x, y, user


@pytest.mark.parametrize("threads", [1, 3])
def test_passes_return_the_metrics_of_their_rows(threads, tmp_path):
    rows, model = written(tmp_path / "a"), Model()
    expected_values = model.expected(rows)
    for _ in range(2):                                          # each pass starts empty
        for program, run in ((model.main, model.exe.train_from_dataset), (model.test, model.exe.infer_from_dataset)):
            result = run(program, model.dataset(str(tmp_path / "a"), threads), model.scope, thread=threads,
                         metrics=model.metrics)
            assert {name: result[name] for name in expected_values} == pytest.approx(expected_values, abs=1e-6)
            assert sum(bucket.rows for bucket in result.ranking[0].calibration) == ROWS


def test_replicas_of_a_loop(tmp_path):
    """The values that two replicas fetch are those of the whole batch."""
    (x, y, user), model = written(tmp_path / "a"), Model()
    both = fluid.CompiledProgram(model.main).with_data_parallel(model.loss.name, places=fluid.cpu_places(2))
    metrics = anabranch.RankingMetrics()
    for at in range(0, 1000, 100):
        feed = {"x": x[at:at + 100], "y": y[at:at + 100, None], "user": user[at:at + 100, None]}
        chance, label = model.exe.run(both, feed, [model.chance, model.inputs[1]], scope=model.scope)
        metrics.update(chance, label, feed["user"])
    assert metrics.result().metrics == pytest.approx(model.expected((x[:1000], y[:1000], user[:1000])), abs=1e-6)


def test_parts_between_checkpoints_are_one_pass(tmp_path):
    rows, model = written(tmp_path / "a"), Model()
    run = anabranch.Checkpoints(str(tmp_path / "run"), model.main, model.exe, every=4, scope=model.scope)
    for _ in run.epochs(1):
        result = model.exe.train_from_dataset(model.main, model.dataset(str(tmp_path / "a")), model.scope,
                                              checkpoints=run, metrics=model.metrics)
    expected_values = model.expected(rows)
    assert {name: result[name] for name in expected_values} == pytest.approx(expected_values, abs=1e-6)


def test_training_is_not_changed(tmp_path):
    """The same bits with and without metrics."""
    written(tmp_path / "a")
    weights = []
    for metrics in (False, True):
        model = Model(rate=0.5)
        model.exe.train_from_dataset(model.main, model.dataset(str(tmp_path / "a")), model.scope,
                                     metrics=model.metrics if metrics else None)
        weights.append(np.array(model.scope.find_var("fc_0.w_0").get_tensor()).tobytes())
    assert weights[0] == weights[1]


def test_several_metrics_have_prefixes(tmp_path):
    written(tmp_path / "a")
    model = Model()
    more = anabranch.RankingMetrics(model.chance.name, "y", prefix="plain_")
    result = model.exe.infer_from_dataset(model.test, model.dataset(str(tmp_path / "a")), model.scope,
                                          metrics=[model.metrics, more])
    assert result["plain_auc"] == result["auc"] and "plain_gauc" not in result.metrics
    with pytest.raises(ValueError, match="different prefixes, got .'', ''."):
        model.exe.infer_from_dataset(model.test, model.dataset(str(tmp_path / "a")), model.scope,
                                     metrics=[model.metrics] * 2)


@pytest.mark.parametrize("metrics, error, text", [
    (3, TypeError, "metrics must be anabranch.RankingMetrics, got int"),
    (anabranch.RankingMetrics(), ValueError, "metrics must name the variables"),
    (anabranch.RankingMetrics("chance", "y"), LookupError, "fetched variable chance is computed by no op"),
])
def test_mistakes_of_passes(metrics, error, text, tmp_path):
    written(tmp_path / "a")
    model = Model()
    with pytest.raises(error, match=text):
        model.exe.infer_from_dataset(model.test, model.dataset(str(tmp_path / "a")), model.scope, metrics=metrics)
