"""scikit-build-core for pip, which shows nothing of what a build prints: here the terminal says how far it is.

What the build prints goes on to pip; the lines in which ninja counts, "[12/624] ...", also move a line on the terminal
of the user, where there is one.
"""
import contextlib
import os
import re
import sys
import threading

from scikit_build_core.build import *  # noqa: F403  (all other hooks)
from scikit_build_core.build import build_editable as _build_editable
from scikit_build_core.build import build_wheel as _build_wheel

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
from build_progress import Line  # noqa: E402

COUNTS = re.compile(rb"\[(\d+)/(\d+)\]")


def _terminal():
    """The user's terminal; None where there is none, as in continuous integration."""
    try:
        return open("/dev/tty", "w")
    except OSError:
        return None


def pass_on(source, target, line):
    """Copies lines of a file to a descriptor, and counts."""
    for text in source:
        counted = COUNTS.match(text)
        if counted:
            line.update(int(counted.group(1)), int(counted.group(2)))
        while text:
            text = text[os.write(target, text):]
    line.clear()


@contextlib.contextmanager
def progress(terminal):
    """While this is open, what this process and its children print is read for counts."""
    if terminal is None:
        yield
        return
    sys.stdout.flush()
    kept, (out, into) = os.dup(1), os.pipe()
    os.dup2(into, 1)
    os.close(into)
    with terminal, open(out, "rb") as source:
        reader = threading.Thread(target=pass_on, args=(source, kept, Line("building anabranch", terminal, True)))
        reader.start()
        try:
            yield
        finally:
            sys.stdout.flush()
            os.dup2(kept, 1)                            # ends the pipe, and so the reader
            reader.join()
            os.close(kept)


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """str: the name of the wheel, as the hook of PEP 517 has it."""
    with progress(_terminal()):
        return _build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """str: the name of the wheel, as the hook of PEP 660 has it."""
    with progress(_terminal()):
        return _build_editable(wheel_directory, config_settings, metadata_directory)
