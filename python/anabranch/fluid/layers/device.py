"""The devices of a program, for scripts of early releases of Fluid. The names of ``fluid.layers.device``."""
from __future__ import annotations

import warnings

from ..framework import Variable
from ..framework.dtype import VarType
from ..layer_helper import LayerHelper


def get_places(device_count: int | None = None, device_type: str | None = None) -> Variable:
    """Returns a list of devices. No layer reads it: ``CompiledProgram.with_data_parallel`` distributes work over
    replicas.

    Args:
        device_count (int, optional): number of devices, at least 0. Default 0: all devices.
        device_type (str, optional): ``AUTO`` or ``CPU``. Default ``AUTO``.

    Returns:
        Variable: a Variable of type PLACE_LIST, which cannot be fetched.

    Raises:
        ValueError: ``device_count`` is below 0, ``device_type`` is unknown, or at run time it is ``CUDA``.

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
