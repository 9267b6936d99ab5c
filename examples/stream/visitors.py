"""The visitors of the shop: they ask the model for scores, and their clicks become the training data.

In each minute, the visits are scored by two servers: one that follows training and one that does not. At the end of the
minute the clicks are known. They are written to the folder of clicks, from which the model is trained, and the AUC of
both servers is written to a file of JSON lines. No model has therefore been trained on the clicks that it predicts.

A minute takes 60 seconds, divided by --speed. SIGTERM ends the stream after the current minute: the file "end" in the
folder of clicks then tells the workers that no more clicks will come.
"""
import argparse
import io
import json
import os
import signal
import threading
import time
import urllib.request

import numpy as np
from world import World

from anabranch.datasets import criteo

REQUESTS = 10          # of a minute, to each server
KEPT = 200             # minutes whose clicks are kept


def write(path, data):
    """Writes a file that is never seen half written."""
    with open(path + ".writing", "wb") as file:
        file.write(data)
    os.replace(path + ".writing", path)


def packed(**arrays):
    """bytes: arrays in the .npz format."""
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue()


def ask(address, ids):
    """(scores, version of the model)."""
    kind = "application/x-npz"
    request = urllib.request.Request(address + "/predict", packed(ids=ids), {"Content-Type": kind, "Accept": kind})
    with urllib.request.urlopen(request, timeout=30) as answer:
        scores, = np.load(io.BytesIO(answer.read())).values()
        return scores.ravel(), int(answer.headers.get("X-Anabranch-Version", 0))


class Minute:
    """The answers of all servers to the visits of a minute."""

    def __init__(self, names):
        self.scores, self.versions = {name: [] for name in names}, {name: [] for name in names}

    def ask(self, servers, ids):
        for name in self.scores:
            scores, version = ask(servers[name], ids)
            self.scores[name].append(scores)
            self.versions[name].append(version)

    def measured(self, number, chance, clicks):
        """The AUC of each server and of a perfect model, and the versions that answered."""
        told = {"minute": number, "perfect": criteo.auc(chance, clicks)}
        for name, scores in self.scores.items():
            told[name] = criteo.auc(np.concatenate(scores), clicks)
            told[name + "_versions"] = self.versions[name]
        return told


def addresses(path):
    """{name: address} of the servers, empty until they have been started."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        return json.load(file)


def main(a):
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    world, due = World(a.seed, a.visits), time.monotonic()
    while not ended.is_set() and (a.minutes == 0 or world.minute < a.minutes):
        ids, chance = world.visit()
        servers = addresses(a.servers)
        minute = Minute(servers)
        for part in np.array_split(ids, REQUESTS):
            minute.ask(servers, part)
            due += 60 / a.speed / REQUESTS
            ended.wait(max(0, due - time.monotonic()))
        clicks = world.click(chance)
        write(os.path.join(a.clicks, "%06d.npz" % world.minute), packed(ids=ids, click=clicks))
        if servers:
            with open(a.answers, "a") as file:
                file.write(json.dumps(minute.measured(world.minute, chance, clicks)) + "\n")
        old = os.path.join(a.clicks, "%06d.npz" % (world.minute - KEPT))
        if os.path.exists(old):
            os.remove(old)
        due = max(due, time.monotonic())   # a late minute makes the next ones late
    write(os.path.join(a.clicks, "end"), b"%d\n" % world.minute)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--clicks", required=True, help="Folder for the clicks.")
    parser.add_argument("--answers", required=True, help="File to which the AUC of each minute is appended.")
    parser.add_argument("--servers", required=True, help="JSON file with the addresses of the servers, once they run.")
    parser.add_argument("--minutes", type=int, default=0, help="Number of minutes; 0: until SIGTERM (default).")
    parser.add_argument("--speed", type=float, default=1, help="Minutes of the shop in a minute (default: 1).")
    parser.add_argument("--visits", type=int, default=6000, help="Number of visits in a minute (default: %(default)s).")
    parser.add_argument("--seed", type=int, default=1, help="Seed of the data (default: %(default)s).")
    main(parser.parse_args())
