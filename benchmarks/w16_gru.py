"""W16: classifier of texts by gated recurrent units over LoD, one layer in each direction, real lengths 20-1000, batch 64.

Tokens per second, counting real tokens only: LoD input has no padding.
"""
import numpy as np

import common
import data

VOCABULARY, EMBEDDING, BATCH = 5147, 128, 64


def both_ways(fluid, words, hidden):
    x = fluid.embedding(words, size=[VOCABULARY, EMBEDDING], is_sparse=True)
    ways = [fluid.layers.dynamic_gru(fluid.layers.fc(x, size=3 * hidden), size=hidden, is_reverse=reverse)
            for reverse in (False, True)]
    return fluid.layers.fc([fluid.layers.sequence_pool(way, "max") for way in ways], size=2, act="softmax")


def prepare(fluid, case, config):
    def build():
        words = fluid.data("words", [None], "int64", lod_level=1)
        label = fluid.data("label", [None, 1], "int64")
        loss = fluid.layers.mean(fluid.layers.cross_entropy(both_ways(fluid, words, case["hidden"]), label))
        fluid.optimizer.Adagrad(0.002).minimize(loss)
        return loss

    samples = data.batches(4, BATCH, lambda rng, n: data.reviews(rng, n, VOCABULARY))
    feeds = [dict(words=fluid.create_lod_tensor(np.concatenate(sequences), [[len(s) for s in sequences]],
                                                fluid.CPUPlace()), label=labels) for sequences, labels in samples]
    tokens = np.mean([sum(map(len, sequences)) for sequences, _ in samples])
    return common.train_job(fluid, build, feeds, config), tokens


if __name__ == "__main__":
    common.fluid_main("W16", "tokens/s", [dict(hidden=h) for h in (128, 512)], prepare)
