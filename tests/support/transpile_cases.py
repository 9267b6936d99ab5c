"""Programs that are cut for parameter servers, by this package and by Fluid 1.8.5, and the result as plain data.

    transpile_cases.py --fluid paddle.fluid FILE.json.gz      records (with Fluid 1.8.5)

The first five are those of tests/golden/transpile; the others show one thing each.
"""
import argparse
import gzip
import importlib
import json
import sys
import warnings

SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175", "127.0.0.1:6176"]
MODES = ("sync", "async", "half_async", "geo")


def line(fluid, width=30):
    x = fluid.data("x", [None, 20], "float32")
    y = fluid.data("y", [None, 1], "float32")
    pred = fluid.layers.fc(fluid.layers.fc(x, width, act="relu"), 1)
    return fluid.layers.mean(fluid.layers.square_error_cost(pred, y))


def dense(fluid):
    fluid.optimizer.SGD(0.1).minimize(line(fluid))


def sliced(fluid):
    fluid.optimizer.SGD(0.1).minimize(line(fluid, 1000))


def lr_decay(fluid):
    loss = line(fluid)
    rate = fluid.layers.exponential_decay(0.1, 10, 0.5, staircase=True)
    fluid.optimizer.Momentum(rate, 0.9).minimize(loss)


def click(fluid, rows=1000, **table):
    ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
    dense_x = fluid.data("dense", [None, 3], "float32")
    label = fluid.data("click", [None, 1], "int64")
    kind = dict({"is_sparse": True}, **table)
    emb = fluid.layers.embedding(ids, [rows, 8], param_attr=fluid.ParamAttr(name="table"), **kind)
    pool = fluid.layers.sequence_pool(emb, "sum")
    h = fluid.layers.fc(fluid.layers.concat([pool, dense_x], axis=1), 16, act="relu")
    p = fluid.layers.fc(h, 2, act="softmax")
    return fluid.layers.mean(fluid.layers.cross_entropy(p, label))


def ctr(fluid):
    fluid.optimizer.SGD(0.1).minimize(click(fluid))


def ctr_adam(fluid):
    fluid.optimizer.Adam(0.01, regularization=fluid.regularizer.L2Decay(0.001)).minimize(click(fluid))


def with_optimizer(make, net=line, **kwargs):
    return lambda fluid: make(fluid).minimize(net(fluid, **kwargs))


def batch_norm(fluid):
    x = fluid.data("x", [None, 20], "float32")
    h = fluid.layers.batch_norm(fluid.layers.fc(x, 600))
    fluid.optimizer.Momentum(0.1, 0.9).minimize(fluid.layers.mean(h))


def two_tables(fluid):
    a = fluid.data("a", [None, 1], "int64")
    b = fluid.data("b", [None, 1], "int64")

    def look(ids, name):
        return fluid.embedding(ids, [5000, 4], is_sparse=True, param_attr=fluid.ParamAttr(name=name))

    both = fluid.layers.concat([look(a, "t1"), look(b, "t1"), look(b, "t2")], axis=-1)
    fluid.optimizer.Adagrad(0.1).minimize(fluid.layers.mean(fluid.layers.fc(both, 1)))


def rates(fluid):
    x = fluid.data("x", [None, 20], "float32")
    h = fluid.layers.fc(x, 30, param_attr=fluid.ParamAttr(learning_rate=0.5))
    rate = fluid.layers.noam_decay(64, 100)
    fluid.optimizer.SGD(rate).minimize(fluid.layers.mean(h))


def schedule(make):
    return lambda fluid: fluid.optimizer.SGD(make(fluid.layers)).minimize(line(fluid))


def clipped(make):
    def build(fluid):
        fluid.optimizer.SGD(0.1, grad_clip=make(fluid.clip)).minimize(line(fluid))
    return build


def frozen(fluid):
    x = fluid.data("x", [None, 20], "float32")
    h = fluid.layers.fc(x, 30, param_attr=fluid.ParamAttr(trainable=False))
    fluid.optimizer.SGD(0.1).minimize(fluid.layers.mean(fluid.layers.fc(h, 1)))


GOLDEN = {"dense": dense, "sliced": sliced, "lr_decay": lr_decay, "ctr": ctr, "ctr_adam": ctr_adam}

#: name -> (build, keyword arguments of `transpiled`)
CASES = {
    "momentum3": (with_optimizer(lambda f: f.optimizer.Momentum(0.1, 0.9, use_nesterov=True), width=2000),
                  {"servers": 3, "trainers": 3}),
    "adam_sliced": (with_optimizer(lambda f: f.optimizer.Adam(0.1), width=1000), {}),
    "adagrad_sliced": (with_optimizer(lambda f: f.optimizer.Adagrad(0.1), width=1000), {}),
    "ftrl": (with_optimizer(lambda f: f.optimizer.Ftrl(0.1)), {"modes": ("sync",)}),
    "rmsprop": (with_optimizer(lambda f: f.optimizer.RMSProp(0.1), width=1000), {"modes": ("sync", "async")}),
    "adamax": (with_optimizer(lambda f: f.optimizer.Adamax(0.1), width=1000), {}),
    "decayed_adagrad": (with_optimizer(lambda f: f.optimizer.DecayedAdagrad(0.1), width=1000), {}),
    "lars": (with_optimizer(lambda f: f.optimizer.LarsMomentum(0.1, 0.9), width=1000), {"modes": ("sync",)}),
    "one_trainer": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=1000), {"trainers": 1}),
    "one_server": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=1000), {"servers": 1}),
    "whole": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=1000), {"config": {"slice_var_up": False}}),
    "large_blocks": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=2000),
                     {"config": {"min_block_size": 16384}, "servers": 3}),
    "many_servers": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=3), {"servers": 3, "idle": True}),
    "dc_asgd": (with_optimizer(lambda f: f.optimizer.SGD(0.1)),
                {"config": {"enable_dc_asgd": True}, "modes": ("plain_async",)}),
    "plain_async": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=1000), {"modes": ("plain_async",)}),
    "plain_async_ctr": (ctr, {"modes": ("plain_async",)}),
    "plain_async_decay": (lr_decay, {"modes": ("plain_async",)}),
    "completely_not_async": (with_optimizer(lambda f: f.optimizer.SGD(0.1), width=1000), {"modes": ("not_async",)}),
    "batch_norm": (batch_norm, {}),
    "two_tables": (two_tables, {}),
    "large_table": (with_optimizer(lambda f: f.optimizer.Adam(0.1, lazy_mode=True), click, rows=6000), {}),
    "dense_table": (with_optimizer(lambda f: f.optimizer.SGD(0.1), click, is_sparse=False), {}),
    "distributed_table": (with_optimizer(lambda f: f.optimizer.SGD(0.1), click, is_distributed=True), {}),
    "rates": (rates, {}),
    "polynomial": (schedule(lambda n: n.polynomial_decay(0.1, 10, cycle=True)), {"modes": ("sync", "async")}),
    "piecewise": (schedule(lambda n: n.piecewise_decay([2, 4], [0.1, 0.05, 0.01])), {"modes": ("sync",)}),
    "warm_up": (schedule(lambda n: n.linear_lr_warmup(n.cosine_decay(0.1, 5, 3), 4, 0.01, 0.1)), {"modes": ("sync",)}),
    "decay": (with_optimizer(lambda f: f.optimizer.Momentum(0.1, 0.9, regularization=f.regularizer.L2Decay(0.01)),
                             width=1000), {}),
    "l1": (with_optimizer(lambda f: f.optimizer.SGD(0.1, regularization=f.regularizer.L1Decay(0.01))), {}),
    "clip_value": (clipped(lambda c: c.GradientClipByValue(0.5)), {}),
    "clip_norm": (clipped(lambda c: c.GradientClipByNorm(0.5)), {}),
    "clip_global": (clipped(lambda c: c.GradientClipByGlobalNorm(0.5)), {}),
    "frozen": (frozen, {}),
}


# ---- what comes out, as plain data


def attr_types(op):
    names = {}
    for name in op.attr_names:
        kind = op.attr_type(name)
        names[name] = getattr(kind, "name", None) or str(kind).rsplit(".", 1)[-1]
    return names


def attr_value(op, name, kind):
    if kind == "BLOCK":
        return op._block_attr_id(name)
    if kind == "BLOCKS":
        return op._blocks_attr_ids(name)
    value = op.attr(name)
    return list(value) if isinstance(value, (list, tuple)) else value


def dumped_op(op):
    return {"type": op.type, "inputs": {s: op.input(s) for s in op.input_names},
            "outputs": {s: op.output(s) for s in op.output_names},
            "attrs": {n: {k: attr_value(op, n, k)} for n, k in attr_types(op).items() if n != "op_callstack"}}


def dumped(program):
    return [{"idx": b.idx, "parent": b.parent_idx, "ops": [dumped_op(op) for op in b.ops]} for b in program.blocks]


def dumped_vars(program):
    """[name, shape, persistable] of the variables of each block."""
    def shape(v):
        return list(v.shape) if int(v.type) in (7, 8) else []  # tensors and sparse rows
    return [[[v.name, shape(v), v.persistable] for v in sorted(b.vars.values(), key=lambda v: v.name)
             if not v.name.startswith("__control_var")] for b in program.blocks]


# ---- transpiling


def config_of(fluid, mode, **fields):
    config = fluid.DistributeTranspilerConfig()
    for name, value in fields.items():
        setattr(config, name, value)
    config.wait_port = False
    if mode != "sync":
        config.sync_mode = False
    if mode not in ("sync", "plain_async"):
        config.runtime_split_send_recv = True
    config.half_async = mode in ("half_async", "not_async")
    config.completely_not_async = mode == "not_async"
    config.geo_sgd_mode = mode == "geo"
    if mode == "geo":
        config.geo_sgd_need_push_nums = 400
    return config


def fresh(fluid, build):
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = startup.random_seed = 90
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        build(fluid)
    return main, startup


def transpiler_of(fluid, build, mode, trainer, servers, trainers, config):
    main, startup = fresh(fluid, build)
    config = config_of(fluid, mode, **config)
    if mode == "geo":
        module = importlib.import_module(fluid.__name__ + ".transpiler.geo_sgd_transpiler")
        t = module.GeoSgdTranspiler(config)
    else:
        t = fluid.DistributeTranspiler(config)
    t.transpile(trainer, program=main, pservers=",".join(SERVERS[:servers]), trainers=trainers,
                sync_mode=mode == "sync", startup_program=startup)
    return t, startup


def transpiled(fluid, build, mode, servers=2, trainers=2, config=None, idle=False, modes=None, details=False):
    """{"server0", "server0_startup", ..., "trainer0", "trainer0_startup", ...} as plain data."""
    out = {}
    put = (lambda p: {"blocks": dumped(p), "vars": dumped_vars(p)}) if details else dumped
    config = config or {}
    for i, endpoint in enumerate(SERVERS[:servers]):
        t, _ = transpiler_of(fluid, build, mode, 0, servers, trainers, config)
        program, startup = t.get_pserver_programs(endpoint)
        out["server%d" % i], out["server%d_startup" % i] = put(program), put(startup)
    for i in range(trainers):
        t, startup = transpiler_of(fluid, build, mode, i, servers, trainers, config)
        out["trainer%d" % i] = put(t.get_trainer_program(wait_port=False))
        out["trainer%d_startup" % i] = put(startup)
    return out


def summed(fluid, kind, build):
    """The programs of the first of two processes that add up gradients. Connecting them is left out: Fluid 1.8.5
    has the ops for that with CUDA only."""
    base = getattr(importlib.import_module(fluid.__name__ + ".transpiler.collective"), kind)

    class Apart(base):
        def _init_communicator(self, *args, **kwargs):
            pass

        def _connect(self, wait_port):
            if kind == "SingleProcessMultiThread":
                super()._connect(wait_port)

    main, startup = fresh(fluid, build)
    Apart().transpile(startup_program=startup, main_program=main, rank=0, endpoints=SERVERS[:2],
                      current_endpoint=SERVERS[0], wait_port=False)
    return {"main": dumped(main), "startup": dumped(startup)}


SUMMED = ["%s.%s" % (kind, name) for kind in ("GradAllReduce", "LocalSGD", "SingleProcessMultiThread")
          for name in ("dense", "lr_decay", "sliced")]


def recorded(fluid):
    found = {name: summed(fluid, name.split(".")[0], GOLDEN[name.split(".")[1]]) for name in SUMMED}
    for name, (build, how) in sorted(CASES.items()):
        for mode in how.get("modes", MODES):
            try:
                found["%s.%s" % (name, mode)] = transpiled(fluid, build, mode, details=True, **how)
            except Exception as e:  # what the original refuses or fails at
                found["%s.%s" % (name, mode)] = {"error": type(e).__name__, "text": str(e).strip()[-300:]}
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--fluid", default="anabranch.fluid")
    parser.add_argument("file")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    found = recorded(importlib.import_module(args.fluid))
    with gzip.GzipFile(args.file, "wb", mtime=0) as out:
        out.write(json.dumps(found, sort_keys=True, separators=(",", ":")).encode())
    for name, value in sorted(found.items()):
        if "error" in value:
            print(name, value["error"], value["text"].splitlines()[-1:], file=sys.stderr)


if __name__ == "__main__":
    main()
