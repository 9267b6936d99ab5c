"""Layers for search and ranking: trees of items, pages of items and short word sequences; and operators that combine
two others."""
from __future__ import annotations

from typing import Any, Sequence

from ... import arguments
from ...errors import InvalidType, InvalidValue
from ...explained import preparation
from ...framework import Variable
from ...framework.dtype import convert_np_dtype_to_dtype_
from ...initializer import Constant
from ...layer_helper import LayerHelper
from ...layers import check
from ...layers.shapes import reshape
from ...layers.slices import slice as _slice
from ...param_attr import ParamAttr

__all__ = ["tdm_sampler", "rank_attention", "search_pyramid_hash"]


def _tree(helper, attr, shape, dtype):
    return helper.create_parameter(attr=ParamAttr._to_attr(attr), shape=shape, dtype=dtype,
                                   default_initializer=Constant(0))


def _check_layers(negatives, nodes):
    if len(negatives) != len(nodes):
        raise InvalidValue("tdm_sampler: neg_samples_num_list and layer_node_num_list must have the same length, "
                           "got %d and %d" % (len(negatives), len(nodes)))
    for layer, (drawn, have) in enumerate(zip(negatives, nodes)):
        if drawn >= have:
            raise InvalidValue("tdm_sampler: neg_samples_num_list[%d] must be below %d, the number of nodes of the "
                               "layer, got %d" % (layer, have, drawn))


def tdm_sampler(x: Variable, neg_samples_num_list: Sequence[int], layer_node_num_list: Sequence[int],
                leaf_node_num: int, tree_travel_attr: Any = None, tree_layer_attr: Any = None,
                output_positive: bool = True, output_list: bool = True, seed: int = 0, tree_dtype: str = "int32",
                dtype: str = "int32") -> tuple[Any, Any, Any]:
    """Samples nodes from each layer of a tree of items. Takes the node on the path to an item, and draws other nodes
    with equal probability.

    The tree consists of two parameters of ``tree_dtype`` that are not trained: [leaf_node_num, layers], the nodes on
    the path to each item, with 0 after its end; and [nodes, 1], the nodes layer by layer. Set them with their
    initializers. Zhu and others, Learning tree-based deep model for recommender systems, KDD 2018 (arXiv:1801.02294).

    Args:
        x (Variable): [N, 1], int32 or int64: items.
        neg_samples_num_list (list): number of other nodes to draw from each layer.
        layer_node_num_list (list): number of nodes of each layer.
        leaf_node_num (int): number of items.
        tree_travel_attr (ParamAttr, optional): name and initializer of the paths.
        tree_layer_attr (ParamAttr, optional): name and initializer of the nodes.
        output_positive (bool): includes the node on the path, first in its layer. Default True.
        output_list (bool): returns one Variable for each layer; otherwise one for all layers. Default True.
        seed (int): seed of the random numbers. 0 means the program's ``random_seed``. Default 0.
        tree_dtype (str): dtype of the tree, 'int32' or 'int64'. Default 'int32'.
        dtype (str): dtype of the results, 'int32' or 'int64'. Default 'int32'.

    Returns:
        tuple: nodes, labels (1 for the node on the path) and masks (0 if there is no node). Each is a list of [N,
        samples of the layer, 1], or [N, samples of all layers].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        ValueError: the lists have different lengths, or there are more samples than nodes.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x = fluid.data("x", [None, 1], "int32")
        >>> nodes, labels, masks = fluid.contrib.layers.tdm_sampler(x, [1, 2], [2, 4], 4, output_list=False)
        >>> nodes.shape
        (-1, 5)
    """
    check.variable(x, "x", "tdm_sampler", ("int32", "int64"))
    for name, value in (("tree_dtype", tree_dtype), ("dtype", dtype)):
        if value not in ("int32", "int64"):
            raise InvalidType("tdm_sampler: %s must be 'int32' or 'int64', got %r" % (name, value))
    negatives, nodes = list(neg_samples_num_list), list(layer_node_num_list)
    _check_layers(negatives, nodes)
    ends = [0]
    for have in nodes:
        ends.append(ends[-1] + have)
    helper = LayerHelper("tdm_sampler")
    travel = _tree(helper, tree_travel_attr, [leaf_node_num, len(nodes)], tree_dtype)
    layer = _tree(helper, tree_layer_attr, [ends[-1], 1], tree_dtype)
    outs: tuple[Any, Any, Any] = (
        helper.create_variable_for_type_inference(dtype), helper.create_variable_for_type_inference(dtype),
        helper.create_variable_for_type_inference(dtype))
    helper.append_op(type="tdm_sampler", inputs={"X": x, "Travel": travel, "Layer": layer},
                     outputs=dict(zip(("Out", "Labels", "Mask"), outs)),
                     attrs={"neg_samples_num_list": negatives, "output_positive": output_positive,
                            "layer_offset_lod": ends, "seed": seed, "dtype": int(convert_np_dtype_to_dtype_(dtype))})
    for out in outs:
        out.stop_gradient = True
    return _by_layer(outs, [n + bool(output_positive) for n in negatives]) if output_list else outs


def _by_layer(outs, widths):
    lists: tuple[list[Variable], ...] = ([], [], [])
    begin = 0
    for width in widths:
        parts = [_slice(out, axes=[1], starts=[begin], ends=[begin + width]) for out in outs]
        for made, part in zip(lists, parts):
            made.append(reshape(part, [-1, width, 1]))
            made[-1].stop_gradient = True
        begin += width
    return lists


def rank_attention(input: Variable, rank_offset: Variable, rank_param_shape: Sequence[int], rank_param_attr: Any,
                   max_rank: int = 3) -> Variable:
    """Attention between the items of a page, with a matrix for each pair of positions on the page.

    out[i] = sum over the items j of the page of input[j] M[position of i, position of j]. The parameter contains all
    matrices, one below the other.

    Args:
        input (Variable): [items, columns], float32 or float64. It gets no gradient, as in Fluid.
        rank_offset (Variable): [items, 1 + 2 * max_rank], int32: the position of the item, from 1 on; then position and
            row of each item of its page. Position 0 means no item.
        rank_param_shape (list): shape of the parameter: [max_rank * max_rank * columns, width of the result].
        rank_param_attr (ParamAttr): attributes of the parameter.
        max_rank (int): number of positions on a page. Default 3.

    Returns:
        Variable: [items, width of the result].

    Raises:
        TypeError: an argument has the wrong type or dtype.
        EnforceNotMet: shapes do not match.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> x, page = fluid.data("x", [None, 2], "float32"), fluid.data("page", [None, 7], "int32")
        >>> fluid.contrib.layers.rank_attention(x, page, [18, 3], fluid.ParamAttr(name="rank"), 3).shape
        (-1, 3)
    """
    check.operand(input, "input", "rank_attention")
    check.variable(rank_offset, "rank_offset", "rank_attention", ("int32",))
    helper = LayerHelper("rank_attention")
    param = helper.create_parameter(attr=ParamAttr._to_attr(rank_param_attr), shape=list(rank_param_shape),
                                    dtype=input.dtype)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="rank_attention", inputs={"X": input, "RankOffset": rank_offset, "RankParam": param},
                     outputs={"Out": out}, attrs={"MaxRank": max_rank})
    return out


def search_pyramid_hash(input: Variable, num_emb: int, space_len: int, pyramid_layer: int, rand_len: int,
                        drop_out_percent: float, is_training: bool, use_filter: bool, white_list_len: int,
                        black_list_len: int, seed: int, lr: float, param_attr: Any = None, param_attr_wl: Any = None,
                        param_attr_bl: Any = None, name: str | None = None, distribute_update_vars: Any = None,
                        dtype: str = "float32") -> Variable:
    """Computes embeddings of all sequences of 2 to ``pyramid_layer`` adjacent words, by hashing into one vector.

    Part k of an embedding starts in the parameter at XXH32(words, seed k rand_len) modulo ``space_len``.

    Args:
        input (Variable): [words, 1], int32, with a sequence for each text.
        num_emb (int): width of an embedding.
        space_len (int): upper bound of the hashes.
        pyramid_layer (int): maximum number of words of a sequence, at least 2.
        rand_len (int): number of elements per hash, a divisor of ``num_emb``.
        drop_out_percent (float): share of the sequences that are dropped in training. In inference, a factor of the
            result.
        is_training (bool): the program trains.
        use_filter (bool): filters by word lists. These are not supported, so both lengths must be 0.
        white_list_len (int): length of the allow list.
        black_list_len (int): length of the deny list.
        seed (int): seed of the dropout. 0 means the seed of the program.
        lr (float): not used, because the optimizer trains the parameter.
        param_attr (ParamAttr, optional): attributes of the vector, [space_len + rand_len, 1].
        param_attr_wl (ParamAttr, optional): not used.
        param_attr_bl (ParamAttr, optional): not used.
        name (str, optional): prefix of the generated names.
        distribute_update_vars (list, optional): not used.
        dtype (str): 'float32'.

    Returns:
        Variable: [sequences, num_emb], with a sequence for each text. A text without sequences has one row of zeros.

    Raises:
        TypeError: an argument has the wrong type or dtype.
        NotImplementedError: a word list is given.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> words = fluid.data("words", [None, 1], "int32", lod_level=1)
        >>> fluid.contrib.layers.search_pyramid_hash(words, 8, 100, 3, 4, 0.0, True, False, 0, 0, 1, 1.0).shape
        (-1, 8)
    """
    check.variable(input, "input", "search_pyramid_hash", ("int32",))
    helper = LayerHelper("search_pyramid_hash", name=name)
    table = helper.create_parameter(attr=ParamAttr._to_attr(param_attr), shape=[space_len + rand_len, 1], dtype=dtype)
    out, places, words = (helper.create_variable_for_type_inference(dtype) for _ in range(3))
    helper.append_op(type="pyramid_hash", inputs={"X": input, "W": table},
                     outputs={"Out": out, "DropPos": places, "X_Temp_Out": words},
                     attrs={"num_emb": num_emb, "space_len": space_len, "pyramid_layer": pyramid_layer,
                            "rand_len": rand_len, "drop_out_percent": drop_out_percent,
                            "is_training": int(is_training), "use_filter": use_filter,
                            "white_list_len": white_list_len, "black_list_len": black_list_len, "seed": seed, "lr": lr,
                            "distribute_update_vars": ""})
    return out


arguments.explain(globals(), preparation)
