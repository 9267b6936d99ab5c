"""Workers and servers of one process that train growable tables in GEO training."""
import itertools
import threading

import numpy as np
from growable_servers import OPTIMIZERS, WIDTH, held
from parameter_servers import batch

import anabranch.fluid as fluid
from anabranch import _cluster, _core
from anabranch.fluid.transpiler.config import DistributedMode
from anabranch.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler

_ports = itertools.count(7100)
KEYS = np.random.RandomState(8).randint(-2 ** 62, 2 ** 62, 4000)


def network(optimizer, **rules):
    """A table of which each step uses other ids, none of them twice."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 7
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x, y = fluid.data("x", [None, 8]), fluid.data("y", [None, 1])
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        table = fluid.GrowableTable("table", fluid.initializer.Uniform(-1, 1, seed=3), **rules)
        rows = fluid.layers.embedding(ids, [-1, WIDTH], is_sparse=True, padding_idx=int(KEYS[0]), param_attr=table)
        hidden = fluid.layers.concat([x, fluid.layers.sequence_pool(rows, "sum")], 1)
        loss = fluid.layers.mean(fluid.layers.square_error_cost(fluid.layers.fc(hidden, 1), y))
        OPTIMIZERS[optimizer]().minimize(loss)
    return main, startup, loss


def feed_of(step, keys, rows=8, each=2):
    """A batch with `each` ids a row, drawn from the first `keys`; the padding id is one of them."""
    feed = batch(step, (0, rows), sparse=False)
    chosen = np.random.RandomState(100 + step).permutation(keys)[:each * rows]
    feed["ids"] = fluid.create_lod_tensor(KEYS[chosen].reshape(-1, 1), [[each] * rows], fluid.CPUPlace())
    return feed


class Worker:
    """A worker that exchanges when it is told to, unless `every` says how often."""

    def __init__(self, cluster, number, replicas=1, every=10 ** 6):
        self.number, self.scope, self.exe = number, fluid.Scope(), fluid.Executor()
        self.main, startup, self.loss = cluster.network()
        self.cut = cluster.transpiled(number, self.main, startup)
        for op in self.main.global_block().ops:
            if op.type == "send":
                op._set_attr("trainer_id", number)
        settings = {"push_vars": self.cut.vars_info, "trainers": cluster.workers, "push_nums": every}
        _cluster.communicator_start(number, DistributedMode.GEO, settings, {}, self.scope)
        self.exe.run(startup, scope=self.scope)
        self.program = self.main if replicas == 1 else fluid.CompiledProgram(self.main).with_data_parallel(
            loss_name=self.loss.name, places=fluid.cpu_places(replicas))

    def step(self, feed):
        return self.exe.run(self.program, feed=feed, fetch_list=[self.loss], scope=self.scope)[0]

    def exchange(self):
        """Sends differences; a step without news takes what others have sent."""
        _core.ps_flush()

    def rows(self):
        table = held(self.scope)
        return dict(zip(table.keys().tolist(), table.rows(table.keys()).tolist()))

    def end(self):
        _cluster.communicator_stop(self.number)
        _core.ps_complete(self.number)


class Cluster:
    """Servers in threads."""

    def __init__(self, workers, servers, optimizer="sgd", **rules):
        self.workers, self.optimizer, self.rules = workers, optimizer, rules
        self.endpoints = ["local:%d" % next(_ports) for _ in range(servers)]
        main, startup, _ = self.network()
        cut = self.transpiled(0, main, startup)
        self.scopes, self.threads = [fluid.Scope() for _ in self.endpoints], []
        for endpoint, scope in zip(self.endpoints, self.scopes):
            program, start = cut.get_pserver_programs(endpoint)
            fluid.Executor().run(start, scope=scope)
            server = _core.PServer(program.desc, scope)
            self.threads.append(threading.Thread(target=server.serve, daemon=True))
            self.threads[-1].start()

    def network(self):
        return network(self.optimizer, **self.rules)

    def transpiled(self, number, main, startup):
        cut = GeoSgdTranspiler()
        cut.transpile(number, program=main, startup_program=startup, pservers=",".join(self.endpoints),
                      trainers=self.workers)
        return cut

    def tables(self):
        names = ["table.block%d" % s for s in range(len(self.scopes))] if len(self.scopes) > 1 else ["table"]
        return [held(scope, name) for scope, name in zip(self.scopes, names)]

    def rows(self):
        """id -> row of all servers."""
        found = {}
        for table in self.tables():
            found.update(zip(table.keys().tolist(), table.rows(table.keys()).tolist()))
        return found

    def end(self, workers):
        for worker in workers:
            worker.end()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def alone(optimizer, feeds, replicas=1, **rules):
    """(losses, id -> row) of one process with these rules."""
    main, startup, loss = network(optimizer, **rules)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    program = main if replicas == 1 else fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, places=fluid.cpu_places(replicas))
    losses = [exe.run(program, feed=feed, fetch_list=[loss], scope=scope)[0] for feed in feeds]
    table = held(scope)
    return losses, dict(zip(table.keys().tolist(), table.rows(table.keys()).tolist()))
