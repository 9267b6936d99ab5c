"""An encoder of any size, for tests of memory, time and precision."""
import numpy

import anabranch.fluid as fluid

layers = fluid.layers


def encoder(x, depth, heads):
    """The output of `depth` layers of attention and two products each on x [n, positions, width], and all between."""
    width, ends = int(x.shape[2]), []

    def split(v):
        return layers.transpose(layers.reshape(v, [0, 0, heads, width // heads]), [0, 2, 1, 3])

    for _ in range(depth):
        q, k, v = (split(layers.fc(x, width, num_flatten_dims=2)) for _ in range(3))
        share = layers.softmax(layers.matmul(q, k, transpose_y=True, alpha=(width // heads) ** -0.5))
        seen = layers.reshape(layers.transpose(layers.matmul(share, v), [0, 2, 1, 3]), [0, 0, width])
        x = layers.layer_norm(x + layers.fc(seen, width, num_flatten_dims=2), begin_norm_axis=2)
        inner = layers.fc(x, 4 * width, num_flatten_dims=2, act="gelu")
        x = layers.layer_norm(x + layers.fc(inner, width, num_flatten_dims=2), begin_norm_axis=2)
        ends.append(x)
    return x, ends


def labeled(depth, heads, positions, width, classes=4):
    """Loss of an encoder that tells the classes of sequences, and the outputs of its layers."""
    x = fluid.data("x", [None, positions, width], "float32")
    y = fluid.data("y", [None, 1], "int64")
    out, ends = encoder(x, depth, heads)
    logits = layers.fc(layers.reduce_mean(out, dim=1), classes)
    return layers.mean(layers.softmax_with_cross_entropy(logits, y)), ends


def batch(rng, rows, positions, width, classes=4):
    y = rng.randint(0, classes, (rows, 1))
    kinds = numpy.random.RandomState(5).normal(0, 1, (classes, positions, width))
    x = 0.3 * kinds[y[:, 0]] + rng.normal(0, 1, (rows, positions, width))
    return {"x": x.astype("float32"), "y": y.astype("int64")}
