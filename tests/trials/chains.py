"""Trials of damaged folders of checkpoints whose tables are chains: each version is refused, or is the one that was
written; and a model that follows the folder answers as one of them."""

import atexit
import functools
import io
import os
import random
import shutil
import sys
import tempfile

import numpy as np
from damage import damaged
from honest_models import read

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "support"))
from delta_runs import Clicks  # noqa: E402

import anabranch  # noqa: E402
import anabranch.fluid as fluid  # noqa: E402
from anabranch import _core  # noqa: E402
from anabranch.checkpoints import folders, links, whole  # noqa: E402
from anabranch.fluid.io.tables import load_table  # noqa: E402
from anabranch.following import folder as versions  # noqa: E402

COUNT = {"bytes": 4000, "folders": 4000, "follow": 2000}
names = COUNT.__iter__
TABLES = ("clicks", "users")
VERSIONS = 8  # the last one is written at the end of the run
MEMORY = "/dev/shm" if os.path.isdir("/dev/shm") else None  # a file is flushed faster there
KEYS = np.arange(600).reshape(-1, 1)


@functools.lru_cache(maxsize=None)
def written():
    """A run and another one: their folders, a model, and the state of each version of the first."""
    base = tempfile.mkdtemp(prefix="chains", dir=MEMORY)
    atexit.register(shutil.rmtree, base, True)
    states = {}
    for name in ("run", "other"):
        clicks = Clicks(expire_after=3)
        with fluid.scope_guard(clicks.scope):
            fluid.io.save_inference_model(
                os.path.join(base, "model"), ["ids"], [clicks.score], clicks.exe, clicks.main
            )
        run = clicks.run(os.path.join(base, name), every=10**6, delta=3, keep=99)
        for _ in run.epochs(1):
            for number in range(1, VERSIONS):
                clicks.step(number + (50 if name == "other" else 0))
                run.save()
                if name == "run":
                    states[number] = states[VERSIONS] = clicks.state()
    return base, states


def loaded(root, number):
    """The state of a version, after it has been verified as when a run is resumed."""
    at, scope = folders.path(root, number), fluid.Scope()
    status = folders.read(at)
    chains = links.chains(at, status) if "chain" in status else {}
    with fluid.scope_guard(scope), tempfile.TemporaryDirectory(dir=MEMORY) as out:
        dense = status["variables"]["dense"]
        _core.load_vars(scope, dense, at, links.VALUES)
        for name in status["variables"]["tables"]:
            load_table(scope.var(name), None, name, versions.table_path(root, number, name), chains.get(name))
        with _core.FileSet() as files:
            _core.save_vars(scope, dense, out, "", files)
            for name in status["variables"]["tables"]:
                _core.growable_table(scope.find_var(name)).save(os.path.join(out, name), True, files)
        return {name: read(os.path.join(out, name)) for name in os.listdir(out)}


def needed(root, number):
    """The numbers of the versions whose files make up a version, by the names of these files."""
    found = {number}
    while not os.path.exists(versions.table_path(root, number, TABLES[0])):
        number -= 1
        found.add(number)
    return found


# ---- damages: each returns the numbers of the versions that it touches


def paths(root, number):
    at = folders.path(root, number)
    return [os.path.join(at, name) for name in sorted(os.listdir(at))]


def replace(path, data):
    os.remove(path)  # it is a link to the good file
    with open(path, "wb") as file:
        file.write(data)


def bend(r, root, number):
    path = r.choice(paths(root, number))
    replace(path, damaged(r, read(path)))
    return {number}


def remove(r, root, number):
    os.remove(r.choice(paths(root, number)))
    return {number}


def cut(r, root, number):
    path = r.choice(paths(root, number))
    data = read(path)
    replace(path, data[: r.randrange(len(data))])
    return {number}


def swap_file(r, root, number):
    """A file of another version, table or run instead of one."""
    path = r.choice(paths(root, number))
    other = os.path.join(written()[0], r.choice(["run", "other"]))
    replace(path, read(r.choice(paths(other, r.randrange(1, VERSIONS + 1)))))
    return {number}


def swap_links(r, root, number):
    """The links of a table, with the status that lists them, are those of another version or run."""
    name, source = r.choice(["run", "other"]), r.randrange(1, VERSIONS + 1)
    if name == "other" and source == number:
        source = number % VERSIONS + 1  # a whole version of another run may replace one
    other = os.path.join(written()[0], name)
    shutil.rmtree(folders.path(root, number))
    shutil.copytree(folders.path(other, source), folders.path(root, number))
    return {number}


def drop_version(r, root, number):
    shutil.rmtree(folders.path(root, number))
    return {number}


def rename_version(r, root, number):
    target = r.choice([n for n in range(VERSIONS + 4) if not os.path.exists(folders.path(root, n))])
    os.rename(folders.path(root, number), folders.path(root, target))
    return {number, target}


DAMAGES = {
    "bytes": [bend, bend, bend, cut],
    "folders": [remove, swap_file, swap_file, swap_links, drop_version, rename_version],
}
DAMAGES["follow"] = DAMAGES["bytes"] + DAMAGES["folders"]


# ---- what is checked


def copied(folder):
    """The folder of a copy of the run."""
    root = os.path.join(folder, "run")
    shutil.copytree(os.path.join(written()[0], "run"), root, copy_function=os.link)
    return root


def damage(r, name, root):
    touched = set()
    for _ in range(r.choice([1, 1, 1, 2, 3])):
        there = sorted(set(folders.numbers(root)) - touched)
        touched |= r.choice(DAMAGES[name])(r, root, r.choice(there))
    return touched


def check_versions(root, touched, states, parts):
    """None, or what is wrong."""
    for number in range(VERSIONS + 4):
        try:
            state = loaded(root, number)
        except (fluid.core.EnforceNotMet, OSError) as e:
            if number in parts and not parts[number] & touched:
                return "version %d is refused, and none of its files was touched: %s" % (number, e)
            continue
        if state != states.get(number):
            return "version %d is not the one that was written" % number
    return None


def check_latest(root, states):
    try:
        found = whole.saved_in(root)
    except (fluid.core.EnforceNotMet, OSError):
        return None
    number = int(os.path.basename(found._folder)[-6:])
    return None if loaded(root, number) == states[number] else "the latest one, %d, is another one" % number


def follow(r, root, name, folder):
    """A predictor has a version; then its folder is damaged."""
    base, answers = written()[0], right_answers()
    versions.pin(root, r.randrange(1, VERSIONS))
    made = anabranch.Predictor(os.path.join(base, "model"), follow=root, poll_s=1e9)
    made.follower._stream = io.StringIO()
    versions.pin(root, None)
    touched = damage(r, name, root)
    for _ in range(3):
        made.follower.poll()
        answer = made.run([KEYS])[0]
        if not np.array_equal(answer, answers[made.version]):
            return "version %d answers otherwise, after damage of %s" % (made.version, touched)
    made.close()
    return None


@functools.lru_cache(maxsize=None)
def right_answers():
    base = written()[0]
    with tempfile.TemporaryDirectory(dir=MEMORY) as folder:
        root, found = copied(folder), {}
        for number in range(1, VERSIONS + 1):
            versions.pin(root, number)
            made = anabranch.Predictor(os.path.join(base, "model"), follow=root, poll_s=1e9)
            found[number] = made.run([KEYS])[0].copy()
            assert made.version == number
        return found


def trial(name, number):
    r = random.Random("chains/%s/%d" % (name, number))
    states, stderr = written()[1], sys.stderr
    with tempfile.TemporaryDirectory(prefix="trials", dir=MEMORY) as folder:
        root = copied(folder)
        if name == "follow":
            wrong = follow(r, root, name, folder)
        else:
            parts = {n: needed(root, n) for n in range(1, VERSIONS + 1)}
            touched = damage(r, name, root)
            sys.stderr = io.StringIO()  # which versions are not whole
            try:
                wrong = check_versions(root, touched, states, parts) or check_latest(root, states)
            finally:
                sys.stderr = stderr
    return ("WRONG", wrong) if wrong else ("ran", "")
