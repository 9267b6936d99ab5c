"""Role makers of fleet: what they read from the environment, and what they refuse."""
import numpy
import pytest
from fleet_roles import SERVERS, worker

from anabranch.fluid.incubate.fleet.base import role_maker as roles
from anabranch.fluid.incubate.fleet.base.mpi_environment import expanded
from anabranch.fluid.incubate.fleet.base.role_maker import Role

pytestmark = pytest.mark.usefixtures("bare_environment")

CLOUD = {"TRAINING_ROLE": "TRAINER", "PADDLE_PSERVERS_IP_PORT_LIST": ",".join(SERVERS), "PADDLE_TRAINERS_NUM": "3",
         "PADDLE_TRAINER_ID": "1"}
SERVER = dict(CLOUD, TRAINING_ROLE="PSERVER", POD_IP="127.0.0.1", PADDLE_PORT="6175")
OLD = {"PADDLE_TRAINING_ROLE": "PSERVER", "PADDLE_PSERVERS": "h1,h2", "PADDLE_PORT": "6174", "PADDLE_TRAINERS_NUM": "2",
       "CURRENT_ENDPOINT": "h2:6174"}
ALONE = {"PADDLE_TRAINER_ID": "1", "PADDLE_TRAINER_ENDPOINTS": "a:1,b:2", "PADDLE_CURRENT_ENDPOINT": "b:2"}


def test_a_worker_of_the_environment(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINER_ENDPOINTS", "a:1,b:2,c:3")
    for name, value in CLOUD.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker()
    assert (role.is_worker(), role.is_server(), role.worker_index(), role.worker_num()) == (True, False, 1, 3)
    assert role.get_pserver_endpoints() == SERVERS and role.get_trainer_endpoints() == ["a:1", "b:2", "c:3"]
    assert not role.is_first_worker() and role.server_num() == 2


@pytest.mark.parametrize("env, index, count", [(SERVER, 1, 3), (OLD, 1, 2)])
def test_a_server_of_the_environment(monkeypatch, env, index, count):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker()
    assert (role.is_server(), role.server_index(), role.worker_num()) == (True, index, count)


def test_a_worker_among_workers(monkeypatch):
    for name, value in ALONE.items():
        monkeypatch.setenv(name, value)
    role = roles.PaddleCloudRoleMaker(is_collective=True)
    assert (role.is_worker(), role.worker_index(), role.worker_num(), role.get_pserver_endpoints()) == (True, 1, 2, [])


BAD = [(CLOUD, name, None, False) for name in CLOUD] + [(SERVER, "POD_IP", None, False)]
BAD += [(CLOUD, "TRAINING_ROLE", "BOSS", False), (CLOUD, "PADDLE_TRAINERS_NUM", "x", False),
        (CLOUD, "PADDLE_TRAINERS_NUM", "0", False), (CLOUD, "PADDLE_TRAINER_ID", "3", False),
        (CLOUD, "PADDLE_TRAINER_ID", "-1", False), (CLOUD, "PADDLE_PSERVERS_IP_PORT_LIST", "1.1", False),
        (CLOUD, "PADDLE_PSERVERS_IP_PORT_LIST", "a:1,a:1", False), (ALONE, "PADDLE_TRAINER_ENDPOINTS", None, True),
        (ALONE, "PADDLE_TRAINER_ID", "2", True)]


@pytest.mark.parametrize("env, name, value, alone", BAD)
def test_a_wrong_environment_is_named(monkeypatch, env, name, value, alone):
    for key, text in env.items():
        monkeypatch.setenv(key, text)
    monkeypatch.delenv(name) if value is None else monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=name):
        roles.PaddleCloudRoleMaker(is_collective=alone).generate_role()


def test_a_server_that_is_not_in_the_list_is_named(monkeypatch):
    for key, text in dict(SERVER, POD_IP="127.0.0.9").items():
        monkeypatch.setenv(key, text)
    with pytest.raises(ValueError, match="127.0.0.9:6175"):
        roles.PaddleCloudRoleMaker().generate_role()


@pytest.mark.parametrize("kind, args", [
    (ValueError, (-1, 1, 2, ["a:1"])), (TypeError, ("0", 1, 2, ["a:1"])), (TypeError, (0, "w", 2, ["a:1"])),
    (TypeError, (0, 5, 2, ["a:1"])), (ValueError, (0, 1, 0, ["a:1"])), (TypeError, (0, 1, "2", ["a:1"])),
    (ValueError, (0, 1, 2, [])), (TypeError, (0, 1, 2, "a:1")), (ValueError, (0, 1, 2, ["a:1", "a:1"])),
    (ValueError, (3, 2, 2, ["a:1"])), (ValueError, (2, 1, 2, ["a:1"])), (TypeError, (0, 1, 2, None)),
    (TypeError, (0, 1, 2, [3]))])
def test_given_roles_are_checked(kind, args):
    with pytest.raises(kind):
        roles.UserDefinedRoleMaker(*args)


@pytest.mark.parametrize("kind, args", [
    (ValueError, (2, ["a:1", "b:2"])), (ValueError, (-1, ["a:1"])), (TypeError, ("0", ["a:1"])), (ValueError, (0, [])),
    (TypeError, (0, None)), (TypeError, (0, "a:1")), (ValueError, (0, ["a:1", "a:1"]))])
def test_given_workers_are_checked(kind, args):
    with pytest.raises(kind):
        roles.UserDefinedCollectiveRoleMaker(*args)


@pytest.mark.parametrize("env, role, index, servers", [
    ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "4"}, Role.SERVER, 1,
     ["127.0.0.1", "127.0.0.1"]),
    ({"PMI_RANK": "3", "PMI_SIZE": "4", "PADDLE_HOSTS": "a,b"}, Role.WORKER, 1, ["a", "b"]),
    ({"SLURM_PROCID": "0", "SLURM_NTASKS": "4", "SLURM_JOB_NODELIST": "n[1-2]", "SLURM_JOB_ID": "7"}, Role.SERVER, 0,
     ["n1", "n2"])])
def test_schedulers_say_which_worker_this_is(monkeypatch, env, role, index, servers):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    made = roles.MPISymetricRoleMaker()
    made.generate_role()
    assert (made._role, made.role_id(), made.worker_num()) == (role, index, 2)
    assert [e.split(":")[0] for e in made.get_pserver_endpoints()] == servers
    assert len(set(made.get_pserver_endpoints())) == 2
    assert all(60001 <= int(e.split(":")[1]) <= 64000 for e in made.get_pserver_endpoints())


@pytest.mark.parametrize("env, word", [
    ({}, "no scheduler"), ({"PMI_RANK": "0", "PMI_SIZE": "3"}, "must be even"),
    ({"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, "PADDLE_HOSTS")])
def test_what_a_scheduler_does_not_say_is_named(monkeypatch, env, word):
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ValueError, match=word):
        roles.MPISymetricRoleMaker().generate_role()


def test_short_lists_of_hosts():
    assert expanded("n[08-10,2],m") == ["n08", "n09", "n10", "n2", "m"]


def test_without_a_role_maker_the_environment_decides(monkeypatch):
    assert type(roles.role_of_environment()) is roles.LocalRoleMaker
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "2")
    assert type(roles.role_of_environment()) is roles.MPISymetricRoleMaker
    monkeypatch.setenv("TRAINING_ROLE", "TRAINER")
    assert type(roles.role_of_environment()) is roles.PaddleCloudRoleMaker


def test_one_worker_reduces_alone():
    role, out = worker(count=1), numpy.zeros(2)
    role.all_reduce_worker(numpy.array([1.0, 2.0]), out, "max")
    taken = [0, 0]
    role.all_reduce_worker([1, 2], taken)
    role.barrier_worker()
    assert out.tolist() == [1, 2] and taken == [1, 2] and role.all_gather(5) == [5]
    with pytest.raises(ValueError):
        role.all_reduce_worker([1], [1], "mean")
    with pytest.raises(ValueError):
        role.all_reduce_worker([1], [1, 2])
