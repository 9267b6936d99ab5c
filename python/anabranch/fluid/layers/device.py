"""Devices, as programs of an early Fluid ask for them. The names of ``fluid.layers.device``."""
from __future__ import annotations

import warnings

from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper


def get_places(device_count: int | None = None, device_type: str | None = None) -> Variable:
    """A list of devices, which nothing reads: ``CompiledProgram.with_data_parallel`` shares work among replicas.

    Args:
        device_count (int, optional): how many, at least 0. Default 0: as many as there are.
        device_type (str, optional): ``AUTO`` or ``CPU``. Default ``AUTO``.

    Returns:
        Variable: of kind PLACE_LIST, which no fetch takes.

    Raises:
        ValueError: a device_count below 0; another device_type. At run time: ``CUDA``, of which there are none.

    Examples:
        >>> import warnings, anabranch.fluid as fluid
        >>> from anabranch.fluid.layers.device import get_places
        >>> with warnings.catch_warnings():
        ...     warnings.simplefilter("ignore")
        ...     places = get_places(2, "CPU")
        >>> places.op.type
        'get_places'
    """
    warnings.warn("get_places: nothing reads a list of places; CompiledProgram.with_data_parallel shares the work",
                  DeprecationWarning, stacklevel=2)
    helper = LayerHelper("get_places")
    places = helper.create_variable(name=helper.name + ".out_0", type=VarType.PLACE_LIST)
    attrs = {"device_count": int(device_count or 0), "device_type": str(device_type or "AUTO")}
    helper.append_op(type="get_places", outputs={"Out": [places]}, attrs=attrs)
    return places
