"""Devices as users see them: places, tensors, flags, memory, profiles. On the simulated device; one process a test."""
import os
import re
import subprocess
import sys

import pytest
from device_runs import pytestmark, run, told  # noqa: F401

import anabranch


def test_places():
    told("""
    assert fluid.is_compiled_with_cuda() and fluid.core.is_compiled_with_cuda()
    assert fluid.core.get_cuda_device_count() == 3 and fluid.Executor().place == fluid.CUDAPlace(0)
    for known in ("mul", "mul_grad", "concat", "transpose2_grad", "fill_constant", "accuracy"):
        assert fluid.core.op_support_gpu(known), known
    assert not fluid.core.op_support_gpu("while") and not fluid.core.op_support_gpu("no_such_op")
    assert fluid.CUDAPlace(None) == fluid.CUDAPlace() != fluid.CUDAPlace(1) and fluid.CUDAPlace(1).gpu_device_id() == 1
    assert fluid.cuda_places(2) == [fluid.CUDAPlace(2)] and len(fluid.cuda_places()) == 3
    assert fluid.cuda_pinned_places() == [fluid.CUDAPinnedPlace()] * 3 and len(fluid.cuda_pinned_places(2)) == 2
    assert {fluid.CUDAPlace(1), fluid.CUDAPlace(1), fluid.CPUPlace(), fluid.CUDAPinnedPlace()} == {
        fluid.CUDAPlace(1), fluid.CPUPlace(), fluid.CUDAPinnedPlace()}
    for place, kind in ((fluid.CPUPlace(), 0), (fluid.CUDAPlace(1), 1), (fluid.CUDAPinnedPlace(), 2)):
        assert place._type() == kind and place._equals(place)
        assert [place.is_cpu_place(), place.is_gpu_place(), place.is_cuda_pinned_place()].index(True) == kind
    import copy, pickle
    assert pickle.loads(pickle.dumps(fluid.CUDAPlace(2))) == copy.deepcopy(fluid.CUDAPlace(2)) == fluid.CUDAPlace(2)
    raises(ValueError, "from 0 to 2, got -1", lambda: fluid.CUDAPlace(-1))
    raises(ValueError, "from 1 to 4096, got 0", lambda: fluid.cuda_pinned_places(0))
    raises(TypeError, "must be a CPUPlace or CUDAPlace", lambda: fluid.Executor(fluid.CUDAPinnedPlace()))
    import warnings
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        config = fluid.core.AnalysisConfig("m")
        config.enable_use_gpu(9)
    assert ["predictors run on the CPU" in str(w.message) for w in told] == [True] and not config.use_gpu()
    """, simdevice_devices=3)


@pytest.mark.parametrize("visible, count", [("0", 1), ("2,1", 2), ("1,7,0", 1), ("", 0)])
def test_visible_devices(visible, count):
    told("""
    import os
    import warnings
    os.environ["CUDA_VISIBLE_DEVICES"] = %r
    assert fluid.is_compiled_with_cuda() and fluid.core.get_cuda_device_count() == %d
    if %d == 0:
        raises(RuntimeError, "CUDA_VISIBLE_DEVICES", lambda: fluid.CUDAPlace(0))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            assert fluid.Executor().place == fluid.CPUPlace() and "sees no device" in str(said[0].message)
    """ % (visible, count, count), simdevice_devices=3)


def test_selected_devices():
    told("""
    assert fluid.cuda_places() == [fluid.CUDAPlace(2), fluid.CUDAPlace(0)]
    assert len(fluid.cuda_pinned_places()) == 2 and fluid.Executor().place == fluid.CUDAPlace(2)
    """, simdevice_devices=3, selected_gpus="2,0")


def test_tensors_lie_where_they_are_set_and_are_fed_from_there():
    told("""
    values = np.arange(26, dtype="float32").reshape(2, 13)
    places = [fluid.CPUPlace(), fluid.CUDAPlace(1), fluid.CUDAPinnedPlace()]
    tensors = [fluid.LoDTensor() for _ in places]
    for tensor, place in zip(tensors, places):
        tensor.set(values, place)
        assert tensor._place() == place and type(tensor._place()) is type(place), tensor._place()
        assert (np.array(tensor) == values).all() and (np.array(tensor[1]) == values[1:]).all()
        for other in places:
            copied = tensor._copy(other)
            assert copied._place() == other and (np.array(copied) == values).all()
    made = fluid.create_lod_tensor(values, [[2]], fluid.CUDAPlace(0))
    assert made._place() == fluid.CUDAPlace(0) and made.lod() == [[0, 2]]
    array = fluid.LoDTensorArray()
    array.append(tensors[1])
    array[0] = tensors[1]
    assert array[0]._place() == fluid.CPUPlace() and (np.array(array[0]) == values).all()

    main, startup, hidden, loss = net()
    y = np.ones((2, 1), "float32")
    for runs_at in (fluid.CPUPlace(), fluid.CUDAPlace(0)):
        exe, found = fluid.Executor(runs_at), []
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            test = main.clone(for_test=True)
            for _ in range(2):
                found += [exe.run(test, feed={"x": t, "y": y}, fetch_list=[hidden])[0] for t in tensors + [values]]
        assert all((f == found[0]).all() for f in found) and np.abs(found[0]).max() > 0
    scope = fluid.Scope()
    scope.var("n").get_tensor().set(np.array([3], "float32"), fluid.CUDAPlace(0))
    assert np.array(scope.find_var("n").get_tensor()) == 3
    """)


def test_a_device_guard_keeps_layers_and_their_gradients_on_the_cpu():
    said = told("""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 13])
        with fluid.device_guard("cpu"):
            hidden = fluid.layers.tanh(x * 2.0)
        with fluid.device_guard("gpu"):
            hidden = fluid.layers.fc(hidden, 4, act="sigmoid")
        loss = fluid.layers.mean(hidden)
        x.stop_gradient = False
        gradient, = fluid.gradients(loss, x)
    results = []
    for place in (fluid.CPUPlace(), fluid.CUDAPlace(0)):
        exe = fluid.Executor(place)
        with fluid.scope_guard(fluid.Scope()):
            main.random_seed = startup.random_seed = 7
            exe.run(startup)
            compiled = fluid.CompiledProgram(main)
            results.append(exe.run(compiled, feed={"x": batch(0)["x"]}, fetch_list=[loss, gradient]))
            print(compiled.explain())
    for here, there in zip(*results):
        assert np.abs(here - there).max() < 1e-6
    """)
    on_cpu = [line for line in said.splitlines() if "on the CPU:" in line][-1].split("on the CPU:")[1]
    assert {"tanh", "tanh_grad"} <= {name.strip() for name in on_cpu.split(",")} and "sigmoid" not in on_cpu, on_cpu


def test_parallel_runs_take_the_devices_and_refuse_other_kinds():
    told("""
    main, startup, _, loss = net()
    gpu, cpu = fluid.Executor(fluid.CUDAPlace(0)), fluid.Executor(fluid.CPUPlace())
    gpu.run(startup)
    compiled = fluid.CompiledProgram(main).with_data_parallel(loss.name)
    assert gpu.run(compiled, feed=batch(0), fetch_list=[loss])[0].shape == (3,)
    assert compiled._exec_strategy.use_cuda
    mixed = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=fluid.cuda_places())
    raises(AssertionError, "a different kind", lambda: cpu.run(mixed, feed=batch(0), fetch_list=[loss]))
    raises(TypeError, "of one kind", lambda: fluid.CompiledProgram(main).with_data_parallel(
        loss.name, places=[fluid.CPUPlace(), fluid.CUDAPlace(0)]))
    main, startup, _, loss = net()
    scope = fluid.Scope()
    with fluid.scope_guard(scope):
        gpu.run(startup)
        train = fluid.ParallelExecutor(use_cuda=True, loss_name=loss.name, main_program=main, scope=scope)
        test = fluid.ParallelExecutor(use_cuda=True, main_program=main.clone(for_test=True), share_vars_from=train)
        assert train.device_count == test.device_count == 3
        before = test.run([loss.name], feed=batch(0))[0].mean()
        for k in range(8):
            train.run([loss.name], feed=batch(k))
        assert test.run([loss.name], feed=batch(0))[0].mean() < before / 2
    feeder = fluid.DataFeeder(["x"], fluid.CUDAPlace(0), main)
    assert len(next(feeder.decorate_reader(lambda: ([(row,)] for row in batch(0)["x"]), True)())) == 3
    """, simdevice_devices=3)


def test_loaders_feed_devices():
    told("""
    main, startup, _, loss = net()
    block = main.global_block()
    ends = {}
    for iterable in (True, False):
        main, startup, _, loss = net()
        exe, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Scope()
        block = main.global_block()
        with fluid.scope_guard(scope), fluid.program_guard(main, startup):
            loader = fluid.io.DataLoader.from_generator([block.var("x"), block.var("y")], capacity=4, iterable=iterable)
            loader.set_batch_generator(lambda: ((batch(k)["x"], batch(k)["y"]) for k in range(5)),
                                       places=fluid.cuda_places(0))
            exe.run(startup)
            losses = []
            if iterable:
                losses = [exe.run(main, feed=feeds, fetch_list=[loss])[0].item() for feeds in loader()]
            else:
                loader.start()
                try:
                    while True:
                        losses.append(exe.run(main, fetch_list=[loss])[0].item())
                except fluid.core.EOFException:
                    loader.reset()
        ends[iterable] = losses
    assert ends[True] == ends[False] == train(fluid.CUDAPlace(0), 5)[0], ends
    """)


def test_passes_over_datasets_train_on_the_device(tmp_path):
    told("""
    import os
    path = os.path.join(%r, "part")
    with open(path, "w") as file:
        for k in range(64):
            row = batch(k)["x"][0]
            file.write("13 %%s 1 %%s\\n" %% (" ".join("%%.4f" %% v for v in row), row.sum()))
    found = []
    for place in (fluid.CPUPlace(), fluid.CUDAPlace(0)):
        main, startup, _, loss = net()
        exe, scope = fluid.Executor(place), fluid.Scope()
        dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_batch_size(8)
        dataset.set_use_var([main.global_block().var("x"), main.global_block().var("y")])
        dataset.set_filelist([path])
        with fluid.scope_guard(scope):
            exe.run(startup)
            for _ in range(3):
                exe.train_from_dataset(main, dataset, scope, thread=1 if place == fluid.CPUPlace() else 2)
            weight = scope.find_var("fc_0.w_0").get_tensor()
            assert weight._place() == place, weight._place()
            found.append(np.array(weight))
    assert np.abs(found[0] - found[1]).max() < 1e-5
    """ % str(tmp_path))


def test_what_is_saved_on_a_device_is_loaded_on_the_cpu_and_the_other_way(tmp_path):
    told("""
    import os
    main, startup, hidden, loss = net()
    test = main.clone(for_test=True)
    places = [fluid.CUDAPlace(0), fluid.CPUPlace(), fluid.CUDAPlace(1)]
    for at, place in enumerate(places):
        folder = os.path.join(%r, str(at))
        exe = fluid.Executor(place)
        with fluid.scope_guard(fluid.Scope()):
            exe.run(startup)
            for k in range(3):
                exe.run(main, feed=batch(k))
            expected, = exe.run(test, feed=batch(9), fetch_list=[hidden])
            fluid.io.save_persistables(exe, folder, main)
            fluid.save(main, folder + "/state")
            fluid.io.save_inference_model(folder + "/model", ["x"], [test.global_block().var(hidden.name)], exe, test)
        for other in places:
            reader = fluid.Executor(other)
            with fluid.scope_guard(fluid.Scope()):
                fluid.io.load_persistables(reader, folder, main)
                assert np.abs(reader.run(test, feed=batch(9), fetch_list=[hidden])[0] - expected).max() < 1e-6
            with fluid.scope_guard(fluid.Scope()):
                reader.run(startup)
                fluid.load(main, folder + "/state", reader)
                assert np.abs(reader.run(test, feed=batch(9), fetch_list=[hidden])[0] - expected).max() < 1e-6
            with fluid.scope_guard(fluid.Scope()):
                program, feeds, fetches = fluid.io.load_inference_model(folder + "/model", reader)
                got, = reader.run(program, feed={"x": batch(9)["x"]}, fetch_list=fetches)
                assert np.abs(got - expected).max() < 1e-6
    """ % str(tmp_path))


def test_shapes_that_passes_refuse_run_on_the_cpu_and_it_says_so():
    told("""
    main, startup, scope = fluid.Program(), fluid.Program(), fluid.Scope()
    with fluid.program_guard(main, startup):
        out = fluid.layers.fc(fluid.data("x", [None, 3]), 4, act="relu", bias_attr="b")
        loss = fluid.layers.mean(out)
        fluid.optimizer.SGD(0.0).minimize(loss)
    target = fluid.CompiledProgram(main).with_data_parallel(loss.name, places=[fluid.CUDAPlace(0)])
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup, scope=scope)
    for shape, on_cpu in (((4,), False), ((2, 4), True), ((4,), False)):
        scope.var("b").get_tensor().set(np.full(shape, 50, "float32"), fluid.CPUPlace())
        got, = exe.run(target, feed={"x": np.zeros((2, 3), "float32")}, fetch_list=[out], scope=scope)
        assert (got == 50).all()
        assert ("place_on_devices is one of them: the CPU runs all ops" in target.explain()) == on_cpu, target.explain()
    """)


def test_the_profiler_shows_what_devices_did(tmp_path):
    told("""
    import json, os
    from anabranch import profiling
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    for _ in range(2):
        exe.run(main, feed=batch(0), fetch_list=[loss])
    path = os.path.join(%r, "profile")
    with fluid.profiler.profiler("All", "total", path):
        for k in range(3):
            exe.run(main, feed=batch(k), fetch_list=[loss])
    report = profiling.take()
    gpu, cpu, both = (report.rows(state=state) for state in ("GPU", "CPU", "All"))
    assert gpu["fused_fc"].calls == cpu["fused_fc"].calls == both["fused_fc"].calls == 6
    assert gpu["fused_fc"].total_ns == gpu["fused_fc"].device_ns == both["fused_fc"].device_ns
    assert "feed" not in gpu and "feed" in both
    assert cpu["fused_fc"].device_ns == 0 and report.on_devices_ns >= 0
    assert [ns for _, ns in report.critical_path()]
    events = report.profile.events()
    queues = {queue for _, _, queue, kind, _, _ in events if kind == 6}
    assert all(begin <= end for *_, begin, end in events) and queues and max(queues) < 0
    ends = {}
    for plan, node, queue, kind, begin, end in sorted((e for e in events if e[3] == 6), key=lambda e: e[4]):
        assert begin >= ends.get(queue, begin), "two at once in one queue"
        ends[queue] = end
    trace = json.load(open(path + ".json"))["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in trace if e["name"] == "thread_name"}
    assert {"CUDAPlace(0) compute", "CUDAPlace(0) up", "CUDAPlace(0) down"} <= set(names.values())
    muls = [e for e in trace if e["name"] == "fused_fc" and names[e["tid"]] == "CUDAPlace(0) compute"]
    assert len(muls) == 6 and all(e["cat"] == "device" for e in muls)
    report.page(os.path.join(%r, "page.html"))
    assert ">0 compute<" in open(
        os.path.join(%r, "page.html")).read()
    with fluid.profiler.cuda_profiler(path + "2"):
        exe.run(main, feed=batch(0), fetch_list=[loss])
    assert os.path.getsize(path + "2") > 0
    """ % ((str(tmp_path),) * 3))


def test_the_tables_of_a_profile_say_what_they_show():
    said = told("""
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(0))
    exe.run(startup)
    for state in ("CPU", "GPU", "All"):
        with fluid.profiler.profiler(state, profile_path=""):
            exe.run(main, feed=batch(0), fetch_list=[loss])
    """)
    cpu, gpu, both = said.split("Profiling Report")[1:]
    assert "On devices" in both and "On devices" not in gpu + cpu
    assert "Place: CUDA" in gpu and "\nfused_fc " in gpu
    assert "\nfeed " not in gpu and "\nfeed " in cpu and "\nfeed " in both


def test_training_on_the_cpu_opens_no_library_of_devices():
    package = os.path.dirname(os.path.dirname(anabranch.__file__))
    done = subprocess.run([sys.executable, "-c", """
import numpy as np
import anabranch.fluid as fluid
x = fluid.data("x", [None, 3])
loss = fluid.layers.mean(fluid.layers.fc(x, 2))
fluid.optimizer.SGD(0.1).minimize(loss)
exe = fluid.Executor(fluid.CPUPlace())
exe.run(fluid.default_startup_program())
exe.run(feed={"x": np.ones((2, 3), "float32")}, fetch_list=[loss])
print("\\n".join(line.split()[-1] for line in open("/proc/self/maps") if ".so" in line))
"""], env=dict(os.environ, PYTHONPATH=package), stdout=subprocess.PIPE, universal_newlines=True, check=True)
    opened = set(map(os.path.basename, done.stdout.split()))
    assert any(name.startswith("_core") for name in opened), opened
    assert not [name for name in opened if re.search("cuda|simdevice|cublas|cudnn|nccl", name)], opened
