"""Shares of tests that try everything there is: a run takes one, another one each day.

A failure is found again with all shares, ./dev test TEST, or with those of its day, ANABRANCH_DAY. tools/nightly sets
ANABRANCH_SHARES=all, which takes everything.
"""
import datetime
import os

# In the environment, so that all processes of one run agree, also around midnight.
DAY = int(os.environ.setdefault("ANABRANCH_DAY", str(datetime.date.today().toordinal())))


def todays(items, shares, first=0):
    """Every ``shares``-th of ``items``, a list, so that ``shares`` days in a row take all of them.

    A test with the mark ``share(shares, first)`` is a list of one item: it runs on every ``shares``-th day.
    """
    if os.environ.get("ANABRANCH_SHARES") == "all":
        return items
    return items[(DAY + first) % shares::shares]


def todays_numbers(count, share, day=DAY):
    """range of at most ``share`` of the numbers below ``count``: each day the next ones, and from 0 again after the
    last. ANABRANCH_SHARES does not change it: numbers are too many to take them all in a run.
    """
    days = max(1, -(-count // share))
    first = day % days * share
    return range(first, min(count, first + share))

