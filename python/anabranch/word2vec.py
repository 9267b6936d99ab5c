"""Skip-gram with negative sampling as one layer, an alternative to a graph of Fluid's layers."""
from .fluid import arguments
from .fluid.errors import InvalidValue
from .fluid.initializer import Constant, Uniform
from .fluid.layer_helper import LayerHelper
from .fluid.param_attr import ParamAttr

__all__ = ["skip_gram"]


def skip_gram(context, centre, negatives, vocabulary, dim, present=None, shared_negatives=False,
              input_table="word_vectors", output_table="context_vectors"):
    """Computes the loss of skip-gram with negative sampling for windows of words.

    For each word of the context, the model distinguishes the center from words that were drawn at random. The loss is
    ``- log sigmoid(in[w] . out[c]) - sum over negatives k of log sigmoid(- in[w] . out[k])``, summed over the window.
    The gradients of both tables are sparse.

    Args:
        context (Variable): [n, w], int64: ids in [0, vocabulary) of the words around the center, padded with any id.
        centre (Variable): [n, 1], int64: ids of the centers.
        negatives (Variable): int64: [n, k] if they are shared, otherwise [n, w * k], with k for each word of the
            context.
        vocabulary (int): number of rows of the tables.
        dim (int): width of the tables, at least 1.
        present (Variable, optional): [n, w], float32: 1 for a word, 0 for padding. Default: no padding.
        shared_negatives (bool): all words of a window have the same negatives. Each row of a window is then fetched and
            updated once, and the window is a product of two matrices, which is faster. The gradients have the same mean
            but different noise. Default False: each pair has separate negatives.
        input_table (str): name of the parameter with the vectors of context words. Default "word_vectors".
        output_table (str): name of the parameter with the vectors of centers and negatives. Default "context_vectors".

    Returns:
        Variable: [n, 1], float32: the loss of each window.

    Raises:
        ValueError: the shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> from anabranch.word2vec import skip_gram
        >>> context, centre = fluid.data("context", [None, 4], "int64"), fluid.data("centre", [None, 1], "int64")
        >>> negatives = fluid.data("negatives", [None, 5], "int64")
        >>> loss = skip_gram(context, centre, negatives, vocabulary=1000, dim=16, shared_negatives=True)
        >>> loss.shape
        (-1, 1)
    """
    _check(context, centre, negatives, vocabulary, dim, shared_negatives)
    helper = LayerHelper("skip_gram")
    inputs = {"Context": context, "Centre": centre, "Negatives": negatives}
    for slot, name, initializer in (("Words", input_table, Uniform(-0.5 / dim, 0.5 / dim)),
                                    ("Contexts", output_table, Constant(0.0))):
        attr = ParamAttr(name, initializer=initializer)
        inputs[slot] = helper.create_parameter(attr=attr, shape=[vocabulary, dim], dtype="float32", is_bias=False)
    if present is not None:
        inputs["Present"] = present
    loss, slopes = (helper.create_variable_for_type_inference("float32") for _ in range(2))
    helper.append_op(type="skip_gram", inputs=inputs, outputs={"Loss": loss, "Slopes": slopes},
                     attrs={"shared": bool(shared_negatives), "is_sparse": True})
    return loss


def _check(context, centre, negatives, vocabulary, dim, shared_negatives):
    if vocabulary < 1 or dim < 1:
        raise InvalidValue("skip_gram: vocabulary and dim must be at least 1, got %d and %d" % (vocabulary, dim))
    shapes = [tuple(v.shape) for v in (context, centre, negatives)]
    if any(len(shape) != 2 for shape in shapes) or shapes[1][1] != 1 or shapes[0][1] < 1:
        raise InvalidValue("skip_gram: context must be [n, w], centre [n, 1], negatives [n, k], got %s, %s, %s"
                           % tuple(shapes))
    width, given = shapes[0][1], shapes[2][1]
    drawn = given if shared_negatives else given // width
    if drawn < 1 or (not shared_negatives and given % width):
        raise InvalidValue("skip_gram: the number of negatives must be a multiple of the %d words, got %d"
                           % (width, given))


arguments.explain(globals())
