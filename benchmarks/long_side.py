"""One engine of long_run.py: builds nets of long_nets.py and trains them when asked; requests and answers as in op_side.py.

    long_side.py --engine anabranch.fluid | paddle.fluid | torch [--core 0]

    {"as": key, "net": name, "apart": ...}     builds it and keeps it under that key: {"losses": of the first steps}
    {"as": key, "runs": n}                      trains n steps: {"wall", "cpu": seconds of one, "loss"}
    {"as": key, "drop": true}                   forgets it
"""
import argparse
import importlib
import json
import os
import sys

import numpy as np

import long_nets
from model_side import timed

FIRST = 20


def number(loss):
    return float(np.asarray(loss).reshape(-1)[0])


class Nets:
    def __init__(self, engine):
        self.module = importlib.import_module(engine)
        self.kind = long_nets.Fluid
        if engine == "torch":
            from long_torch import Torch
            self.kind = Torch
        self.made = {}

    def answer(self, request):
        name = request["as"]
        if "net" in request:
            self.made[name] = net = self.kind(self.module, request["net"], request.get("apart"))
            return dict(losses=[number(net.run()) for _ in range(FIRST)])
        if "drop" in request:
            return dict(dropped=self.made.pop(name, None) is not None)
        return dict(timed(self.made[name], request["runs"]), loss=number(self.made[name].run()))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, help="torch, or a module with Fluid's API")
    parser.add_argument("--core", type=int, help="uses this core only")
    args = parser.parse_args()
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
    nets = Nets(args.engine)
    print("answer {}", flush=True)
    for line in sys.stdin:
        try:
            said = nets.answer(json.loads(line))
        except Exception as error:
            said = dict(error="{}: {}".format(type(error).__name__, str(error).strip()[-300:]))
        print("answer " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
