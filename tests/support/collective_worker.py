"""A worker among workers: trains a small model and writes its parameters; started by test_collective_processes.py."""
import json
import os
import sys

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.collective import DistributedStrategy, fleet

OPTIMIZERS = {"sgd": lambda: fluid.optimizer.SGD(0.1), "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
              "adam": lambda: fluid.optimizer.Adam(0.01), "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
              "ftrl": lambda: fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.01)}


def model(dropout=True, sparse=False):
    x, y = fluid.data("x", [None, 6]), fluid.data("y", [None, 1])
    if sparse:
        ids = fluid.data("ids", [None], "int64")
        x = fluid.layers.concat([x, fluid.embedding(ids, [50, 4], is_sparse=True)], 1)
    hidden = fluid.layers.fc(x, 300, act="relu")
    if dropout:
        hidden = fluid.layers.dropout(hidden, 0.3)
    hidden = fluid.layers.fc(hidden, 260, act="tanh")
    return fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))


def batches(steps, rows, sparse=False):
    rng = np.random.RandomState(7)
    out = []
    for _ in range(steps):
        feed = {"x": rng.randn(rows, 6).astype("float32")}
        feed["y"] = feed["x"][:, :1] * 2
        if sparse:
            feed["ids"] = rng.randint(0, 50, rows).astype("int64")
        out.append(feed)
    return out


def build(optimizer, sparse, minimize, dropout=True):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 5
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = model(dropout, sparse)
        minimize(OPTIMIZERS[optimizer](), loss, startup)
    return main, startup, loss


def values(main, scope):
    return {p.name: np.array(scope.find_var(p.name).get_tensor()) for p in main.all_parameters()}


def part(feed, cuts, rank):
    return {name: value[cuts[rank]:cuts[rank + 1]] for name, value in feed.items()}


def train(case, rank, folder):
    fleet.init(roles.PaddleCloudRoleMaker(is_collective=True))
    strategy = DistributedStrategy()
    for name, value in case.get("strategy", {}).items():
        setattr(strategy, name, value)
    main, startup, loss = build(case["optimizer"], case.get("sparse", False), lambda optimizer, loss, startup:
                                fleet.distributed_optimizer(optimizer, strategy).minimize(loss, startup),
                                case.get("dropout", True))
    exe = fluid.Executor(fluid.CPUPlace())
    exe.run(fleet.startup_program)
    if case.get("uneven_start"):
        for p in main.all_parameters():
            tensor = fluid.global_scope().find_var(p.name).get_tensor()
            tensor.set(np.array(tensor) + rank, fluid.CPUPlace())
    losses = []
    for feed in batches(case["steps"], case["cuts"][-1], case.get("sparse", False)):
        losses.append(float(np.mean(exe.run(fleet.main_program, part(feed, case["cuts"], rank), [loss.name])[0])))
    np.savez(os.path.join(folder, "rank%d.npz" % rank), losses=losses, **values(main, fluid.global_scope()))


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    for number, case in enumerate(given if isinstance(given, list) else [given]):
        folder = os.path.join(sys.argv[2], str(number)) if isinstance(given, list) else sys.argv[2]
        os.makedirs(folder, exist_ok=True)
        with fluid.scope_guard(fluid.Scope()):
            train(case, int(os.environ["PADDLE_TRAINER_ID"]), folder)
