"""An operator that loads variables from files."""
from __future__ import annotations

from ..explained import explain
from ..framework import Variable
from ..layer_helper import LayerHelper
from . import check

__all__ = ["load"]


def load(out: Variable, file_path: str, load_as_fp16: bool | None = None) -> None:
    """Reads a variable from a file in each run of the program. The functions of ``fluid.io`` read it once.

    Args:
        out (Variable): receives the contents of the file.
        file_path (str): file of ``fluid.io.save_vars`` or of the operator ``save``.
        load_as_fp16 (bool, optional): converts float32 numbers to float16. Default False.

    Returns:
        None.

    Raises:
        TypeError: ``out`` is not a Variable.
        LookupError: at run time, the file does not exist.
        ValueError: at run time, the file is damaged.

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


explain(globals())
