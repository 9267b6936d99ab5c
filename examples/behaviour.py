"""Data for din.py and two_tower.py: the items that users liked, in order of time.

The data are MovieLens if the Debian package r-cran-dslabs is installed, otherwise a synthetic set."""
import collections
import os

import numpy

from anabranch.datasets import r_packages

HISTORY = 20                   # number of latest items that describe a user

#: users: a list of arrays of items, in order of time; items: how many there are; name: of the data.
Behavior = collections.namedtuple("Behavior", "users items name")


def load(fast):
    """A Behavior; ``fast``: a part of the users."""
    try:
        movies = r_packages.load("dslabs", "movielens")
    except LookupError:
        return Behavior(generated(600 if fast else 2000), 600, "synthetic (Debian's r-cran-dslabs is not installed)")
    liked = movies["rating"] >= 3.5
    _, items = numpy.unique(movies["movieId"][liked], return_inverse=True)
    users, times = movies["userId"][liked], movies["timestamp"][liked]
    order = numpy.lexsort((items, times, users))
    cuts = numpy.flatnonzero(numpy.diff(users[order])) + 1
    sequences = [s for s in numpy.split(items[order], cuts) if len(s) > 5]
    return Behavior(sequences[:300] if fast else sequences, int(items.max()) + 1, "MovieLens (r-cran-dslabs)")


def generated(users, items=600, groups=20):
    """Synthetic: an item belongs to a group, a user keeps to two of them, mostly."""
    random = numpy.random.RandomState(4)
    made = []
    for _ in range(users):
        tastes = random.choice(groups, 2, replace=False)
        length = random.randint(20, 60)
        group = numpy.where(random.random_sample(length) < 0.85, tastes[random.randint(0, 2, length)],
                            random.randint(0, groups, length))
        place = numpy.minimum(random.geometric(0.1, length), items // groups) - 1
        made.append(place * groups + group)
    return made


def split(data):
    """(train, test): lists of (history, next item); the last item of each user is for the test."""
    train, test = [], []
    for items in data.users:
        for i in range(3, len(items)):
            (test if i == len(items) - 1 else train).append((items[max(0, i - HISTORY):i], items[i]))
    order = numpy.random.RandomState(1).permutation(len(train))
    return [train[i] for i in order], test


def shares(data):
    """How often each item occurs, as a share; at least half of a time."""
    counts = numpy.bincount(numpy.concatenate([items[:-1] for items in data.users]), minlength=data.items)
    return numpy.maximum(counts, 0.5) / counts.sum()


def write(path, rows):
    """A line per row: its fields, separated by tabs; an array is a list, separated by commas."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w") as f:
        for row in rows:
            f.write("\t".join(",".join(map(str, v)) if hasattr(v, "__len__") else str(v) for v in row) + "\n")
    return path
