"""The common parts of networks: fully connected layers, embeddings, dropout, products, softmax."""
from .. import growable_table
from ..errors import InvalidValue
from ..initializer import Constant
from ..layer_helper import LayerHelper
from . import check
from .check import FLOATS, one_op

__all__ = [
    "fc", "embedding", "dropout", "softmax", "log_softmax", "topk", "prelu", "maxout", "label_smooth", "one_hot",
]


def fc(input, size, num_flatten_dims=1, param_attr=None, bias_attr=None, act=None, name=None):
    """Fully connected layer: out = act(sum over inputs of x_i w_i + b).

    Args:
        input (Variable|list|tuple): [d_0, ..., d_n], n >= 1, float16, float32 or float64. A list has a weight for each
            element, and the products are added.
        size (int): number of outputs, at least 1.
        num_flatten_dims (int): the first so many axes stay, the others are one. -1: all but the last. Default 1.
        param_attr (ParamAttr|list, optional): of the weights, [product of d_i from num_flatten_dims, size].
        bias_attr (ParamAttr|bool, optional): of the bias, [size]; False: no bias.
        act (str, optional): activation of the result, for instance "relu".
        name (str, optional): stem of all names.

    Returns:
        Variable: [d_0, ..., d_(num_flatten_dims - 1), size], dtype of ``input``.

    Raises:
        TypeError: ``input`` holds something else than Variables, or has another dtype.
        ValueError: fewer than two axes; an unknown extent among the flattened ones; unknown ``act``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 28, 28], "float32")
        >>> fluid.layers.fc(x, size=10, act="softmax").shape
        (-1, 10)
        >>> fluid.layers.fc(x, size=10, num_flatten_dims=2).shape
        (-1, 28, 10)
    """
    inputs = check.variables(input, "input", "fc")
    helper = LayerHelper("fc", input=inputs, param_attr=param_attr, bias_attr=bias_attr, act=act, name=name)
    dtype = helper.input_dtype()
    check.of_dtype(dtype, "input", "fc", FLOATS)
    products = []
    for x, attr in helper.iter_inputs_and_params():
        kept = len(x.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
        rows = 1
        for extent in x.shape[kept:]:
            rows *= extent
        weight = helper.create_parameter(attr=attr, shape=[rows, size], dtype=dtype, is_bias=False)
        product = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="mul", inputs={"X": x, "Y": weight}, outputs={"Out": product},
                         attrs={"x_num_col_dims": kept, "y_num_col_dims": 1})
        products.append(product)
    total = products[0]
    if len(products) > 1:
        total = helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="sum", inputs={"X": products}, outputs={"Out": total}, attrs={"use_mkldnn": False})
    kept = len(total.shape) - 1 if num_flatten_dims == -1 else num_flatten_dims
    return helper.append_activation(helper.append_bias_op(total, dim_start=kept))


def lookup(op, layer, input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype):
    """The common part of ``layers.embedding`` and ``fluid.embedding``."""
    check.variable(input, "input", layer, ("int64",))
    helper = LayerHelper("embedding", param_attr=param_attr)
    if isinstance(helper.param_attr, growable_table.GrowableTable):
        return growable_table.lookup(helper, layer, op, input, size, is_sparse, padding_idx, dtype)
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise InvalidValue("%s: size is [rows, width], got %r" % (layer, size))
    if padding_idx is None:
        padding_idx = -1
    elif not -size[0] <= padding_idx < size[0]:
        raise InvalidValue("%s: padding_idx is in [-%d, %d), got %d" % (layer, size[0], size[0], padding_idx))
    elif padding_idx < 0:
        padding_idx += size[0]
    weight = helper.create_parameter(attr=helper.param_attr, shape=list(size), dtype=dtype, is_bias=False)
    out = helper.create_variable_for_type_inference(dtype)
    helper.append_op(type=op, inputs={"Ids": input, "W": weight}, outputs={"Out": out},
                     attrs={"is_sparse": is_sparse, "is_distributed": is_distributed,
                            "remote_prefetch": bool(is_sparse and not is_distributed),
                            "padding_idx": padding_idx})
    return out


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """The rows of a table that ids name; the older form, where the last axis of the ids has extent 1.

    Args:
        input (Variable): [..., 1], int64 ids in [0, size[0]).
        size (list|tuple): [rows, width] of the table.
        is_sparse (bool): the gradient holds only the rows that occur. Default False.
        is_distributed (bool): the table is kept on parameter servers. Default False.
        padding_idx (int, optional): this id gives zeros and its row is not trained; negative: counted from the end.
        param_attr (ParamAttr, optional): of the table; a ``fluid.GrowableTable`` makes one without a height: then ids
            are any 64-bit numbers, and size is [-1, width].
        dtype (str): of the table. Default "float32".

    Returns:
        Variable: [..., width].

    Raises:
        TypeError: ``input`` is no Variable of int64.
        ValueError: ``padding_idx`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.embedding(ids, size=[100, 16], is_sparse=True).shape
        (-1, 16)
    """
    return lookup("lookup_table", "layers.embedding", input, size, is_sparse, is_distributed, padding_idx, param_attr,
                  dtype)


def one_hot(input, depth, allow_out_of_range=False):
    """Vectors with a single 1 at the place that an id names; the older form, where the last axis has extent 1.

    Args:
        input (Variable): [..., 1], int32 or int64 ids.
        depth (int|Variable): length of the vectors.
        allow_out_of_range (bool): an id outside of [0, depth) gives zeros instead of an error. Default False.

    Returns:
        Variable: [..., depth], float32, without gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.one_hot(fluid.data("ids", [None, 1], "int64"), depth=4).shape
        (-1, 4)
    """
    check.variable(input, "input", "one_hot", check.INTS)
    out = append_one_hot("one_hot", input, depth, allow_out_of_range)
    out.stop_gradient = True
    return out


def append_one_hot(op, input, depth, allow_out_of_range):
    """The common part of ``layers.one_hot`` and ``fluid.one_hot``."""
    helper = LayerHelper(op)
    out = helper.create_variable_for_type_inference("float32")
    inputs, attrs = {"X": input}, {"allow_out_of_range": allow_out_of_range}
    if isinstance(depth, int):
        attrs["depth"] = depth
    else:
        check.variable(depth, "depth", op)
        depth.stop_gradient = True
        inputs["depth_tensor"] = depth
    helper.append_op(type=op, inputs=inputs, attrs=attrs, outputs={"Out": out})
    return out


def dropout(x, dropout_prob, is_test=False, seed=None, name=None, dropout_implementation="downgrade_in_infer"):
    """Sets each element to 0 with a probability, in training.

    Srivastava and others, Dropout: a simple way to prevent neural networks from overfitting, JMLR 15 (2014).

    Args:
        x (Variable): [...], float16, float32 or float64.
        dropout_prob (float): p, in [0, 1].
        is_test (bool): behave as in inference. Default False; a test clone of the program sets it.
        seed (int, optional): a fixed seed gives the same masks in every process, a new one in each step.
        name (str, optional): stem of the names.
        dropout_implementation (str): "downgrade_in_infer": training x * mask, inference x * (1 - p);
            "upscale_in_train": training x * mask / (1 - p), inference x. Default the first.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is no Variable of a float dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.dropout(fluid.data("x", [None, 4], "float32"), dropout_prob=0.5).shape
        (-1, 4)
    """
    check.variable(x, "x", "dropout", FLOATS)
    helper = LayerHelper("dropout", name=name)
    out = helper.create_variable_for_type_inference(x.dtype)
    mask = helper.create_variable_for_type_inference("uint8", stop_gradient=True)
    if (seed is None or seed == 0) and helper.main_program.random_seed != 0:
        seed = helper.main_program.random_seed
    helper.append_op(type="dropout", inputs={"X": [x]}, outputs={"Out": [out], "Mask": [mask]},
                     attrs={"dropout_prob": dropout_prob, "is_test": is_test, "fix_seed": seed is not None,
                            "seed": seed if seed is not None else 0,
                            "dropout_implementation": dropout_implementation})
    return out


def softmax(input, use_cudnn=False, name=None, axis=-1):
    """out = exp(x) / sum of exp(x) along an axis.

    Args:
        input (Variable): [...], float16, float32 or float64.
        use_cudnn (bool): no effect on the CPU. Default False.
        name (str, optional): stem of the result's name.
        axis (int): Default -1.

    Returns:
        Variable: shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is no Variable of a float dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.softmax(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(input, "input", "softmax", FLOATS)
    return one_op("softmax", {"X": input}, {"axis": axis, "use_cudnn": use_cudnn}, name=name)


def log_softmax(input, axis=None, dtype=None, name=None):
    """out = log(softmax(x)) along an axis.

    Args:
        input (Variable): [...], float16, float32 or float64.
        axis (int, optional): -1 by default.
        dtype (str, optional): the input is cast to it first.
        name (str, optional): stem of the names.

    Returns:
        Variable: shape of ``input``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.log_softmax(fluid.data("x", [None, 4], "float32")).shape
        (-1, 4)
    """
    check.variable(input, "input", "log_softmax", FLOATS)
    helper = LayerHelper("log_softmax", name=name)
    if dtype is not None:
        source, input = input, helper.create_variable_for_type_inference(dtype)
        helper.append_op(type="cast", inputs={"X": source}, outputs={"Out": input},
                         attrs={"in_dtype": source.dtype, "out_dtype": input.dtype})
    probability = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="softmax", inputs={"X": input}, outputs={"Out": probability},
                     attrs={"axis": -1 if axis is None else axis, "use_cudnn": False})
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="log", inputs={"X": probability}, outputs={"Out": out})
    return out


def topk(input, k, name=None):
    """The largest values along the last axis, in falling order, and where they are.

    Args:
        input (Variable): [..., D], float32, float64, int32 or int64.
        k (int|Variable): how many, in [1, D].
        name (str, optional): stem of the names.

    Returns:
        tuple: values [..., k], dtype of ``input``; places [..., k], int64. Neither has a gradient.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> values, places = fluid.layers.topk(fluid.data("x", [None, 4], "float32"), k=2)
        >>> values.shape, places.shape
        ((-1, 2), (-1, 2))
    """
    check.variable(input, "input", "topk")
    inputs, attrs = {"X": [input]}, {}
    if isinstance(k, check.Variable):
        inputs["K"] = [k]
    else:
        attrs["k"] = k
    helper = LayerHelper("top_k", name=name)
    values = helper.create_variable_for_type_inference(input.dtype)
    places = helper.create_variable_for_type_inference("int64")
    helper.append_op(type="top_k", inputs=inputs, outputs={"Out": [values], "Indices": [places]}, attrs=attrs)
    values.stop_gradient = True
    places.stop_gradient = True
    return values, places


def prelu(x, mode, param_attr=None, name=None):
    """out = max(0, x) + alpha * min(0, x), alpha a parameter.

    He, Zhang, Ren and Sun, Delving deep into rectifiers, ICCV 2015.

    Args:
        x (Variable): [N, C, ...], float32 or float64.
        mode (str): "all": one alpha; "channel": one a channel; "element": one an element of [C, ...].
        param_attr (ParamAttr, optional): of alpha, which starts at 0.25.
        name (str, optional): stem of the names.

    Returns:
        Variable: shape and dtype of ``x``.

    Raises:
        ValueError: another mode.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.prelu(fluid.data("x", [None, 3, 8, 8], "float32"), mode="channel").shape
        (-1, 3, 8, 8)
    """
    check.variable(x, "x", "prelu")
    helper = LayerHelper("prelu", param_attr=param_attr, name=name)
    check.one_of(mode, "mode", "prelu", ("all", "channel", "element"))
    shape = {"all": [1], "channel": [1, x.shape[1], 1, 1], "element": [1] + list(x.shape[1:])}[mode]
    alpha = helper.create_parameter(attr=helper.param_attr, shape=shape, dtype="float32", is_bias=False,
                                    default_initializer=Constant(0.25))
    out = helper.create_variable_for_type_inference(x.dtype)
    helper.append_op(type="prelu", inputs={"X": x, "Alpha": alpha}, attrs={"mode": mode}, outputs={"Out": out})
    return out


def maxout(x, groups, name=None, axis=1):
    """The maximum over ``groups`` neighbouring channels.

    Goodfellow and others, Maxout networks, ICML 2013.

    Args:
        x (Variable): [N, C, H, W], or [N, H, W, C] with axis -1 or 3; float32 or float64.
        groups (int): a divisor of C.
        name (str, optional): stem of the result's name.
        axis (int): of the channels: 1, -1 or 3. Default 1.

    Returns:
        Variable: as ``x``, with C / groups channels.

    Raises:
        ValueError: another axis.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> fluid.layers.maxout(fluid.data("x", [None, 6, 8, 8], "float32"), groups=2).shape
        (-1, 3, 8, 8)
    """
    check.variable(x, "x", "maxout", check.WIDE_FLOATS)
    check.one_of(axis, "axis", "maxout", (1, -1, 3))
    return one_op("maxout", {"X": x}, {"groups": groups, "axis": 3 if axis == -1 else axis}, name=name)


def label_smooth(label, prior_dist=None, epsilon=0.1, dtype="float32", name=None):
    """out = (1 - epsilon) * label + epsilon * prior, the prior 1 / number of classes by default.

    Szegedy and others, Rethinking the inception architecture for computer vision, CVPR 2016.

    Args:
        label (Variable): [N, classes], one-hot or probabilities, float32 or float64.
        prior_dist (Variable, optional): [1, classes].
        epsilon (float): in [0, 1]. Default 0.1.
        dtype (str): of the result. Default "float32".
        name (str, optional): stem of the result's name.

    Returns:
        Variable: shape of ``label``.

    Raises:
        ValueError: ``epsilon`` is out of range.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> ids = fluid.data("ids", [None, 1], "int64")
        >>> fluid.layers.label_smooth(fluid.layers.one_hot(ids, 4), epsilon=0.1).shape
        (-1, 4)
    """
    if epsilon > 1.0 or epsilon < 0.0:
        raise InvalidValue("label_smooth: epsilon is in [0, 1], got %s" % epsilon)
    check.variable(label, "label", "label_smooth")
    helper = LayerHelper("label_smooth", name=name)
    label.stop_gradient = True
    out = helper.create_variable_for_type_inference(dtype)
    inputs = {"X": label}
    if prior_dist is not None:
        inputs["PriorDist"] = prior_dist
    helper.append_op(type="label_smooth", inputs=inputs, outputs={"Out": out}, attrs={"epsilon": float(epsilon)})
    return out
