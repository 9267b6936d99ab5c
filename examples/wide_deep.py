"""Predicts clicks with wide & deep: a linear model that memorizes, combined with a network that generalizes.

    logit = sum of one weight per category + w . counts + network(rows of the categories, counts)

Cheng and others, "Wide & Deep Learning for Recommender Systems", arXiv:1606.07792. Data: synthetic clicks.

Expected output: a test AUC within 0.01 of the planted one (with --fast: 0.03).
"""
import clicks

import anabranch.fluid as fluid


def wide_deep(inputs, rows=clicks.TABLE_ROWS, width=8, layers=(64, 64)):
    """The logit [n, 1]."""
    wide = fluid.layers.sums([clicks.embed(ids, 1, "wide", rows) for ids in inputs.slots]
                             + [fluid.layers.fc(inputs.dense, 1)])
    deep = [clicks.embed(ids, width, "deep", rows) for ids in inputs.slots] + [inputs.dense]
    deep = fluid.layers.concat(deep, axis=1)
    return fluid.layers.elementwise_add(wide, fluid.layers.fc(clicks.dense_layers(deep, layers), 1))


if __name__ == "__main__":
    clicks.run(__doc__, wide_deep)
