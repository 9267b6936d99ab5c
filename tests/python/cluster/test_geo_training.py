"""GEO with one worker that exchanges after each step trains as if it were alone, bit for bit."""
import threading

import numpy as np
import pytest
from parameter_servers import OPTIMIZERS, batch, local, network

import anabranch.fluid as fluid
from anabranch import _core
from anabranch.fluid.communicator import Communicator
from anabranch.fluid.transpiler.config import DistributedMode
from anabranch.fluid.transpiler.geo_sgd_transpiler import GeoSgdTranspiler

STEPS = 6


def served(programs, scope, begun):
    main, startup = programs
    fluid.Executor().run(startup, scope=scope)
    server = _core.PServer(main.desc, scope)
    begun.set()
    server.serve()


@pytest.mark.parametrize("optimizer", sorted(OPTIMIZERS))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("servers", [1, 3])
def test_one_worker_is_alone(optimizer, sparse, servers):
    feeds = [batch(step, (0, 8), sparse) for step in range(STEPS)]
    endpoints = ["local:%d" % (7000 + s) for s in range(servers)]
    main, startup, loss = network(optimizer, sparse)
    cut = GeoSgdTranspiler()
    cut.transpile(0, program=main, startup_program=startup, pservers=",".join(endpoints), trainers=1)
    scopes, threads = [fluid.Scope() for _ in endpoints], []
    for endpoint, scope in zip(endpoints, scopes):
        begun = threading.Event()
        threads.append(threading.Thread(target=served, args=(cut.get_pserver_programs(endpoint), scope, begun)))
        threads[-1].daemon = True
        threads[-1].start()
        assert begun.wait(60)
    exe, scope, losses = fluid.Executor(), fluid.Scope(), []
    with fluid.scope_guard(scope):
        communicator = Communicator(main, DistributedMode.GEO,
                                    {"push_vars": cut.vars_info, "trainers": 1, "push_nums": 1}, {})
        communicator.start()
        exe.run(startup)
        for feed in feeds:
            losses.append(exe.run(main, feed=feed, fetch_list=[loss])[0])
            _core.ps_flush()
        communicator.stop()
    mine = {v.name: np.array(scope.find_var(v.name).get_tensor()) for v in main.all_parameters()}
    _core.ps_complete(0)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    expected, parameters = local(1, optimizer, sparse, [[feed] for feed in feeds])
    np.testing.assert_array_equal(np.ravel(losses), np.ravel(expected))
    for name, value in mine.items():
        np.testing.assert_array_equal(value, parameters[name], name)
    for name, value in mine.items():  # rows that rules with moments move without a lookup, too
        held = [np.array(s.find_var(v.name).get_tensor()) for e, s in zip(endpoints, scopes)
                for v in cut.get_pserver_program(e).list_vars() if v.persistable and v.name.split(".block")[0] == name]
        np.testing.assert_allclose(np.concatenate(held), value, rtol=1e-5, atol=1e-6, err_msg=name)
