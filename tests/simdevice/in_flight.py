"""Feeds and fetches while the device may still be at work: arrays belong to the caller once run() returns."""
import threading
from typing import List

import numpy as np
from training import MODES, Trained, compare, same_bits

import anabranch.fluid as fluid


def in_flight(devices: int) -> List[np.ndarray]:
    places, mode = fluid.cuda_places(list(range(devices))), MODES[0] if devices > 1 else None
    out = fed_again(places, mode)
    compare(out, fed_again(fluid.cpu_places(devices), mode), "arrays that are fed again")
    return out + together(places, mode)


def fed_again(places, mode) -> List[np.ndarray]:
    """One array is fed in every step and written over after it; what was fetched stays what it was; most steps fetch
    nothing, so that no step waits for their results."""
    trained, seen, copies = Trained("mlp", places, mode, fetch_gradients=True), [], []
    feed = trained.batch(4 * len(places), 0)
    for step in range(9):
        fetched = trained.run(feed, trained.fetches if step % 3 == 0 else [])
        seen += fetched
        copies += [value.copy() for value in fetched]
        fresh = trained.batch(4 * len(places), step + 1)
        for name in feed:
            feed[name].fill(np.nan)     # a late reader computes with these
            np.copyto(feed[name], fresh[name])
    same_bits(seen, copies, "what was fetched")
    return seen + trained.kept()


def together(places, mode) -> List[np.ndarray]:
    """Three programs in separate scopes, from three threads: each as if it were alone."""
    names, rows = ("mlp", "words", "images"), [2 * len(places)] * 4
    alone = [Trained(name, places, mode).steps(rows) for name in names]
    several, out, wrong = [Trained(name, places, mode) for name in names], {}, []

    def work(i):
        try:
            out[i] = several[i].steps(rows)
        except BaseException as e:      # told by the thread that waits
            wrong.append(e)
    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(names))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if wrong:
        raise wrong[0]
    for i, name in enumerate(names):
        same_bits(out[i], alone[i], "%s with others" % name)
    return [value for values in alone for value in values]
