"""The names of ``fluid.layer_helper_base``."""
from __future__ import annotations

from .layer_helper import LayerHelper

__all__ = ["LayerHelperBase"]


class LayerHelperBase(LayerHelper):
    """A LayerHelper whose first argument is its name.

    Args:
        name (str): name of the layer.
        layer_type (str): type of the layer.

    Examples:
        >>> from anabranch.fluid.layer_helper_base import LayerHelperBase
        >>> LayerHelperBase("mine", "fc").name
        'mine'
    """

    def __init__(self, name: str, layer_type: str) -> None:
        super().__init__(layer_type, name=name)
