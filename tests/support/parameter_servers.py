"""A cluster within this process: servers and trainers are threads, and talk without a network."""
import itertools
import threading

import numpy as np

import anabranch.fluid as fluid
from anabranch.fluid import remote

ROWS, TABLE = 4, 50
_numbers = itertools.count()
AdamW = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)

OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.01),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.01),
    "lazy_decay": lambda: AdamW(0.1, lambda name: name == "table", lazy_decay=True, learning_rate=0.01, lazy_mode=True,
                                regularization=fluid.regularizer.L2Decay(0.1, lazy_mode=True)),
}


def network(optimizer, sparse=False, dropout=0.3, wrap=lambda optimizer: optimizer):
    """(main, startup, loss) of a small regression; with a table of embeddings where it is sparse."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
        hidden = x
        if sparse:
            ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
            rows = fluid.layers.embedding(ids, [TABLE, 4], is_sparse=True, param_attr=fluid.ParamAttr(
                name="table", initializer=fluid.initializer.Uniform(-1, 1, seed=3)))
            hidden = fluid.layers.concat([x, fluid.layers.sequence_pool(rows, "sum")], 1)
        hidden = fluid.layers.fc(hidden, 16, act="relu")
        if dropout:
            hidden = fluid.layers.dropout(hidden, dropout)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        wrap(OPTIMIZERS[optimizer]()).minimize(loss)
    return main, startup, loss


def batch(step, rows, sparse):
    """The rows [begin, end) of the batch that all trainers share in a step."""
    begin, end = rows
    random = np.random.RandomState(step)
    x, y = random.rand(64, 8).astype("float32")[begin:end], random.rand(64, 1).astype("float32")[begin:end]
    ids = random.randint(0, TABLE, (64, 3)).astype("int64")[begin:end]
    feed = {"x": x, "y": y}
    if sparse:
        feed["ids"] = fluid.create_lod_tensor(ids.reshape(-1, 1), [[3] * len(ids)], fluid.CPUPlace())
    return feed


class Cluster:
    """Trainers that run `train(trainer, run)` where run(feed) is a step, with their servers."""

    def __init__(self, trainers, servers, optimizer, sparse=False, sync=True, dropout=0.3, config=None, replicas=1,
                 strategy=None):
        self.trainers, self.errors, self.values = trainers, [], {}
        self.replicas, self.strategy = replicas, strategy
        self.endpoints = ["local:%d" % (1000 + next(_numbers)) for _ in range(servers)]
        self.programs, self.servers = [], []
        for trainer in range(trainers):
            main, startup, loss = network(optimizer, sparse, dropout)
            cut = fluid.DistributeTranspiler(config)
            cut.transpile(trainer, program=main, startup_program=startup, pservers=",".join(self.endpoints),
                          trainers=trainers, sync_mode=sync)
            self.programs.append((cut.get_trainer_program(wait_port=False), startup, loss))
            if trainer == 0:
                self.servers = [cut.get_pserver_programs(e) for e in self.endpoints]
        self.server_scopes = [fluid.Scope() for _ in self.servers]
        self.scopes = [fluid.Scope() for _ in range(trainers)]
        self.before = {}

    def _guarded(self, work, *args):
        try:
            work(*args)
        except Exception as error:  # noqa: BLE001  told to the test
            self.errors.append(error)

    def _serve(self, server, ready):
        main, startup = self.servers[server]
        scope, exe = self.server_scopes[server], fluid.Executor()
        try:
            exe.run(startup, scope=scope)
            served = remote.server_of(main, scope)
        finally:
            ready.release()
        served.serve()

    def _train(self, trainer, train):
        main, startup, loss = self.programs[trainer]
        scope, exe = self.scopes[trainer], fluid.Executor()
        exe.run(startup, scope=scope)
        if self.replicas > 1:
            main = fluid.CompiledProgram(main).with_data_parallel(
                loss_name=loss.name, build_strategy=self.strategy and self.strategy(),
                places=fluid.cpu_places(self.replicas))
        try:
            train(trainer, lambda feed, fetch=(): exe.run(main, feed=feed, fetch_list=[loss, *fetch], scope=scope))
        finally:
            exe.close()

    def run(self, train, seconds=60):
        """Runs everything to its end; raises what went wrong in a trainer or a server."""
        ready = threading.Semaphore(0)
        threads = [threading.Thread(target=self._guarded, args=(self._serve, s, ready), daemon=True)
                   for s in range(len(self.servers))]
        for t in threads:
            t.start()
        for _ in threads:
            assert ready.acquire(timeout=seconds)
        threads += [threading.Thread(target=self._guarded, args=(self._train, t, train), daemon=True)
                    for t in range(self.trainers)]
        for t in threads[len(self.servers):]:
            t.start()
        for t in threads:
            t.join(seconds)
            assert not t.is_alive(), "a thread of the cluster has not ended: %s" % self.errors
        if self.errors:
            raise self.errors[0]

    def parameters(self):
        """Name -> numpy array: whole parameters, put together from the servers' scopes."""
        shards = {}
        for (main, _), scope in zip(self.servers, self.server_scopes):
            for var in main.list_vars():
                held = scope.find_var(var.name) if var.persistable else None
                if held is not None and not any(part in var.name for part in ("@", "learning_rate", "_generated_var")):
                    name, _, block = var.name.partition(".block")
                    shards.setdefault(name, {})[int(block or 0)] = np.array(held.get_tensor())
        return {name: np.concatenate([p[i] for i in sorted(p)]) for name, p in shards.items()}


def local(trainers, optimizer, sparse, feeds, dropout=0.3, start=None, strategy=None, look=lambda exe, scope: None):
    """Losses and parameters of that many replicas in one process; `feeds`: a list with a dict for each, by step."""
    main, startup, loss = network(optimizer, sparse, dropout)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    for name, value in (start or {}).items():
        scope.find_var(name).get_tensor().set(value, fluid.CPUPlace())
    program = fluid.CompiledProgram(main).with_data_parallel(loss_name=loss.name, build_strategy=strategy,
                                                             places=fluid.cpu_places(trainers))
    losses = [exe.run(program, feed=feed if trainers > 1 else feed[0], fetch_list=[loss], scope=scope,
                      return_merged=trainers == 1)[0] for feed in feeds]
    look(exe, scope)
    return losses, {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.list_vars() if v.persistable
                    and scope.find_var(v.name) is not None and v.name != "learning_rate_0"}
