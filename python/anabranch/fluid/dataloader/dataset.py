"""The base class of map-style data sets."""
from __future__ import annotations

from typing import Any

__all__ = ["Dataset"]


class Dataset:
    """A data set whose samples have an index. A subclass defines ``__getitem__`` and ``__len__``.

    Examples:
        >>> import anabranch.fluid as fluid
        >>> class Squares(fluid.io.Dataset):
        ...     def __getitem__(self, index):
        ...         return index * index
        ...     def __len__(self):
        ...         return 4
        >>> list(Squares()[i] for i in range(4))
        [0, 1, 4, 9]
    """

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("%s must define __getitem__" % type(self).__name__)

    def __len__(self) -> int:
        raise NotImplementedError("%s must define __len__" % type(self).__name__)
