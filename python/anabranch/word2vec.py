"""Skip-gram with negative sampling as one layer, beside the graph that is written by hand in Fluid's layers."""
from .fluid import layers
from .fluid.errors import InvalidValue
from .fluid.initializer import Constant, Uniform
from .fluid.input import embedding
from .fluid.param_attr import ParamAttr

__all__ = ["skip_gram"]


def _rows(ids, vocabulary, dim, name, initializer):
    return embedding(ids, [vocabulary, dim], is_sparse=True, param_attr=ParamAttr(name, initializer=initializer))


def skip_gram(context, centre, negatives, vocabulary, dim, present=None, shared_negatives=False,
              input_table="word_vectors", output_table="context_vectors"):
    """The loss of skip-gram with negative sampling, a window at a time.

    Each word of the context is to tell the centre from words that were drawn at random:
    ``- log sigmoid(in[w] . out[c]) - sum over negatives k of log sigmoid(- in[w] . out[k])``, added up over the window.
    Gradients of both tables are sparse.

    Args:
        context (Variable): [n, w], int64: ids in [0, vocabulary) of the words around the centre, filled up with any id.
        centre (Variable): [n, 1], int64: the words in the middle.
        negatives (Variable): int64: [n, k] where they are shared, else [n, w * k], k for each word of the context.
        vocabulary (int): rows of the tables.
        dim (int): their width, at least 1.
        present (Variable, optional): [n, w], float32: 1 for a word, 0 for filling. Default: all are words.
        shared_negatives (bool): all words of a window have the same negatives. The rows of a window are then fetched
            and updated once, and the window is a product of two matrices: faster, for gradients that differ in their
            noise, not in their mean. Default False: each pair has its own.
        input_table (str): name of the parameter with the words' vectors. Default "word_vectors".
        output_table (str): name of the one with those of centres and negatives. Default "context_vectors".

    Returns:
        Variable: [n, 1], float32: the loss of each window.

    Raises:
        ValueError: shapes that do not fit together.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.word2vec import skip_gram
        >>> context, centre = fluid.data("context", [None, 4], "int64"), fluid.data("centre", [None, 1], "int64")
        >>> negatives = fluid.data("negatives", [None, 5], "int64")
        >>> loss = skip_gram(context, centre, negatives, vocabulary=1000, dim=16, shared_negatives=True)
        >>> loss.shape
        (-1, 1)
    """
    width, drawn = _checked(context, centre, negatives, vocabulary, dim, shared_negatives)
    words = _rows(context, vocabulary, dim, input_table, Uniform(-0.5 / dim, 0.5 / dim))             # [n, w, d]
    zeros = Constant(0.0)
    if shared_negatives:
        rows = _rows(layers.concat([centre, negatives], axis=1), vocabulary, dim, output_table, zeros)  # [n, 1 + k, d]
        scores = layers.matmul(words, rows, transpose_y=True)                                        # [n, w, 1 + k]
    else:
        own = layers.matmul(words, _rows(centre, vocabulary, dim, output_table, zeros),
                            transpose_y=True)                                                        # [n, w, 1]
        rows = layers.reshape(_rows(negatives, vocabulary, dim, output_table, zeros), [-1, drawn, dim])
        others = layers.matmul(layers.reshape(words, [-1, 1, dim]), rows, transpose_y=True)          # [n w, 1, k]
        scores = layers.concat([own, layers.reshape(others, [-1, width, drawn])], axis=2)
    right, wrong = layers.split(scores, [1, drawn], dim=2)
    # - log sigmoid(x) = softplus(-x)
    loss = layers.elementwise_add(layers.softplus(layers.scale(right, -1.0)),
                                  layers.reduce_sum(layers.softplus(wrong), dim=2, keep_dim=True))
    loss = layers.reshape(loss, [-1, width])
    if present is not None:
        loss = layers.elementwise_mul(loss, present)
    return layers.reduce_sum(loss, dim=1, keep_dim=True)



def _checked(context, centre, negatives, vocabulary, dim, shared_negatives):
    """(words a window, negatives a pair)."""
    if vocabulary < 1 or dim < 1:
        raise InvalidValue("skip_gram: vocabulary and dim are at least 1, got %d and %d" % (vocabulary, dim))
    shapes = [tuple(v.shape) for v in (context, centre, negatives)]
    if any(len(shape) != 2 for shape in shapes) or shapes[1][1] != 1 or shapes[0][1] < 1:
        raise InvalidValue("skip_gram: context is [n, w], centre [n, 1], negatives [n, k], got %s, %s, %s"
                           % tuple(shapes))
    width, given = shapes[0][1], shapes[2][1]
    drawn = given if shared_negatives else given // width
    if drawn < 1 or (not shared_negatives and given % width):
        raise InvalidValue("skip_gram: each of %d words needs as many negatives, got %d in all" % (width, given))
    return width, drawn
