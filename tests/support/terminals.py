"""Runs programs in a pseudo terminal of a given size, and shows what a person would see there."""
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
import unicodedata

from repository import PYTHON


class Screen:
    """A terminal that knows carriage returns and newlines, and wraps at its width.

    Attributes:
        rows (list of str): all that was shown, the rows that have scrolled away included.
        wraps (int): how often a line was too long for its row.
    """

    def __init__(self, columns):
        self._columns, self._at = columns, 0
        self.rows, self.wraps = [[]], 0

    def feed(self, text):
        for character in text:
            if character == "\r":
                self._at = 0
            elif character == "\n":
                self.rows.append([])
            elif not unicodedata.combining(character):
                self._put(character, 2 if unicodedata.east_asian_width(character) in "WF" else 1)

    def _put(self, character, cells):
        if self._at + cells > self._columns:
            self.wraps += 1
            self.rows.append([])
            self._at = 0
        row = self.rows[-1]
        row += [" "] * (self._at + cells - len(row))
        row[self._at:self._at + cells] = [character] + [""] * (cells - 1)
        self._at += cells

    def lines(self):
        return ["".join(row).rstrip() for row in self.rows]


def resize(terminal, columns, rows):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def run(arguments, columns=80, rows=24, timeout=120, environment=None, seen=None, cwd=None):
    """Runs Python with arguments in a terminal.

    Args:
        seen (callable, optional): called with (process, terminal, text so far) each time the program has printed.

    Returns:
        (str, int): what it printed, newlines as the program wrote them, and its exit code.
    """
    terminal, inside = pty.openpty()
    resize(terminal, columns, rows)
    given = dict(os.environ, PYTHONPATH=PYTHON, TERM="xterm", **(environment or {}))
    for name in ("COLUMNS", "LINES", "PADDLE_TRAINER_ID"):
        given.pop(name, None)
    process = subprocess.Popen([sys.executable, *arguments], stdin=inside, stdout=inside, stderr=inside, env=given,
                               cwd=cwd, start_new_session=True)
    os.close(inside)
    data, end = b"", time.monotonic() + timeout
    try:
        while time.monotonic() < end:
            if not select.select([terminal], [], [], 0.5)[0]:
                continue
            try:
                part = os.read(terminal, 65536)
            except OSError:             # EIO: the program has ended
                break
            if not part:
                break
            data += part
            if seen is not None:
                seen(process, terminal, data.decode("utf-8", "ignore"))
        code = process.wait(timeout=10)
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    return data.decode("utf-8", "replace").replace("\r\n", "\n"), code


def screen(text, columns=80):
    """Screen: after a text whose newlines return the carriage, as a terminal adds it."""
    made = Screen(columns)
    made.feed(text.replace("\n", "\r\n"))
    return made
