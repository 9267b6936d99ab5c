"""Output of commands for people: a row that is redrawn in place, text that fits the terminal, and times in a suitable
unit."""
import os
import textwrap

__all__ = ["Row", "bytes_text", "clock_text", "columns", "counted", "cut", "display_width", "fitted",
           "redraws", "time_text", "wrapped"]

#: Width of reports and help where there is no terminal, and the most that they use in one.
WIDTH = 80


def redraws(stream):
    """bool: whether a row of the stream can be redrawn in place: in a terminal, and in a notebook."""
    return stream.isatty() or type(stream).__module__.startswith("ipykernel.")


def columns(stream):
    """int: current width of the stream's terminal. For any other stream, $COLUMNS, or 80 if it is not set."""
    try:
        found = os.get_terminal_size(stream.fileno()).columns
    except (AttributeError, OSError, ValueError):       # io.UnsupportedOperation is an OSError and a ValueError
        found = 0
    import shutil  # reads compression modules, which an import of the package does not need
    return found or shutil.get_terminal_size((WIDTH, 24)).columns


def _cells(character):
    import unicodedata  # only outputs of commands need it
    if unicodedata.combining(character) or unicodedata.category(character) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def display_width(text):
    """int: columns that a terminal needs for a text.

    >>> display_width("loss"), display_width("損失"), display_width("e\u0301")
    (4, 4, 1)
    """
    return sum(map(_cells, text))


def cut(text, width):
    """str: the longest start of a text that fits into ``width`` columns.

    >>> cut("loss 0.25", 6), cut("損失", 3)
    ('loss 0', '損')
    """
    used = 0
    for at, character in enumerate(text):
        used += _cells(character)
        if used > width:
            return text[:at]
    return text


def fitted(fields, width):
    """Joins the most important fields that fit into ``width`` columns, in the order in which they are given.

    Args:
        fields (list of (int, str)): importance, 0 for the most important, and text.
        width (int): columns.

    Returns:
        str: the fields with two spaces between them; the most important one cut if it is wider than ``width``.

    >>> fitted([(0, "step 1/9"), (3, "reader wait 1 %"), (1, "ETA 0:08")], 20)
    'step 1/9  ETA 0:08'
    """
    shown = [field for field in fields if field[1]]
    while len(shown) > 1 and sum(display_width(text) + 2 for _, text in shown) - 2 > width:
        # Of two fields that matter as much, the later one goes.
        at = max(range(len(shown)), key=lambda k: (shown[k][0], k))
        del shown[at]
    return cut("  ".join(text for _, text in shown), width)


class Row:
    """One row of a terminal or notebook that is redrawn in place. Any other stream gets one line per call.

    Args:
        stream (file): output of the row.
        terminal (bool, optional): whether to redraw in place. Default: whether ``stream`` can.
    """

    def __init__(self, stream, terminal=None):
        self._stream = stream
        self.in_place = redraws(stream) if terminal is None else terminal
        self._used = 0

    @property
    def is_open(self):
        """bool: the cursor is on a row that has been drawn."""
        return self._used > 0

    def draw(self, fields):
        """Shows ``fields`` (see :func:`fitted`). A terminal keeps its last column free, so the row never wraps."""
        if not self.in_place:
            self._stream.write("  ".join(text for _, text in fields if text) + "\n")
        else:
            self._redraw(fitted(fields, columns(self._stream) - 1))
        self._stream.flush()

    def _redraw(self, text):
        used = display_width(text)
        blanks = max(min(self._used, columns(self._stream) - 1) - used, 0)
        self._used = max(used, 1)  # before writing, which flushes: Ctrl-C may arrive as soon as the row is visible
        self._stream.write("\r" + text + " " * blanks)

    def clear(self):
        """Erases the row. The next output is printed over it."""
        if self.is_open:
            self._redraw("")
            self._stream.write("\r")
            self._stream.flush()
        self._used = 0

    def end(self):
        """Leaves the row as it is and moves the cursor to the next one."""
        if self.is_open:
            self._stream.write("\n")
            self._stream.flush()
        self._used = 0


def clock_text(seconds):
    """str: "0:07", "12:34", "1:02:03".

    >>> clock_text(7.2), clock_text(3723)
    ('0:07', '1:02:03')
    """
    seconds = int(seconds + 0.5)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return "%d:%02d:%02d" % (hours, minutes, seconds) if hours else "%d:%02d" % (minutes, seconds)


def _scaled(value, units):
    """Three digits of a value in the largest of ``units`` (factor, name) that it reaches."""
    factor, name = next(unit for unit in units if value >= 0.9995 * unit[0])
    number = value / factor
    return "%.*f %s" % (0 if number >= 99.95 else 1 if number >= 9.995 else 2, number, name)


def time_text(ns):
    """str: a time in the unit that fits: ns, us, ms or s, with three digits.

    >>> time_text(45), time_text(150_000), time_text(7_528_000), time_text(2.5e9), time_text(0)
    ('45 ns', '150 us', '7.53 ms', '2.50 s', '0')
    """
    if ns < 1:
        return "0"
    if ns < 999.5:
        return "%.0f ns" % ns
    return _scaled(ns, ((1e9, "s"), (1e6, "ms"), (1e3, "us")))


def bytes_text(count):
    """str: a number of bytes in the unit that fits: bytes, kB, MB or GB, with three digits.

    >>> bytes_text(60), bytes_text(16_016), bytes_text(2_500_000)
    ('60 bytes', '16.0 kB', '2.50 MB')
    """
    if count < 1000:
        return "%d byte%s" % (count, "" if count == 1 else "s")
    return _scaled(count, ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")))


def wrapped(text, width=WIDTH):
    """str: a text whose lines fit into ``width`` columns: cut at spaces, continued two columns further right. Lines of
    code in docstrings (``>>>``) and lines that fit stay as they are.

    >>> print(wrapped("  passes that run before the graph is lowered", 30))
      passes that run before the
        graph is lowered
    """
    lines = []
    for line in text.split("\n"):
        indent = line[:len(line) - len(line.lstrip())]
        if display_width(line) <= width or line.lstrip().startswith((">>>", "... ")):
            lines.append(line)
        else:
            lines += textwrap.wrap(line, width, subsequent_indent=indent + "  ", break_long_words=False,
                                   break_on_hyphens=False, drop_whitespace=True) or [line]
    return "\n".join(lines)


def counted(number, noun, plural=None):
    """str: a number with its noun. ``plural`` is for nouns that do more than take an s.

    >>> counted(1, "step"), counted(1234, "step"), counted(2, "batch", "batches")
    ('1 step', '1234 steps', '2 batches')
    """
    return "%d %s" % (number, noun if number == 1 else plural or noun + "s")
