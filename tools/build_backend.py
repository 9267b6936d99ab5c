"""scikit-build-core for pip, with two additions.

Where `./dev` has configured build/release for this kind of interpreter, its build is brought up to date, which takes
seconds if nothing has changed, and its files are packed. Otherwise scikit-build-core compiles everything in a build
folder for the wheel's tag. Settings given by --config-settings always take the second way.

pip does not show what a build prints, so the lines in which ninja counts, "[12/624] ...", also update a progress line
on the user's terminal, if there is one. All output is passed on to pip.
"""
import contextlib
import importlib.machinery
import os
import re
import shutil
import subprocess
import sys
import threading

from scikit_build_core.build import *  # noqa: F403  (all other hooks)
from scikit_build_core.build import build_editable as _build_editable
from scikit_build_core.build import build_wheel as _build_wheel

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)
from build_progress import Line  # noqa: E402

RELEASE = os.path.join(os.path.dirname(HERE), "build", "release")
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


def up_to_date(release):
    """The folder of the module and its plug-ins in a build of `./dev`, after ninja has updated them; None if the
    folder was never built, the build fails, or the module is for a different kind of interpreter."""
    package, ninja = os.path.join(release, "python"), shutil.which("ninja")
    built = [name for name in (os.listdir(package) if os.path.isdir(package) else []) if name.startswith("_core")]
    if not ninja or not any("_core" + suffix in built for suffix in importlib.machinery.EXTENSION_SUFFIXES):
        return None
    # pip points PYTHONPATH at the build's own environment, which that build must not see.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run([ninja, "-C", release, "python_package"], env=environment)
    if done.returncode:
        print("build/release cannot be updated, so everything is compiled for this wheel")
        return None
    return package


def settings(given, release):
    """The settings for scikit-build-core: those of the user, else such that a finished build is packed."""
    package = None if given else up_to_date(release)
    if package is None:
        return given
    return {"cmake.define.ANABRANCH_BUILT": package, "build-dir": "build/packed-{wheel_tag}"}


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """str: the name of the wheel, as the hook of PEP 517 has it."""
    with progress(_terminal()):
        return _build_wheel(wheel_directory, settings(config_settings, RELEASE), metadata_directory)


def build_editable(wheel_directory, config_settings=None, metadata_directory=None):
    """str: the name of the wheel, as the hook of PEP 660 has it."""
    with progress(_terminal()):
        return _build_editable(wheel_directory, settings(config_settings, RELEASE), metadata_directory)
