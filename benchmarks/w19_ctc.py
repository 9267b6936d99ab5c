"""W19: connectionist temporal classification, forward and backward, 32 sequences of 100 rows with 10-30 labels.

The logits are a parameter which plain SGD changes, so that nothing else takes time. Sequences per second, padded
(`dense`) and over LoD.
"""
import numpy as np

import common

BATCH, ROWS, MOST_LABELS = 32, 100, 30
CASES = [dict(form=form, classes=classes) for form in ("dense", "lod") for classes in (30, 100)]


def labels(classes, seed):
    """Labels of each sequence: class 0 is the blank."""
    rng = np.random.RandomState(seed)
    return [rng.randint(1, classes, rng.randint(10, MOST_LABELS + 1)) for _ in range(BATCH)]


def dense_loss(fluid, classes):
    logits = fluid.layers.create_parameter([ROWS, BATCH, classes], "float32", name="logits")
    label = fluid.data("label", [BATCH, MOST_LABELS], "int32")
    lengths = [fluid.data(name, [BATCH], "int64") for name in ("logits_length", "label_length")]
    return fluid.layers.warpctc(logits, label, input_length=lengths[0], label_length=lengths[1])


def lod_loss(fluid, classes):
    logits = fluid.layers.create_parameter([BATCH * ROWS, classes], "float32", name="logits")
    logits = fluid.layers.lod_reset(logits, target_lod=list(range(0, BATCH * ROWS + 1, ROWS)))
    return fluid.layers.warpctc(logits, fluid.data("label", [None, 1], "int32", lod_level=1))


def feed_of(fluid, form, classes, seed):
    own = labels(classes, seed)
    if form == "lod":
        flat = np.concatenate(own).astype("int32").reshape(-1, 1)
        return dict(label=fluid.create_lod_tensor(flat, [[len(one) for one in own]], fluid.CPUPlace()))
    padded = np.zeros((BATCH, MOST_LABELS), "int32")
    for row, one in zip(padded, own):
        row[:len(one)] = one
    return dict(label=padded, logits_length=np.full(BATCH, ROWS, "int64"),
                label_length=np.array([len(one) for one in own], "int64"))


def prepare(fluid, case, config):
    def build():
        loss = dict(dense=dense_loss, lod=lod_loss)[case["form"]](fluid, case["classes"])
        mean = fluid.layers.mean(loss)
        fluid.optimizer.SGD(0.1).minimize(mean)
        return mean

    feeds = [feed_of(fluid, case["form"], case["classes"], seed) for seed in range(8)]
    return common.train_job(fluid, build, feeds, config), BATCH


if __name__ == "__main__":
    common.fluid_main("W19", "sequences/s", CASES, prepare, configs=("exe cache", "exe cache omp2", "cp1"))
