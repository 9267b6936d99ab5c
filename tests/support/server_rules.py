"""Learning rates, clips, regularizers and update rules, and training with each of them under each strategy."""
import threading
import warnings

import numpy as np
from parameter_servers import OPTIMIZERS, Cluster, batch, local, network

import anabranch.fluid as fluid
from anabranch import _core
from anabranch.fluid import remote
from anabranch.fluid.communicator import Communicator
from anabranch.fluid.layers.learning_rate_scheduler import _decay_step_counter
from anabranch.fluid.transpiler import op_kinds
from anabranch.fluid.transpiler.config import DistributedMode
from anabranch.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler

L, O, C, R = fluid.layers, fluid.optimizer, fluid.clip, fluid.regularizer
STRATEGIES = ("sync", "half_async", "async", "geo")
STEPS = 6


def number(value):
    return L.fill_constant([1], "float32", value)


def switched(counter=_decay_step_counter):
    """A rate that the script writes: with Switch and assign, into a persistable variable."""
    step, rate = counter(), L.create_global_var([1], 0.1, "float32", persistable=True, name="my_rate")
    with L.Switch() as outer:
        with outer.case(step < number(2)):
            L.assign(number(0.2), rate)
        with outer.default(), L.Switch() as inner, inner.case(step < number(4)):
            L.assign(rate * 0.5, rate)
    return rate


def chosen(counter=_decay_step_counter):
    step = counter()
    return L.cond(step < number(3), lambda: number(0.1), lambda: L.scale(step, 0.01))


def looped():
    return L.while_loop(lambda i: i < number(3), lambda i: [i + 1.0], [number(0)])[0] * 0.01


def own_counter():
    return L.cast(L.autoincreased_step_counter(), "float32")


RATES = {
    "noam_decay": lambda: L.noam_decay(64, 4),
    "exponential_decay": lambda: L.exponential_decay(0.1, 2, 0.5, staircase=True),
    "natural_exp_decay": lambda: L.natural_exp_decay(0.1, 2, 0.5),
    "inverse_time_decay": lambda: L.inverse_time_decay(0.1, 2, 0.5),
    "polynomial_decay": lambda: L.polynomial_decay(0.1, 3, 0.01, 2.0),
    "polynomial_decay(cycle)": lambda: L.polynomial_decay(0.1, 3, 0.01, cycle=True),
    "piecewise_decay": lambda: L.piecewise_decay([2, 4], [0.1, 0.05, 0.01]),
    "cosine_decay": lambda: L.cosine_decay(0.1, 2, 3),
    "linear_lr_warmup": lambda: L.linear_lr_warmup(0.1, 3, 0.0, 0.1),
    "linear_lr_warmup(piecewise)": lambda: L.linear_lr_warmup(
        L.piecewise_decay([2, 4], [0.1, 0.05, 0.01]), 3, 0.0, 0.1),
    "scaled": lambda: L.exponential_decay(0.1, 2, 0.5) * 0.5,
    "variable": lambda: L.create_global_var([1], 0.05, "float32", persistable=True, name="my_rate"),
    "cond": chosen,
    "switch_case": lambda: L.switch_case(L.cast(_decay_step_counter(), "int32"),
                                         {0: lambda: number(0.1), 1: lambda: number(0.05)}, lambda: number(0.02)),
    "cond(own counter)": lambda: chosen(own_counter),
    "Switch": switched,
    "while_loop": looped,
    "fed": lambda: L.reduce_mean(fluid.default_main_program().global_block().var("y")),
}

#: Rates that servers refuse -> what the error names, by strategy.
_LOOP, _BATCH = ("while", "learning rate"), ("learning rate", "depends on y")
REFUSED = {("while_loop", s): _LOOP for s in ("sync", "async", "half_async")}
REFUSED.update({("fed", s): _BATCH for s in ("sync", "async", "half_async")})
REFUSED.update({("Switch", s): ("my_rate", "accumulates") for s in ("async", "half_async")})
REFUSED.update({("cond(own counter)", s): ("@STEP_COUNTER@", "counts") for s in ("async", "half_async")})


def attached(clip):
    def give(optimizer, **kwargs):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            C.set_gradient_clip(clip)
        return optimizer(**kwargs)
    return give


def given(**settings):
    return lambda optimizer, **kwargs: optimizer(**settings, **kwargs)


CLIPS = {
    "GradientClipByValue": given(grad_clip=C.GradientClipByValue(0.01)),
    "GradientClipByNorm": given(grad_clip=C.GradientClipByNorm(0.05)),
    "GradientClipByGlobalNorm": given(grad_clip=C.GradientClipByGlobalNorm(0.05)),
    "GradientClipByGlobalNorm(need_clip)": given(grad_clip=C.GradientClipByGlobalNorm(
        0.05, need_clip=lambda p: ".b_" not in p.name)),
    "set_gradient_clip(ByValue)": attached(C.GradientClipByValue(0.01)),
    "set_gradient_clip(ByNorm)": attached(C.GradientClipByNorm(0.05)),
    "set_gradient_clip(ByGlobalNorm)": attached(C.GradientClipByGlobalNorm(0.05)),
    "L1Decay": given(regularization=R.L1Decay(0.01)),
    "L2Decay": given(regularization=R.L2Decay(0.01)),
    "L2Decay, GradientClipByGlobalNorm": given(regularization=R.L2Decay(0.01),
                                               grad_clip=C.GradientClipByGlobalNorm(0.05)),
}

RULES = {
    "SGD": O.SGD, "Momentum": lambda *a, **k: O.Momentum(*a, momentum=0.9, **k), "Adagrad": O.Adagrad, "Adam": O.Adam,
    "Adamax": O.Adamax, "DecayedAdagrad": O.DecayedAdagrad, "Adadelta": O.Adadelta, "RMSProp": O.RMSProp,
    "Ftrl": O.Ftrl, "Lamb": O.Lamb, "LarsMomentum": lambda *a, **k: O.LarsMomentum(*a, momentum=0.9, **k),
    "Dpsgd": lambda *a, **k: O.Dpsgd(*a, clip=10.0, batch_size=16.0, sigma=0.0, **k),
}


def register(rate="0.05", clip=None, rule="SGD"):
    """The name by which `parameter_servers.network` builds this optimizer."""
    name = "%s %s %s" % (rate, clip, rule)

    def build():
        value = RATES[rate]() if rate in RATES else float(rate)
        make = CLIPS[clip] if clip else given()
        return make(RULES[rule], learning_rate=value)

    OPTIMIZERS[name] = build
    return name


def config_of(strategy):
    config = fluid.DistributeTranspilerConfig()
    config.sync_mode = strategy == "sync"
    config.runtime_split_send_recv = strategy != "sync"
    config.half_async = strategy == "half_async"
    config.geo_sgd_mode = strategy == "geo"
    return config


def feeds_of(trainers, step):
    return [batch(step, (4 * t, 4 * t + 4), False) for t in range(trainers)]


def in_sync(name, trainers=2, servers=1):
    """(losses of the first worker, those of replicas in one process)."""
    cluster, losses = Cluster(trainers, servers, name), []

    def train(trainer, run):
        for step in range(STEPS):
            value = run(feeds_of(trainers, step)[trainer])[0]
            losses.extend([value] if trainer == 0 else [])

    cluster.run(train, 20)
    expected = local(trainers, name, False, [feeds_of(trainers, step) for step in range(STEPS)])[0]
    return np.ravel(losses), np.ravel([one if trainers == 1 else one[0] for one in expected])


def transpiled(name, strategy, role=0, trainers=1, servers=1, endpoint="local:9000"):
    """(transpiler, main program, startup program, loss)."""
    main, startup, loss = network(name)
    config = config_of(strategy)
    cut = GeoSgdTranspiler(config) if strategy == "geo" else fluid.DistributeTranspiler(config)
    endpoints = ["%s%d" % (endpoint, s) for s in range(servers)]
    cut.transpile(role, program=main, startup_program=startup, pservers=",".join(endpoints), trainers=trainers,
                  sync_mode=strategy == "sync")
    return cut, main, startup, loss


def receives_of(startup):
    """A program that only receives the parameters, as a worker's startup program does."""
    made = startup.clone()
    block = made.global_block()
    op_kinds.remove_ops(block, [op for op in block.ops if op.type not in ("recv", "concat")])
    return made


class Steps:
    """A record of each step: the loss and gradients of the worker, the parameters of the server."""

    def __init__(self, cut):
        self.losses, self.gradients, self.parameters = [], [], []
        self.names = dict(cut._placement.gradients)
        self.served = fluid.Scope()

    def look(self):
        self.parameters.append({name: np.array(self.served.find_var(name).get_tensor()) for name in self.names})

    def add(self, loss, gradients):
        self.losses.append(loss.item())
        self.gradients.append(dict(zip(self.names, gradients)))
        self.look()


def with_communicator(name, strategy, waits=False, look=lambda main, exe: None):
    """(Steps of one worker, its server's program). With `waits`, the worker receives all parameters after each step,
    when the server has applied its gradients. `look` is called with the program after the last step."""
    cut, main, startup, loss = transpiled(name, strategy)
    server, begin = cut.get_pserver_programs(cut.pserver_endpoints[0])
    steps = Steps(cut)
    fluid.Executor().run(begin, scope=steps.served)
    listening = remote.server_of(server, steps.served)
    steps.look()
    thread = threading.Thread(target=listening.serve, daemon=True)
    thread.start()
    settings = {"push_vars": cut.vars_info, "trainers": 1, "push_nums": 1} if strategy == "geo" else {}
    mode = {"geo": DistributedMode.GEO, "async": DistributedMode.ASYNC, "half_async": DistributedMode.HALF_ASYNC}
    exe, scope = fluid.Executor(), fluid.Scope()
    program = cut.get_trainer_program(wait_port=False)
    with fluid.scope_guard(scope):
        communicator = Communicator(program, mode[strategy], settings, {})
        if strategy == "geo":
            communicator.start()
        exe.run(startup)
        if strategy != "geo":
            communicator.start()
        receives = receives_of(startup)
        for step in range(STEPS):
            found = exe.run(program, feed=feeds_of(1, step)[0], fetch_list=[loss, *steps.names.values()])
            if strategy == "geo" or waits:
                _core.ps_flush()
            if waits:
                exe.run(receives)
            steps.add(found[0], found[1:])
        look(main, exe)
        communicator.stop()
    _core.ps_complete(0)
    thread.join(20)
    assert not thread.is_alive()
    return steps, server
