"""W10 with this project's layer instead of Fluid's graph: anabranch.word2vec.skip_gram, 5 negatives, window up to 5, SGD.

Words of text per second; `negatives`: own (each pair has its own) or shared (by the words of a window). Windows are
formed beforehand, so the rate is that of training alone; it is not compared with a rival.
"""
import numpy as np

import common
import data
from w10_word2vec import NEGATIVES, WINDOW, sentences

CASES = [dict(dim=d, vocabulary=v, negatives=n, batch=250)
         for d, v in ((100, 100000), (300, 354051)) for n in ("shared", "own")]


def windows(rng, words, vocabulary, shared):
    """The arrays of a batch of centres: context, centre, negatives, present."""
    offsets = np.array([k for k in range(-WINDOW, WINDOW + 1) if k])
    at = np.arange(words.size)[:, None] + offsets
    present = (abs(offsets) <= rng.randint(1, WINDOW + 1, (words.size, 1))) & (at >= 0) & (at < words.size)
    negatives = data.zipf(rng, (words.size, NEGATIVES * (1 if shared else 2 * WINDOW)), vocabulary, 0.75)
    return dict(context=np.where(present, words[at % words.size], 0), centre=words[:, None], negatives=negatives,
                present=present.astype("float32"))


def build(fluid, case):
    from anabranch.word2vec import skip_gram
    shared = case["negatives"] == "shared"
    context = fluid.data("context", [None, 2 * WINDOW], "int64")
    centre = fluid.data("centre", [None, 1], "int64")
    negatives = fluid.data("negatives", [None, NEGATIVES * (1 if shared else 2 * WINDOW)], "int64")
    present = fluid.data("present", [None, 2 * WINDOW])
    loss = skip_gram(context, centre, negatives, case["vocabulary"], case["dim"], present, shared)
    loss = fluid.layers.mean(loss)
    fluid.optimizer.SGD(0.025 * case["batch"]).minimize(loss)      # the loss is a mean over windows
    return loss


def prepare(fluid, case, config):
    rng = np.random.RandomState(3)
    words = sentences(rng, 100, case["vocabulary"]).reshape(-1)
    whole = windows(rng, words, case["vocabulary"], case["negatives"] == "shared")
    order = rng.permutation(words.size)
    feeds = [{name: np.ascontiguousarray(value[part]) for name, value in whole.items()}
             for part in np.split(order, words.size // case["batch"])]
    step = common.train_job(fluid, lambda: build(fluid, case), feeds, config, own_weights=False)
    return step, case["batch"]


if __name__ == "__main__":
    common.fluid_main("W10", "words/s", CASES, prepare, configs=("exe cache", "cp2", "cp2 reduce"), quick=("exe cache",))
