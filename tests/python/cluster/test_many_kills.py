"""Servers and workers are killed with SIGKILL at random moments: what was acknowledged is there, nothing twice.

In each step, each replica of each worker adds 1 to its own element of a dense parameter, to its own row of a table, and
to the last row, which all replicas touch. A worker writes a line when a step is over, so that when all has ended, each
counter is at least the number of that worker's lines, and at most as much more as the worker was killed: each time, one
step may have been under way. `./dev simulate --kills` kills more often.
"""
import os

import pytest
from cluster_processes import networked
from killed_clusters import Cluster


def killed(folder, mode, level, kills, replicas=1, workers=2, kinds=("server", "worker")):
    """Kills so often, and checks that nothing was lost or doubled."""
    seed = int(os.environ.get("ANABRANCH_KILLS_SEED", "0"))
    cluster = Cluster(folder, mode, level, replicas, kills + level + 1000 * seed, workers)
    try:
        for _ in range(kills):
            cluster.kill(kinds)
        counters = cluster.end()
        steps = [cluster.steps(worker) for worker in cluster.workers]
        deaths = {role: starts - 1 for role, starts in sorted(cluster.starts.items())}
        print("%s, level %d, %d replicas: killed %s; steps acknowledged %s, counted %s" % (
            mode, level, replicas, deaths, steps, counters))
        assert sum(deaths.values()) == kills
        assert set(counters) == {"dense", "table"}
        own = range(workers * replicas)
        for counted in counters.values():
            for i in own:
                worker = i // replicas
                assert steps[worker] <= counted[i] <= steps[worker] + deaths["worker", worker], cluster.told()
        assert counters["table"][-1] == sum(counters["table"][i] for i in own)
    finally:
        cluster.close()


@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("mode, level", [("async", 1), ("sync", 1)])
def test_some_kills(tmp_path, mode, level, replicas):
    killed(tmp_path, mode, level, 4, replicas)


@pytest.mark.slow(12)
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("mode, level", [("async", 1), ("async", 2), ("sync", 1)])
def test_many_kills(tmp_path, mode, level, replicas):
    killed(tmp_path, mode, level, int(os.environ.get("ANABRANCH_KILLS", "24")) // 6, replicas)


@pytest.mark.slow(12)
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not networked(), reason="built without gRPC")
@pytest.mark.parametrize("mode, workers", [("fleet_sync", 2), ("fleet_half_async", 2), ("fleet_async", 2),
                                           ("fleet_geo", 1), ("fleet_geo+grown", 1)])
def test_killed_servers_of_replicas_and_strategies(tmp_path, mode, workers):
    """Steps of the last three end before servers have acknowledged them, so no worker is killed. One GEO worker sends
    whole differences."""
    killed(tmp_path, mode, 1, int(os.environ.get("ANABRANCH_KILLS", "24")) // 12, 2, workers, kinds=("server",))
