"""Optimizers that wrap others, averages of parameters and mixed precision with each strategy of parameter servers:
right, or refused by name when the program is transpiled, in every role."""
import numpy as np
import pytest
import server_rules as rules
from parameter_servers import OPTIMIZERS, Cluster, local
from server_factories import FACTORIES, FleetOptimizer

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.collective import DistributedStrategy
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler

O = fluid.optimizer
ROLES = (role_maker.Role.WORKER, role_maker.Role.SERVER)


def recomputed(loss, around):
    optimizer = O.RecomputeOptimizer(O.SGD(0.1))
    optimizer._set_checkpoints([next(op.output("Out")[0] for op in loss.block.ops if op.type == "relu")])
    around(optimizer).minimize(loss)


def averaged(loss, around):
    around(O.SGD(0.1)).minimize(loss)
    return O.ModelAverage(0.5, min_average_window=2, max_average_window=4)


def moving(steps=False):
    def minimize(loss, around):
        around(O.SGD(0.1)).minimize(loss)
        counter = fluid.layers.autoincreased_step_counter("@MY_STEPS@") if steps else None
        average = O.ExponentialMovingAverage(0.9, thres_steps=counter)
        average.update()
        return average
    return minimize


def mixed(dynamic):
    def minimize(loss, around):
        decorate = fluid.contrib.mixed_precision.decorate
        around(decorate(O.SGD(0.1), init_loss_scaling=8.0, use_dynamic_loss_scaling=dynamic)).minimize(loss)
    return minimize


WRAPPERS = {
    "DGCMomentum": lambda loss, around: around(O.DGCMomentumOptimizer(0.1, 0.9, 0)).minimize(loss),
    "Lookahead": lambda loss, around: around(O.LookaheadOptimizer(O.SGD(0.1), 0.5, 2)).minimize(loss),
    "Recompute": recomputed,
    "Pipeline": lambda loss, around: around(O.PipelineOptimizer(O.SGD(0.1))).minimize(loss),
    "ModelAverage": averaged,
    "ExponentialMovingAverage": moving(),
    "ExponentialMovingAverage(thres_steps)": moving(steps=True),
    "mixed_precision": mixed(False),
    "mixed_precision(dynamic)": mixed(True),
}
#: Wrapper that servers refuse -> text of the error.
REFUSED = {"Lookahead": "LookaheadOptimizer is supported in GEO training only",
           "mixed_precision(dynamic)": "set use_dynamic_loss_scaling=False"}
AVERAGES = [name for name in WRAPPERS if "Average" in name]


class Wrapper:
    """Has the method of optimizers that `network` calls."""

    def __init__(self, build):
        self.build, self.average = build, None

    def minimize(self, loss, around=lambda optimizer: optimizer):
        made = self.build(loss, around)
        self.average = made if hasattr(made, "apply_program") else None


def register(name):
    """The name under which `network` builds a wrapper; `made` gets the wrappers in their order."""
    made = []

    def build():
        made.append(Wrapper(WRAPPERS[name]))
        return made[-1]

    OPTIMIZERS[name] = build
    return made


def in_one_process(name):
    """(losses, averages of the parameters) of one process."""
    made = register(name)
    main, startup, loss = rules.network(name)
    exe, scope = fluid.Executor(), fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(startup)
        losses = [exe.run(main, feed=rules.feeds_of(1, step)[0], fetch_list=[loss])[0].item()
                  for step in range(rules.STEPS)]
        return losses, averages(made[0].average, main, exe)


def averages(average, main, exe):
    """Parameter -> its average, in the current scope."""
    if average is None:
        return {}
    with average.apply(exe):
        return {p.name: np.array(fluid.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()}


@pytest.mark.parametrize("strategy", rules.STRATEGIES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_right_or_refused(name, strategy):
    made = register(name)
    if name in REFUSED and strategy != "geo":
        for trainer in (0, 1):
            with pytest.raises(NotImplementedError, match=REFUSED[name]):
                rules.transpiled(name, strategy, trainer, 2)
        return
    if strategy == "sync":
        losses, expected = rules.in_sync(name)
        np.testing.assert_array_equal(losses, expected)
        return
    found = {}

    def look(main, exe):
        found.update(averages(made[0].average, main, exe))

    steps, server = rules.with_communicator(name, strategy, waits=strategy == "async", look=look)
    losses, expected = in_one_process(name)
    np.testing.assert_array_equal(steps.losses, losses)
    assert found.keys() == expected.keys()
    for parameter, value in found.items() if strategy != "async" else ():  # which receives after the average is made
        np.testing.assert_array_equal(value, expected[parameter], parameter)


def divided(feeds, parts):
    """Each feed of a worker as those of its replicas."""
    return [dict(zip(feed, rows)) for feed in feeds
            for rows in zip(*(np.array_split(value, parts) for value in feed.values()))]


@pytest.mark.parametrize("name", AVERAGES)
@pytest.mark.parametrize("servers, replicas", [(1, 1), (2, 1), (1, 2)])
def test_averages_of_sync_workers_are_those_of_one_process(name, servers, replicas):
    made = register(name)
    cluster, found = Cluster(2, servers, name, replicas=replicas), [{}, {}]
    feeds = [rules.feeds_of(2, step) for step in range(rules.STEPS)]

    def train(trainer, run):
        for feed in feeds:
            run(feed[trainer])
        average, exe, scope = made[trainer].average, fluid.Executor(), cluster.scopes[trainer]
        exe.run(average.apply_program, scope=scope)
        found[trainer].update({p.name: np.array(scope.find_var(p.name).get_tensor())
                               for p in cluster.programs[trainer][0].all_parameters()})

    cluster.run(train, 20)
    del made[:]
    _, parameters = local(2 * replicas, name, False, [divided(feed, replicas) for feed in feeds],
                          look=lambda exe, scope: exe.run(made[0].average.apply_program, scope=scope))
    for trainer in range(2):
        for parameter, value in found[trainer].items():
            np.testing.assert_allclose(value, parameters[parameter], rtol=1e-4 if replicas > 1 else 0,
                                       atol=1e-6 if replicas > 1 else 0, err_msg=parameter)


@pytest.mark.parametrize("strategy", rules.STRATEGIES)
@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("name", WRAPPERS)
def test_fleet_accepts_what_transpilers_accept(name, role, strategy):
    fleet = DistributedTranspiler()
    fleet.init(role_maker.UserDefinedRoleMaker(current_id=0, role=role, worker_num=2,
                                               server_endpoints=["127.0.0.1:6174"]))
    register(name)

    def wrap(wrapper):
        wrapper.minimize = lambda loss: Wrapper.minimize(
            wrapper, loss, lambda optimizer: FleetOptimizer(fleet, optimizer, FACTORIES[strategy]()))
        return wrapper

    if name in REFUSED and strategy != "geo":
        with pytest.raises(NotImplementedError, match=REFUSED[name]):
            rules.network(name, wrap=wrap)
        return
    rules.network(name, wrap=wrap)
    kinds = [op.type for op in fleet.main_program.global_block().ops]
    assert ("listen_and_serv" in kinds) == (role == role_maker.Role.SERVER)


@pytest.mark.parametrize("role", ROLES)
def test_local_sgd_is_for_workers_without_servers(role):
    fleet, strategy = DistributedTranspiler(), DistributedStrategy()
    strategy.use_local_sgd = True
    fleet.init(role_maker.UserDefinedRoleMaker(current_id=0, role=role, worker_num=2,
                                               server_endpoints=["127.0.0.1:6174"]))
    with pytest.raises(TypeError, match="strategy must be a SyncStrategy, .* got DistributedStrategy"):
        fleet.distributed_optimizer(O.SGD(0.1), strategy)


def test_an_average_of_a_table_on_servers_is_refused_by_name():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64")
        rows = fluid.layers.embedding(ids, [50, 4], is_sparse=True, is_distributed=True, param_attr="table")
        loss = fluid.layers.mean(fluid.layers.fc(rows, 1))
        O.SGD(0.1).minimize(loss)
        O.ModelAverage(0.15)
    with pytest.raises(NotImplementedError, match="average_accumulates follows the updates of the table table"):
        fluid.DistributeTranspiler().transpile(0, main, "local:1,local:2", 2, True, startup)


def test_an_average_that_reads_the_counter_of_the_rate_is_refused_by_name():
    def minimize(loss, around):
        around(O.SGD(fluid.layers.exponential_decay(0.1, 2, 0.5))).minimize(loss)
        counter = fluid.default_main_program().global_block().var("@LR_DECAY_COUNTER@")
        O.ExponentialMovingAverage(0.9, thres_steps=counter).update()

    OPTIMIZERS["shared counter"] = lambda: Wrapper(minimize)
    with pytest.raises(NotImplementedError, match="@LR_DECAY_COUNTER@.*thres_steps"):
        rules.transpiled("shared counter", "sync", 0, 2)
