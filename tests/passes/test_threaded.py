"""The premise of this folder's tests: with several threads the nodes of a plan do run at the same time."""
import numpy as np
import pytest
from threaded_runs import Meeting
from trained_nets import MODELS, PASSES, Trained


def nodes_meet(model, on, replicas, threads, patience_s=20):
    trained = Trained(MODELS[model])
    target, scope, rng = trained.compiled(on, replicas, threads=threads), trained.begin(), np.random.RandomState(0)
    meeting = Meeting(patience_s)
    trained.exe.run(target, feed=trained.feed(rng), scope=scope)
    target._engine.set_probe(meeting)
    trained.exe.run(target, feed=trained.feed(rng), scope=scope)
    return meeting.met


@pytest.mark.parametrize("on", [[], PASSES], ids=["no passes", "all passes"])
@pytest.mark.parametrize("model", sorted(MODELS))
def test_nodes_run_at_the_same_time(model, on):
    assert nodes_meet(model, on, replicas=2, threads=2)


def test_nodes_of_one_replica_run_at_the_same_time():
    assert nodes_meet("sparse_ctr", [], replicas=1, threads=2)


def test_one_thread_runs_one_node_at_a_time():
    assert not nodes_meet("mlp", PASSES, 2, threads=1, patience_s=0.2)
