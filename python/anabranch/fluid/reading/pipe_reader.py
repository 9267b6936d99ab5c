"""Reader of the output of a command."""
from __future__ import annotations

import subprocess
import zlib
from collections.abc import Iterator
from typing import Any

from .. import arguments
from ..errors import InvalidType, NotAllowed

__all__ = ["PipeReader"]

_TAIL = 400  # characters of stderr in messages


class PipeReader:
    """Runs a command in a shell and yields the lines that it prints.

    Args:
        command (str): a shell command.
        bufsize (int): number of bytes read at a time. Default 8192.
        file_type (str): "plain", or "gzip" if the command prints gzip data.

    Raises:
        TypeError: the command is not a str, or ``file_type`` is unknown.

    Examples:
        >>> list(PipeReader("printf 'a\\nb\\n'").get_line())
        ['a', 'b']
    """

    def __init__(self, command: str, bufsize: int = 8192, file_type: str = "plain") -> None:
        if not isinstance(command, str):
            raise InvalidType("PipeReader: command must be a str, got %s" % type(command).__name__)
        if file_type not in ("plain", "gzip"):
            raise InvalidType("PipeReader: file_type must be 'plain' or 'gzip', got %r" % (file_type,))
        self.file_type, self.bufsize, self.command = file_type, bufsize, command
        self._unpack = zlib.decompressobj(32 + zlib.MAX_WBITS) if file_type == "gzip" else None
        self.process = subprocess.Popen(["/bin/sh", "-c", command], bufsize=bufsize, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE)

    def get_line(self, cut_lines: Any = True, line_break: Any = "\n") -> Iterator[Any]:
        """Yields the lines without ``line_break``. With ``cut_lines=False``, yields chunks of text as they arrive.

        Raises:
            RuntimeError: the command failed. The message contains its exit status and the end of its stderr.
        """
        try:
            rest = ""
            assert self.process.stdout is not None
            while True:
                data = self.process.stdout.read(self.bufsize)
                if not data:
                    break
                text = (self._unpack.decompress(data) if self._unpack else data).decode("utf-8", "replace")
                if not cut_lines:
                    yield text
                    continue
                lines = (rest + text).split(line_break)
                rest = lines.pop()
                yield from lines
            if rest:
                yield rest
            self._check()
        finally:
            self.close()

    def _check(self):
        _, errors = self.process.communicate()
        if self.process.returncode != 0:
            raise NotAllowed("PipeReader: %r ended with status %d: %s"
                             % (self.command, self.process.returncode,
                                errors.decode("utf-8", "replace")[-_TAIL:].strip()))

    def close(self) -> None:
        """Kills the command if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()


arguments.explain(globals())
