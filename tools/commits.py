"""Ages in commits: how far the checkout has gone on since a commit that a record names.

An age in days is the days between the record and the newest commit, not until today: a checkout that rests stays as it
is.
"""
import datetime
import os
import subprocess
from typing import List

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True,
                          universal_newlines=True).stdout.strip()


def has_history() -> bool:
    """False in an unpacked archive and in a shallow clone."""
    try:
        return _git("rev-parse", "--is-shallow-repository") == "false" and os.path.exists(os.path.join(ROOT, ".git"))
    except (OSError, subprocess.CalledProcessError):
        return False


def head() -> str:
    return _git("rev-parse", "--short=9", "HEAD")


def is_known(commit: str) -> bool:
    """Whether HEAD descends from it."""
    return subprocess.run(["git", "merge-base", "--is-ancestor", commit, "HEAD"], cwd=ROOT, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0


def changes(commit: str, paths: List[str]) -> int:
    """The number of later commits that changed something below these paths."""
    return int(_git("rev-list", "--count", commit + "..HEAD", "--", *paths))


def days_of_changes(commit: str, paths: List[str]) -> int:
    """The number of days on which there are such commits."""
    return len(set(_git("log", "--format=%cd", "--date=format:%Y-%m-%d", commit + "..HEAD", "--", *paths).split()))


def days_since(date: str) -> int:
    """From a date, written as 2026-11-28, to the newest commit."""
    newest = datetime.date.fromisoformat(_git("log", "-1", "--format=%cd", "--date=format:%Y-%m-%d"))
    return (newest - datetime.date.fromisoformat(date)).days


def today() -> str:
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()
