"""Layers for retrieval and ranking."""
from __future__ import annotations

from typing import Any

from ... import arguments
from ...errors import InvalidType
from ...explained import preparation
from ...framework import Variable
from ...framework.dtype import convert_np_dtype_to_dtype_
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...layers import check
from ...layers.focus import seed_state
from ...param_attr import ParamAttr

__all__ = ["partial_concat", "partial_sum", "shuffle_batch", "tdm_child"]


def shuffle_batch(x: Variable, seed: int | Variable | None = None) -> Variable:
    """Shuffles the rows of a batch, in a new order in each step. All axes except the last one count rows.

    Args:
        x (Variable): [..., D], any number type.
        seed (int|Variable, optional): seed of the order. Layers with different seeds draw different orders. A Variable
            is ignored. Default: the program's seed.

    Returns:
        Variable: shape and dtype of ``x``. The gradient of each row flows to its original row.

    Raises:
        TypeError: ``x`` is not a Variable.
        ValueError: ``seed`` has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 4], "float32")
        >>> fluid.contrib.layers.shuffle_batch(x).shape
        (-1, 4)
    """
    check.variable(x, "x", "shuffle_batch")
    helper = LayerHelper("shuffle_batch")
    out = helper.create_variable_for_type_inference(x.dtype)
    places = helper.create_variable_for_type_inference("int64")
    attrs: dict[str, Any] = {"startup_seed": 0}
    state = seed_state(helper, seed, attrs, [0])
    helper.append_op(type="shuffle_batch", inputs={"X": [x], "Seed": [state]},
                     outputs={"Out": [out], "ShuffleIdx": [places], "SeedOut": [state]}, attrs=attrs)
    return out


def tdm_child(x: Variable, node_nums: int, child_nums: int, param_attr: Any = None,
              dtype: str = "int32") -> tuple[Variable, Variable]:
    """Returns the children of nodes of a tree of items: one step of a retrieval that descends the tree.

    The tree is a parameter [node_nums, 3 + child_nums] of ``dtype``, which is not trained: the item (0 for an inner
    node), layer, ancestor and children (0 for none) of each node. Node 0 means no node. Set the tree with the
    initializer of ``param_attr``. Zhu and others, Learning tree-based deep model for recommender systems, KDD 2018
    (arXiv:1801.02294).

    Args:
        x (Variable): [...], int32 or int64: nodes.
        node_nums (int): number of rows of the tree.
        child_nums (int): maximum number of children of a node.
        param_attr (ParamAttr, optional): name and initializer of the tree.
        dtype (str): dtype of the results, 'int32' or 'int64'. Default 'int32'.

    Returns:
        tuple of Variable: the children, [..., child_nums], with 0 for a missing child; and a mask of the same shape, 1
        if a child is a leaf and 0 otherwise.

    Raises:
        TypeError: an argument has the wrong type or dtype.

    Examples:
        >>> import numpy
        >>> import anabranch.fluid as fluid
        >>> tree = numpy.array([[0, 0, 0, 0, 0], [0, 0, 0, 2, 3], [7, 1, 1, 0, 0], [8, 1, 1, 0, 0]], "int32")
        >>> x = fluid.data("x", [None, 1], "int32")
        >>> child, leaf = fluid.contrib.layers.tdm_child(
        ...     x, node_nums=4, child_nums=2,
        ...     param_attr=fluid.ParamAttr(initializer=fluid.initializer.NumpyArrayInitializer(tree)))
        >>> executor = fluid.Executor(fluid.CPUPlace())
        >>> _ = executor.run(fluid.default_startup_program())
        >>> executor.run(feed={"x": numpy.array([[1]], "int32")}, fetch_list=[child])[0].tolist()
        [[[2, 3]]]
    """
    check.variable(x, "x", "tdm_child", ("int32", "int64"))
    if dtype not in ("int32", "int64"):
        raise InvalidType("tdm_child: dtype must be 'int32' or 'int64', got %r" % (dtype,))
    helper = LayerHelper("tdm_child", param_attr=param_attr)
    attr = ParamAttr() if helper.param_attr is None else helper.param_attr
    tree = helper.create_parameter(attr=attr, shape=[node_nums, 3 + child_nums], dtype=dtype,
                                   default_initializer=Constant(0))
    tree.stop_gradient = True
    child, leaf = (helper.create_variable_for_type_inference(dtype) for _ in range(2))
    helper.append_op(type="tdm_child", inputs={"X": [x], "TreeInfo": [tree]},
                     outputs={"Child": [child], "LeafMask": [leaf]},
                     attrs={"child_nums": child_nums, "dtype": int(convert_np_dtype_to_dtype_(dtype))})
    return child, leaf


def _partial(op, input, start_index, length):
    inputs = check.variables(input, "input", op, ("float32", "float64", "int32", "int64"))
    helper = LayerHelper(op)
    out = helper.create_variable_for_type_inference(inputs[0].dtype)
    helper.append_op(type=op, inputs={"X": inputs}, outputs={"Out": [out]},
                     attrs={"start_index": start_index, "length": length})
    return out


def partial_concat(input: Any, start_index: int = 0, length: int = -1) -> Variable:
    """Concatenates the same columns of several matrices.

    Args:
        input (Variable|list of Variable): matrices of equal shapes, [N, C].
        start_index (int): first column. Negative numbers count from the end. Default 0.
        length (int): number of columns. -1 means all following columns. Default -1.

    Returns:
        Variable: [N, columns * number of matrices].

    Raises:
        TypeError: an input is not a Variable.
        ValueError: shapes differ, or a column does not exist.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 3], "float32")
        >>> fluid.contrib.layers.partial_concat([x, y], start_index=0, length=2).shape
        (-1, 4)
    """
    return _partial("partial_concat", input, start_index, length)


def partial_sum(input: Any, start_index: int = 0, length: int = -1) -> Variable:
    """Adds the same columns of several matrices.

    Args:
        input (Variable|list of Variable): matrices of equal shapes, [N, C].
        start_index (int): first column. Default 0.
        length (int): number of columns. -1 means all following columns. Default -1.

    Returns:
        Variable: [N, columns].

    Raises:
        TypeError: an input is not a Variable.
        ValueError: shapes differ, or a column does not exist.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, y = fluid.data("x", [None, 3], "float32"), fluid.data("y", [None, 3], "float32")
        >>> fluid.contrib.layers.partial_sum([x, y], start_index=0, length=2).shape
        (-1, 2)
    """
    return _partial("partial_sum", input, start_index, length)


arguments.explain(globals(), preparation)
