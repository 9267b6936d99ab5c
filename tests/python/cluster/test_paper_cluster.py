"""Programs of workers and servers are carried out by hand, without a network: they train as one process does."""
import numpy
import pytest
import transpile_cases as cases

import anabranch.fluid as fluid
from anabranch.fluid.transpiler.copying import copy_op, copy_var

NETWORK = ("send", "recv", "send_barrier", "fetch_barrier")
STEPS = 4


def batch(step, trainer):
    rng = numpy.random.RandomState(10 * step + trainer)
    return {"x": rng.normal(size=(6, 20)).astype("float32"), "y": rng.normal(size=(6, 1)).astype("float32")}


def joined(batches):
    return {k: numpy.concatenate([b[k] for b in batches]) for k in batches[0]}


def value(scope, name):
    return numpy.array(scope.find_var(name).get_tensor())


def put(scope, name, array):
    scope.var(name).get_tensor().set(numpy.ascontiguousarray(array), fluid.CPUPlace())


def one_program(server):
    """The ops of a server's step: its blocks, one after the other; blocks of schedules that run blocks stay."""
    made = fluid.Program()
    block = made.global_block()
    for var in server.list_vars():
        copy_var(block, var, persistable=var.persistable)
    inner = {op.attr("sub_block").idx for b in server.blocks for op in b.ops if op.has_attr("sub_block")}
    for source in (b for b in server.blocks[1:] if b.idx not in inner):
        for op in source.ops:
            attrs = {}
            if op.has_attr("sub_block"):
                body = made._create_block(0)
                for child in op.attr("sub_block").ops:
                    copy_op(child, body, {})
                made.current_block_idx = 0
                attrs["sub_block"] = body
            copy_op(op, block, {}, attrs)
    return made


class Server:
    def __init__(self, transpiler, endpoint):
        self.scope = fluid.Scope()
        program, startup = transpiler.get_pserver_programs(endpoint)
        self.heard = program.global_block().ops[0].input("X")
        self.program = one_program(program)
        self.shards = transpiler._placement.on(endpoint)
        with fluid.scope_guard(self.scope):
            fluid.Executor(fluid.CPUPlace()).run(startup)

    def step(self, sent):
        with fluid.scope_guard(self.scope):
            fluid.Executor(fluid.CPUPlace()).run(self.program, feed={name: sent[name] for name in self.heard})


class Worker:
    def __init__(self, build, mode, index, servers, trainers):
        transpiler, _ = cases.transpiler_of(fluid, build, mode, index, servers, trainers, {})
        self.program = transpiler.get_trainer_program(wait_port=False)
        block = self.program.global_block()
        self.sent = [n for op in block.ops if op.type == "send" for n in op.input("X")]
        for i, op in reversed(list(enumerate(block.ops))):
            if op.type in NETWORK or (op.type == "concat" and op.attr("op_role") == 8):
                block._remove_op(i)
        self.scope = fluid.Scope()

    def step(self, params, feed):
        with fluid.scope_guard(self.scope):
            for name, array in params.items():
                put(self.scope, name, array)
            out = fluid.Executor(fluid.CPUPlace()).run(self.program, feed=feed, fetch_list=self.sent)
        return dict(zip(self.sent, out))


def parameters(servers):
    parts = {}
    for server in servers:
        for shard in server.shards:
            parts.setdefault(shard.param, []).append((shard.begin, value(server.scope, shard.name)))
    return {name: numpy.concatenate([v for _, v in sorted(p, key=lambda x: x[0])]) for name, p in parts.items()}


CASES = {name: cases.CASES[name] for name in (
    "momentum3", "adam_sliced", "adagrad_sliced", "rmsprop", "adamax", "decayed_adagrad", "ftrl", "decay", "l1",
    "clip_value", "polynomial", "piecewise", "lars")}
CASES.update(dense=(cases.dense, {}), sliced=(cases.sliced, {}), lr_decay=(cases.lr_decay, {}))


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_step_of_all_is_a_step_of_one(name):
    build, how = CASES[name]
    servers, trainers = how.get("servers", 2), how.get("trainers", 2)
    transpiler, _ = cases.transpiler_of(fluid, build, "sync", 0, servers, trainers, {})
    cluster = [Server(transpiler, e) for e in cases.SERVERS[:servers]]
    workers = [Worker(build, "sync", i, servers, trainers) for i in range(trainers)]
    main, startup = cases.fresh(fluid, build)
    alone, exe = fluid.Scope(), fluid.Executor(fluid.CPUPlace())
    with fluid.scope_guard(alone):
        exe.run(startup)
    for server in cluster:  # all begin alike; shards that are drawn by chance differ from the whole
        for shard in server.shards:
            put(server.scope, shard.name, value(alone, shard.param)[shard.begin:shard.begin + shard.rows])
    for step in range(STEPS):
        batches = [batch(step, i) for i in range(trainers)]
        params, sent = parameters(cluster), {}
        for worker, feed in zip(workers, batches):
            sent.update(worker.step(params, feed))
        for server in cluster:
            server.step(sent)
        with fluid.scope_guard(alone):
            exe.run(main, feed=joined(batches))
    for param, got in parameters(cluster).items():
        expected = value(alone, param)
        # Rules that divide by the size of a gradient make much of the rounding of one that is almost zero.
        close = numpy.isclose(got, expected, rtol=2e-4, atol=2e-5)
        assert close.mean() > 0.998 and abs(got - expected).max() < 1e-3, param
        assert abs(expected).max() > 0
