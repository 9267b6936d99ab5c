#!/usr/bin/env python3
"""Runs ninja and says how far it is: `build_progress.py NAME NINJA ARGS...`.

In a terminal one line is rewritten, elsewhere a line is printed every half minute; both go to standard error, or to the
descriptor that DEV_TERMINAL names, so that a log of the output does not hold them. What the commands of the build print
is passed on as it is. The exit status is ninja's.
"""
import os
import shutil
import subprocess
import sys
import time

MARK = "@@"                                   # of the lines that count files: finished, all, what
EVERY_S = dict(terminal=0.1, plain=30.0)


def clock(seconds):
    """ "0:07", "12:34"."""
    minutes, seconds = divmod(int(seconds + 0.5), 60)
    return "%d:%02d" % (minutes, seconds)


class Line:
    """The line about files finished, on a terminal or not."""

    def __init__(self, name, stream, terminal, now=time.monotonic):
        self.name, self.stream, self.terminal, self.now = name, stream, terminal, now
        self.begin = self.shown = now()
        self.every_s = EVERY_S["terminal" if terminal else "plain"]
        self.drawn = False

    def text(self, finished, total):
        spent = self.now() - self.begin
        text = "%s: file %d of %d" % (self.name, finished, total)
        if finished >= 3 and spent >= 1 and finished < total:
            text += ", about %s left" % clock(spent / finished * (total - finished))
        return text

    def update(self, finished, total):
        if self.now() - self.shown < self.every_s:
            return
        self.shown = self.now()
        text = self.text(finished, total)
        if self.terminal:
            self.stream.write("\r\033[K" + text[:shutil.get_terminal_size().columns - 1])
            self.drawn = True
        else:
            self.stream.write(text + "\n")
        self.stream.flush()

    def clear(self):
        """Takes the line away, so that something else can be printed there."""
        if self.drawn:
            self.stream.write("\r\033[K")
            self.stream.flush()
            self.drawn = False


def progress_stream():
    """A program between ./dev and this one may have closed the descriptor."""
    try:
        return os.fdopen(int(os.environ["DEV_TERMINAL"]), "w", closefd=False)
    except (KeyError, ValueError, OSError):
        return sys.stderr


def main(name, command):
    stream = progress_stream()
    line = Line(name, stream, stream.isatty())
    environment = dict(os.environ, NINJA_STATUS=MARK + "%f " + "%t ")
    ninja = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, encoding="utf-8", errors="replace")
    for text in ninja.stdout:
        if text.startswith(MARK):
            finished, total = text[len(MARK):].split(None, 2)[:2]
            line.update(int(finished), int(total))
        elif not text.startswith(("ninja: Entering directory", "ninja: no work to do")):
            line.clear()
            sys.stdout.write(text)
            sys.stdout.flush()
    line.clear()
    return ninja.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
