"""Variables from files, by an operator of the program."""
from __future__ import annotations

from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check

__all__ = ["load"]


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Reads a variable from a file whenever the program runs. The functions of ``fluid.io`` read once.

    Args:
        out (Variable): takes what the file holds.
        file_path (str): the file, as ``fluid.io.save_vars`` or the operator ``save`` writes it.
        load_as_fp16 (bool, optional): float32 numbers become float16. Default False.

    Returns:
        None.

    Raises:
        TypeError: ``out`` is not a Variable. In the run, LookupError: there is no such file; ValueError: it is damaged.

    Examples:
        >>> import numpy, os, tempfile
        >>> import anabranch.fluid as fluid
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "x")
        ...     x = fluid.layers.assign(numpy.array([1, 2], "int32"))
        ...     _ = x.block.append_op(type="save", inputs={"X": [x]}, outputs={}, attrs={"file_path": path})
        ...     y = fluid.layers.create_tensor("int32")
        ...     fluid.layers.load(y, path)
        ...     fluid.Executor().run(fetch_list=[y])[0].tolist()
        [1, 2]
    """
    check.variable(out, "out", "load")
    attrs: dict[str, object] = {"file_path": file_path}
    if load_as_fp16 is not None:
        attrs["load_as_fp16"] = load_as_fp16
    LayerHelper("load").append_op(type="load", inputs={}, outputs={"Out": [out]}, attrs=attrs)
