"""ComplexVariable: a complex value made of two real Variables."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import arguments
from ..errors import InvalidValue, Unsupported

if TYPE_CHECKING:
    from ..framework import Variable


class ComplexVariable:
    """A pair of Variables, real and imaginary part.

    Args:
        real (Variable), imag (Variable): the two parts, with the same shape and dtype.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> block = fluid.Program().global_block()
        >>> a = block.create_var(name="a", shape=[2], dtype="float32")
        >>> b = block.create_var(name="b", shape=[2], dtype="float32")
        >>> c = fluid.ComplexVariable(a, b)
        >>> c.shape, c.dtype
        ((2,), 'complex64')
    """

    def __init__(self, real: Variable, imag: Variable) -> None:
        if tuple(real.shape) != tuple(imag.shape) or real.dtype != imag.dtype:
            raise InvalidValue("ComplexVariable: real and imag must have the same dtype and shape, got %s %s and %s %s"
                               % (real.dtype, list(real.shape), imag.dtype, list(imag.shape)))
        self.real = real
        self.imag = imag

    @property
    def shape(self) -> tuple[Any, ...]:
        """tuple: shape of either part."""
        return tuple(self.real.shape)

    @property
    def dtype(self) -> str:
        """str: complex64 or complex128."""
        return "complex64" if self.real.dtype == 5 else "complex128"

    @property
    def name(self) -> dict[str, Any]:
        """dict: names of the parts."""
        return {"real": self.real.name, "imag": self.imag.name}

    def numpy(self) -> Any:
        """Raises NotImplementedError in a static program: fetch ``real`` and ``imag``."""
        raise Unsupported("ComplexVariable.numpy is not supported in a static program: fetch real and imag")


arguments.explain(globals())
