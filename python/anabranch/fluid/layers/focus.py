"""Masks and random crops of images."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .. import unique_name
from ..errors import InvalidType, InvalidValue
from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check

__all__ = ["random_crop", "similarity_focus"]


def similarity_focus(input: Variable, axis: int, indexes: Sequence[int], name: str | None = None) -> Variable:
    """Computes a mask of the largest elements in some slices of images, such that no two of them share a row or a
    column.

    For each slice in ``indexes`` along ``axis``, elements are chosen, the largest first, until every row or every
    column has one. He and Lin, Pairwise word interaction modeling with deep neural networks, NAACL 2016.

    Args:
        input (Variable): [N, A, B, C], float32 or float64.
        axis (int): axis of the slices: 1, 2 or 3.
        indexes (list of int): slices to use.
        name (str, optional): prefix of the generated names.

    Returns:
        Variable: shape and dtype of ``input``: 1 at the positions of the chosen elements, in every slice, and 0
        elsewhere.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: ``axis`` is invalid, a slice does not exist, or there is no slice.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 2, 2], "float32")
        >>> fluid.layers.similarity_focus(images, axis=1, indexes=[0]).shape
        (-1, 3, 2, 2)
    """
    check.variable(input, "input", "similarity_focus", ("float32", "float64"))
    if not isinstance(axis, int) or not isinstance(indexes, list):
        raise InvalidType("similarity_focus: axis must be an int and indexes a list, got %s and %s"
                          % (type(axis).__name__, type(indexes).__name__))
    if axis not in (1, 2, 3) or not indexes:
        raise InvalidValue("similarity_focus: axis must be 1, 2 or 3 and indexes not empty, got %r and %r"
                           % (axis, indexes))
    helper = LayerHelper("similarity_focus", name=name)
    out = helper.create_variable_for_type_inference(input.dtype)
    helper.append_op(type="similarity_focus", inputs={"X": [input]}, outputs={"Out": [out]},
                     attrs={"axis": axis, "indexes": indexes})
    return out


def random_crop(x: Variable, shape: Sequence[int], seed: int | Variable | None = None) -> Variable:
    """Crops each image to the given shape, at a random position that changes in each step.

    Args:
        x (Variable): [..., image]: the last len(shape) axes belong to the image.
        shape (list of int): extents of the result.
        seed (int|Variable, optional): seed of the positions. Crops with different seeds use different positions. A
            Variable is ignored. Default: the program's seed.

    Returns:
        Variable: [..., shape].

    Raises:
        TypeError: ``x`` is not a Variable, or its dtype has no kernel.
        ValueError: ``shape`` does not match, or ``seed`` has the wrong type.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> images = fluid.data("images", [None, 3, 32, 32], "float32")
        >>> fluid.layers.random_crop(images, shape=[3, 28, 28]).shape
        (-1, 3, 28, 28)
    """
    check.variable(x, "x", "random_crop", ("float32", "float64", "uint8", "int16", "int32", "int64"))
    helper = LayerHelper("random_crop")
    out = helper.create_variable_for_type_inference(x.dtype)
    attrs = {"shape": list(shape), "startup_seed": 0}
    state = seed_state(helper, seed, attrs)
    helper.append_op(type="random_crop", inputs={"X": [x], "Seed": [state]}, outputs={"Out": [out], "SeedOut": [state]},
                     attrs=attrs)
    return out


def seed_state(helper: LayerHelper, seed: int | Variable | None, attrs: dict[str, Any],
               shape: Sequence[int] = ()) -> Variable:
    """Returns the variable that receives a number in each step. An int as ``seed`` becomes an attribute."""
    if isinstance(seed, Variable):
        return seed
    if seed is not None and not isinstance(seed, int):
        raise InvalidValue("%s: seed must be an int or a Variable, got %s" % (helper.layer_type, type(seed).__name__))
    attrs["startup_seed"] = seed or 0
    return helper.create_variable(name=unique_name.generate(helper.layer_type + "_seed"), dtype="int64",
                                  shape=list(shape) or None, persistable=True)


explain(globals())
