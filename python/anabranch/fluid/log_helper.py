"""Loggers with their own line format."""
from __future__ import annotations

import logging

__all__ = ["get_logger"]


def get_logger(name: str, level: int | str, fmt: str | None = None) -> logging.Logger:
    """A logger that writes to stderr itself, independent of its parent loggers.

    Args:
        name (str): name of the logger.
        level (int|str): lowest level that is written, such as ``logging.INFO``.
        fmt (str, optional): format of a line, as for ``logging.Formatter``. Default: the message only.

    Returns:
        logging.Logger: the same one for the same name, with one handler.

    Raises:
        ValueError: an unknown level.

    Examples:
        >>> import logging
        >>> from anabranch.fluid.log_helper import get_logger
        >>> get_logger("mine", logging.INFO, fmt="%(levelname)s %(message)s").name
        'mine'
    """
    logger = logging.getLogger(name)
    logger.setLevel(level)
    handler = logging.StreamHandler()
    if fmt:
        handler.setFormatter(logging.Formatter(fmt=fmt))
    for old in [h for h in logger.handlers if type(h) is logging.StreamHandler]:
        logger.removeHandler(old)
    logger.addHandler(handler)
    logger.propagate = False
    return logger
