"""Local and Hadoop folders with a common interface."""
from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from .errors import InvalidType, Unavailable

_PAUSE_S = 0.5
_CALL_S = 1200.0


class Entry(NamedTuple):
    """One line of a listing."""

    path: str
    is_dir: bool
    time: str  # of the last change; texts compare as times do


class Files(Protocol):
    """Interface of a file system. A failed change raises OSError or Unavailable."""

    def exists(self, path: str) -> bool: ...
    def is_dir(self, path: str) -> bool: ...
    def entries(self, path: str, deep: bool = False) -> list[Entry]: ...
    def make_dirs(self, path: str) -> None: ...
    def delete(self, path: str) -> None: ...
    def move(self, source: str, target: str) -> None: ...
    def put(self, local: str, path: str) -> None: ...
    def get(self, path: str, local: str) -> None: ...
    def read(self, path: str) -> str: ...


class LocalFiles:
    """The file system of this machine."""

    def exists(self, path: str) -> bool:
        """bool: whether the file or folder exists."""
        return os.path.exists(path)

    def is_dir(self, path: str) -> bool:
        """bool: whether the folder exists."""
        return os.path.isdir(path)

    def entries(self, path: str, deep: bool = False) -> list[Entry]:
        """list of Entry: the entries of a folder, or the file itself."""
        if not os.path.isdir(path):
            return [self._entry(path)] if os.path.exists(path) else []
        found = []
        for name in sorted(os.listdir(path)):
            entry = self._entry(os.path.join(path, name))
            found.append(entry)
            if deep and entry.is_dir:
                found += self.entries(entry.path, True)
        return found

    @staticmethod
    def _entry(path: str) -> Entry:
        stamp = time.strftime("%Y-%m-%d %H:%M", time.localtime(os.path.getmtime(path)))
        return Entry(path, os.path.isdir(path), stamp)

    def make_dirs(self, path: str) -> None:
        """Creates a folder and its missing parent folders."""
        os.makedirs(path, exist_ok=True)

    def delete(self, path: str) -> None:
        """Deletes a file or a folder. Does nothing if it does not exist."""
        if os.path.isdir(path) and not os.path.islink(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.remove(path)

    def move(self, source: str, target: str) -> None:
        """Renames a file or folder."""
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        os.rename(source, target)

    def put(self, local: str, path: str) -> None:
        """Copies a file or folder to ``path``, or into ``path`` if it is a folder."""
        target = os.path.join(path, os.path.basename(local.rstrip("/"))) if os.path.isdir(path) else path
        os.makedirs(os.path.dirname(os.path.abspath(target)), exist_ok=True)
        if os.path.isdir(local):
            shutil.copytree(local, target)
        else:
            shutil.copyfile(local, target)

    def get(self, path: str, local: str) -> None:
        """Copies a file or folder to ``local``, or into ``local`` if it is a folder."""
        self.put(path, local)

    def read(self, path: str) -> str:
        """str: the contents of a file."""
        with open(path) as file:
            return file.read()


class HadoopFiles:
    """The file system of Hadoop, accessed with the command ``hadoop fs``.

    Args:
        hadoop (str): folder of Hadoop, which contains the command ``bin/hadoop``.
        configs (dict): settings, passed as ``-Dname=value``.
    """

    def __init__(self, hadoop: str, configs: Mapping[str, str]) -> None:
        self.command = [os.path.join(hadoop, "bin", "hadoop"), "fs",
                        *("-D%s=%s" % (name, value) for name, value in configs.items())]

    def _run(self, args: Sequence[str]) -> subprocess.CompletedProcess[str]:
        try:
            return subprocess.run([*self.command, *args], capture_output=True, text=True, timeout=_CALL_S)
        except FileNotFoundError:
            raise Unavailable("there is no command %s" % self.command[0]) from None
        except subprocess.TimeoutExpired:
            raise Unavailable("hadoop fs %s did not finish in %g s" % (" ".join(args), _CALL_S)) from None

    def _do(self, *args: str) -> str:
        done = self._run(args)
        if done.returncode:
            raise Unavailable("hadoop fs %s failed with status %d: %s"
                              % (" ".join(args), done.returncode, done.stderr.strip()[-500:]))
        return done.stdout

    def exists(self, path: str) -> bool:
        """bool: whether the file or folder exists."""
        return self._run(["-test", "-e", path]).returncode == 0

    def is_dir(self, path: str) -> bool:
        """bool: whether the folder exists."""
        return self._run(["-test", "-d", path]).returncode == 0

    def entries(self, path: str, deep: bool = False) -> list[Entry]:
        """list of Entry: the entries of a folder, or the file itself."""
        if not self.exists(path):
            return []
        found = []
        for line in self._do(*(["-ls", "-R"] if deep else ["-ls"]), path).splitlines():
            parts = line.split(None, 7)
            if len(parts) == 8:
                found.append(Entry(parts[7], parts[0].startswith("d"), parts[5] + " " + parts[6]))
        return found

    def make_dirs(self, path: str) -> None:
        """Creates a folder and its missing parent folders."""
        self._do("-mkdir", "-p", path)

    def delete(self, path: str) -> None:
        """Deletes a file or a folder. Does nothing if it does not exist."""
        if self.exists(path):
            self._do("-rm", "-r", "-skipTrash", path)

    def move(self, source: str, target: str) -> None:
        """Renames a file or folder."""
        self._do("-mv", source, target)

    def put(self, local: str, path: str) -> None:
        """Copies a file or folder from this machine to Hadoop."""
        self._do("-put", local, path)

    def get(self, path: str, local: str) -> None:
        """Copies a file or folder to this machine."""
        self._do("-get", path, local)

    def read(self, path: str) -> str:
        """str: the contents of a file."""
        return self._do("-cat", path)


def files_of(hadoop_home: str | None, configs: Mapping[str, str] | None) -> Files:
    """Files: the file system of Hadoop if its folder is given, otherwise the local file system."""
    if configs is not None and not isinstance(configs, Mapping):
        raise InvalidType("HDFSClient: configs must be a dict, got %s" % type(configs).__name__)
    return HadoopFiles(hadoop_home, configs or {}) if hadoop_home else LocalFiles()


def tried(call: object, retry_times: int) -> bool:
    """bool: whether a call succeeded within ``retry_times`` attempts. Only errors of files and commands are caught."""
    for attempt in range(max(1, retry_times)):
        try:
            call()  # type: ignore[operator]
            return True
        except (OSError, Unavailable, shutil.Error):
            if attempt + 1 < retry_times:
                time.sleep(_PAUSE_S * 2 ** attempt)
    return False
