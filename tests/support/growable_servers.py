"""Training with a growable table on servers, and the same in one process."""
import numpy as np
from parameter_servers import batch

import anabranch.fluid as fluid
from anabranch import _core
from anabranch.fluid.io.remote import load_shards

STEPS, WIDTH = 4, 4
AdamW = fluid.contrib.extend_with_decoupled_weight_decay(fluid.optimizer.Adam)
KEYS = np.random.RandomState(5).randint(-2 ** 62, 2 ** 62, 40)
OPTIMIZERS = {
    "sgd": lambda: fluid.optimizer.SGD(0.1),
    "still": lambda: fluid.optimizer.SGD(0.0),
    "adagrad": lambda: fluid.optimizer.Adagrad(0.1),
    "adam": lambda: fluid.optimizer.Adam(0.01, lazy_mode=True),
    "momentum": lambda: fluid.optimizer.Momentum(0.1, 0.9, regularization=fluid.regularizer.L1Decay(0.1, True)),
    "ftrl": lambda: fluid.optimizer.Ftrl(0.1, l1=0.01, l2=0.02),
    "row_adagrad": lambda: fluid.optimizer.Adagrad(0.1, row_wise=True,
                                                   regularization=fluid.regularizer.L2Decay(0.1, lazy_mode=True)),
    "adamw": lambda: AdamW(0.1, lambda name: name == "table", lazy_decay=True, learning_rate=0.01, lazy_mode=True),
}
#: Optimizer -> the rule whose moments the table keeps, where their names differ.
RULES = {"adamw": "adam", "still": "sgd"}


def network(optimizer, sparse=True, dropout=0.0, **rules):
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


def feed_of(step, rows):
    feed = batch(step, rows, sparse=False)
    chosen = np.random.RandomState(100 + step).randint(0, len(KEYS) // 2 + 5 * step, (64, 3))[rows[0]:rows[1]]
    feed["ids"] = fluid.create_lod_tensor(KEYS[chosen].reshape(-1, 1), [[3] * len(chosen)], fluid.CPUPlace())
    return feed


def rows_of(table):
    """(keys, rows) of a table of the engine."""
    keys = table.keys()
    return keys, table.rows(keys)


def held(scope, name="table"):
    return _core.growable_table(scope.find_var(name))


def rows_on_servers(folder, count):
    """Loads the table of a folder into this number of new servers: id -> row."""
    cut, endpoints, found = fluid.DistributeTranspiler(), ["local:%d" % (910 + i) for i in range(count)], {}
    main, startup, _ = network("adagrad")
    cut.transpile(0, program=main, startup_program=startup, pservers=",".join(endpoints), trainers=1)
    for endpoint in endpoints:
        program, start = cut.get_pserver_programs(endpoint)
        with fluid.scope_guard(fluid.Scope()):
            fluid.Executor().run(start)
            assert load_shards(folder, program, endpoint) == []
            for var in program.list_vars():
                value = fluid.global_scope().find_var(var.name)
                table = value and _core.growable_table(value)
                if table:
                    found.update(zip(table.keys().tolist(), table.rows(table.keys()).tolist()))
    return found


def local(optimizer, feeds, replicas):
    main, startup, loss = network(optimizer)
    scope, exe = fluid.Scope(), fluid.Executor()
    exe.run(startup, scope=scope)
    program = main if replicas == 1 else fluid.CompiledProgram(main).with_data_parallel(
        loss_name=loss.name, places=fluid.cpu_places(replicas))
    for feed in feeds:
        exe.run(program, feed=feed if replicas > 1 else feed[0], fetch_list=[loss], scope=scope)
    return rows_of(held(scope))
