"""Each learning rate, clip, regularizer and rule under each strategy of parameter servers: right, or refused by
name when the program is transpiled, in every role. docs/clusters.md has the table."""
import itertools

import numpy as np
import pytest
import server_rules as rules
from server_factories import FACTORIES, FleetOptimizer
from shares import todays

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import DistributedTranspiler
from anabranch.fluid.transpiler.op_kinds import COUNTER

CELLS = [{"rate": rate} for rate in rules.RATES] + [{"clip": clip} for clip in rules.CLIPS] + \
        [{"rule": rule} for rule in rules.RULES]


def label(cell):
    return ",".join(cell.values())


def values(scope, names):
    return {name: np.array(scope.find_var(name).get_tensor()).item() for name in names}


def rate_of(server):
    return next(op.input("LearningRate")[0] for block in server.blocks for op in block.ops if op.input("LearningRate"))


def alone(name, steps, rate=None):
    """Losses, or the values of the rate, of one process."""
    main, startup, loss = rules.network(name)
    exe, scope = fluid.Executor(), fluid.Scope()
    exe.run(startup, scope=scope)
    return np.ravel([exe.run(main, feed=rules.feeds_of(1, step)[0], fetch_list=[rate or loss], scope=scope)[0]
                     for step in range(steps)])


def check_refused(name, strategy, words):
    """The error falls in `transpile` and in `minimize` of fleet, at workers and servers."""
    for trainer in (0, 1):
        with pytest.raises(NotImplementedError) as told:
            rules.transpiled(name, strategy, trainer, 2)
        assert all(word in str(told.value) for word in words)
    for role in (role_maker.Role.WORKER, role_maker.Role.SERVER):
        with pytest.raises(NotImplementedError) as told:
            by_fleet(name, strategy, role)
        assert all(word in str(told.value) for word in words)


def by_fleet(name, strategy, role):
    """A fleet whose optimizer has minimized."""
    fleet = DistributedTranspiler()
    fleet.init(role_maker.UserDefinedRoleMaker(current_id=0, role=role, worker_num=2,
                                               server_endpoints=["127.0.0.1:6174"]))
    rules.network(name, wrap=lambda optimizer: FleetOptimizer(fleet, optimizer, FACTORIES[strategy]()))
    return fleet


@pytest.mark.parametrize("strategy", rules.STRATEGIES)
@pytest.mark.parametrize("cell", CELLS, ids=label)
def test_right_or_refused(cell, strategy):
    name = rules.register(**cell)
    if words := rules.REFUSED.get((cell.get("rate"), strategy)):
        check_refused(name, strategy, words)
        return
    if strategy == "sync":
        losses, expected = rules.in_sync(name)
        np.testing.assert_array_equal(losses, expected)
        return
    steps, server = rules.with_communicator(name, strategy, waits=strategy == "async")
    late = cell.get("rate") == "noam_decay" and strategy != "geo"  # by one step, as in Fluid 1.8.5
    counts = strategy != "geo" and server.global_block().has_var(COUNTER)
    if strategy == "async" and counts:
        check_updates(name, steps, server, late)
    elif not late:
        np.testing.assert_array_equal(steps.losses, alone(name, rules.STEPS))
    if counts:
        check_rate(name, steps.served, server, rules.STEPS, late)


def check_updates(name, steps, server, late):
    """Each gradient was applied once, with the rate of its step, or of the step before or after it: the messages with
    gradients and the one with the number of the step come in any order."""
    rates = [0.0] * (1 + late) + list(alone(name, rules.STEPS + 1, rate_of(server)))
    for step, gradients in enumerate(steps.gradients):
        for parameter, gradient in gradients.items():
            moved = steps.parameters[step][parameter] - steps.parameters[step + 1][parameter]
            assert any(np.allclose(moved, rate * gradient, rtol=1e-4, atol=1e-7) for rate in rates[step:step + 3]), \
                (step, parameter, rates[step:step + 3])


def check_rate(name, scope, server, steps, late):
    """Servers are at the step of the workers, up to one, and their rate is that of this step."""
    rate = rate_of(server)
    found = values(scope, [COUNTER, rate])
    assert steps - 1 <= found[COUNTER] <= steps
    expected = alone(name, steps + 1, rate)
    np.testing.assert_allclose(found[rate], expected[int(found[COUNTER]) - late], rtol=1e-6)


@pytest.mark.parametrize("strategy", rules.STRATEGIES)
@pytest.mark.parametrize("role", [role_maker.Role.WORKER, role_maker.Role.SERVER])
@pytest.mark.parametrize("cell", [{"rate": "piecewise_decay"}, {"rate": "linear_lr_warmup"},
                                  {"clip": "GradientClipByGlobalNorm"}], ids=label)
def test_fleet_accepts_what_transpilers_accept(cell, role, strategy):
    fleet = by_fleet(rules.register(**cell), strategy, role)
    kinds = [op.type for op in fleet.main_program.global_block().ops]
    assert ("listen_and_serv" in kinds) == (role == role_maker.Role.SERVER)


@pytest.mark.parametrize("clip", [c for c in rules.CLIPS if "GlobalNorm" in c])
@pytest.mark.parametrize("trainers, servers", [(1, 2), (3, 1), (3, 2)])
def test_a_common_norm_with_several_servers(clip, trainers, servers):
    losses, expected = rules.in_sync(rules.register(clip=clip, rule="Adam"), trainers, servers)
    np.testing.assert_array_equal(losses, expected)


@pytest.mark.parametrize("clip", ["GradientClipByNorm", "GradientClipByGlobalNorm"])
def test_a_norm_over_a_growable_table_is_refused_by_name(clip):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        ids = fluid.data("ids", [None, 1], "int64", lod_level=1)
        table = fluid.GrowableTable("table", fluid.initializer.Uniform(-1, 1, seed=3))
        rows = fluid.layers.embedding(ids, [-1, 4], is_sparse=True, param_attr=table)
        loss = fluid.layers.mean(fluid.layers.fc(fluid.layers.sequence_pool(rows, "sum"), 1))
        fluid.optimizer.SGD(0.1, grad_clip=getattr(fluid.clip, clip)(0.05)).minimize(loss)
    with pytest.raises(NotImplementedError, match="%s.*growable table table" % clip):
        fluid.DistributeTranspiler().transpile(0, main, "local:1,local:2", 2, True, startup)


ALL_TOGETHER = [(rate, clip, rule) for rate in rules.RATES if (rate, "sync") not in rules.REFUSED
                for clip, rule in itertools.product(rules.CLIPS, rules.RULES)
                if rule != "Dpsgd"]  # which takes neither a clip nor a regularizer


@pytest.mark.slow(13)
def test_all_together_in_sync():
    """All combinations in 16 days."""
    for rate, clip, rule in todays(ALL_TOGETHER, 16):
        losses, expected = rules.in_sync(rules.register(rate, clip, rule))
        np.testing.assert_array_equal(losses, expected, "%s, %s, %s" % (rate, clip, rule))
