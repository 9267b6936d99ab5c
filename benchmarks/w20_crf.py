"""W20: linear-chain conditional random field, forward and backward, 32 sequences of 100 rows.

The emissions are a parameter which plain SGD changes, as are the transitions, so that nothing else takes time.
Sequences per second.
"""
import numpy as np

import common

BATCH, ROWS = 32, 100
CASES = [dict(tags=tags) for tags in (10, 50)]


def prepare(fluid, case, config):
    tags = case["tags"]

    def build():
        emission = fluid.layers.create_parameter([BATCH * ROWS, tags], "float32", name="emission")
        emission = fluid.layers.lod_reset(emission, target_lod=list(range(0, BATCH * ROWS + 1, ROWS)))
        label = fluid.data("label", [None, 1], "int64", lod_level=1)
        loss = fluid.layers.mean(fluid.layers.linear_chain_crf(emission, label, fluid.ParamAttr(name="transition")))
        fluid.optimizer.SGD(0.1).minimize(loss)
        return loss

    def feed(seed):
        steps = np.random.RandomState(seed).randint(0, 3, (BATCH * ROWS, 1))     # a tag follows the one before
        return dict(label=fluid.create_lod_tensor(np.cumsum(steps, axis=0) % tags, [[ROWS] * BATCH],
                                                  fluid.CPUPlace()))

    return common.train_job(fluid, build, [feed(seed) for seed in range(8)], config), BATCH


if __name__ == "__main__":
    common.fluid_main("W20", "sequences/s", CASES, prepare, configs=("exe cache", "exe cache omp2", "cp1"))
