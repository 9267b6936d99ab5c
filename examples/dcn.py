"""Predicts clicks with a deep & cross network: layers that multiply with the input, combined with a dense network.

    x_{k+1} = x_0 (w_k . x_k) + b_k + x_k        logit = fc(concat(x_last, network(x_0)))

Wang and others, "Deep & Cross Network for Ad Click Predictions", arXiv:1708.05123. Data: synthetic clicks.

Expected output: a test AUC within 0.01 of the planted one (with --fast: 0.03).
"""
import clicks

import anabranch.fluid as fluid


def cross(x0, x, width):
    """One cross layer, [n, width]."""
    weight = fluid.layers.fc(x, 1, bias_attr=False)
    bias = fluid.layers.create_parameter([width], "float32", is_bias=True)
    product = fluid.layers.elementwise_mul(x0, weight, axis=0)
    return fluid.layers.elementwise_add(fluid.layers.elementwise_add(product, bias, axis=1), x)


def dcn(inputs, rows=clicks.TABLE_ROWS, width=8, crosses=3, layers=(64, 64)):
    """The logit [n, 1]."""
    x0 = fluid.layers.concat([clicks.embed(ids, width, "table", rows) for ids in inputs.slots] + [inputs.dense], axis=1)
    x = x0
    for _ in range(crosses):
        x = cross(x0, x, x0.shape[1])
    return fluid.layers.fc(fluid.layers.concat([x, clicks.dense_layers(x0, layers)], axis=1), 1)


if __name__ == "__main__":
    clicks.run(__doc__, dcn)
