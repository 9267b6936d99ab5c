"""The strategies of servers, and optimizers made by fleet."""
import anabranch.fluid as fluid
from anabranch.fluid.incubate.fleet.parameter_server.distribute_transpiler import StrategyFactory

FACTORIES = {"sync": StrategyFactory.create_sync_strategy, "async": StrategyFactory.create_async_strategy,
             "half_async": StrategyFactory.create_half_async_strategy,
             "geo": lambda: StrategyFactory.create_geo_strategy(10)}


class FleetOptimizer:
    """Minimizes as fleet does, in the startup program of now."""

    def __init__(self, fleet, optimizer, strategy):
        self.optimizer = fleet.distributed_optimizer(optimizer, strategy)

    def minimize(self, loss):
        self.optimizer.minimize(loss, startup_program=fluid.default_startup_program())
