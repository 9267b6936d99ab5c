"""Roles and programs of fleet with parameter servers."""
import transpile_cases as cases

import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.base.role_maker import Role
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import distributed_strategy as strategies
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import fleet

SERVERS = ["127.0.0.1:6174", "127.0.0.1:6175"]
Factory = strategies.StrategyFactory
KINDS = {"sync": Factory.create_sync_strategy, "half_async": Factory.create_half_async_strategy,
         "async": Factory.create_async_strategy, "geo": Factory.create_geo_strategy}


def worker(index=0, count=2):
    return roles.UserDefinedRoleMaker(index, Role.WORKER, count, list(SERVERS))


def server(index=0, count=2):
    return roles.UserDefinedRoleMaker(index, Role.SERVER, count, list(SERVERS))


def minimized(role, strategy=None, build=cases.line, optimizer=None):
    fleet.init(role)
    main, startup = fluid.Program(), fluid.Program()
    with fluid.unique_name.guard(), fluid.program_guard(main, startup):
        loss = build(fluid)
        fleet.distributed_optimizer(optimizer or fluid.optimizer.SGD(0.1), strategy).minimize(loss)
    return main, startup
