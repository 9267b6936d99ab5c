"""Memory of devices: its owners, where values lie, the error when there is no more. One process a test."""
import pytest
from device_runs import (
    pytestmark,  # noqa: F401
    told,
)


@pytest.mark.parametrize("flags", [{"gpu_memory_limit_mb": 8}, {"fraction_of_gpu_memory_to_use": 0.125}])
def test_memory_of_a_device_is_bounded(flags):
    told("""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        x = fluid.data("x", [None, 1 << 18])
        wide = fluid.layers.tanh(x)
        narrow = fluid.layers.reduce_mean(wide)
    exe = fluid.Executor(fluid.CUDAPlace(0))
    one = np.ones((1, 1 << 18), "float32")
    assert exe.run(main, feed={"x": one}, fetch_list=[narrow])[0] > 0
    raises(fluid.core.ResourceExhausted, "FLAGS_",
           lambda: exe.run(main, feed={"x": np.repeat(one, 8, 0)}, fetch_list=[narrow]))
    assert exe.run(main, feed={"x": one}, fetch_list=[narrow])[0] > 0
    fluid.set_flags({"FLAGS_gpu_memory_limit_mb": 0, "FLAGS_fraction_of_gpu_memory_to_use": 0.0})
    assert exe.run(main, feed={"x": np.repeat(one, 5, 0)}, fetch_list=[narrow])[0] > 0
    fluid.set_flags({"FLAGS_fraction_of_gpu_memory_to_use": 1.5})
    raises(ValueError, "must be from 0 to 1, got 1.5",
           lambda: fluid.LoDTensor().set(np.repeat(one, 11, 0), fluid.CUDAPlace(0)))
    raises(fluid.core.InvalidArgument, "must be from 0 to 1, got 1.5",
           lambda: exe.run(main, feed={"x": np.repeat(one, 24, 0)}, fetch_list=[narrow]))
    """, simdevice_bytes=1 << 26, **flags)


FULL = """
def net_of(width, make):
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        x = fluid.data("x", [None, width])
        hidden = fluid.layers.fc(x, width, bias_attr=False, param_attr=fluid.ParamAttr("wide_w"))
        loss = make(fluid.layers.mean(fluid.layers.exp(hidden)))
    return main, startup, loss

def refused(call):
    try:
        call()
    except fluid.core.ResourceExhausted as e:
        return str(e)
    raise SystemExit("there was room")
"""


def test_holders_of_the_memory_of_a_full_device():
    said = told(FULL + """
train, startup, loss = net_of(256, lambda loss: fluid.optimizer.SGD(0.1).minimize(loss) and loss)
other, _, twice = net_of(256, lambda loss: fluid.layers.scale(loss, 2.0, name="twice"))
exe = fluid.Executor(fluid.CUDAPlace(0))
exe.run(startup)
small = {"x": np.full((16, 256), 0.01, "float32")}
first, = exe.run(train, feed=small, fetch_list=[loss])
exe.run(other, feed={"x": np.ones((600, 256), "float32")}, fetch_list=[twice])
before = np.array(fluid.global_scope().find_var("wide_w").get_tensor())
print(refused(lambda: exe.run(train, feed={"x": np.ones((4096, 256), "float32")}, fetch_list=[loss])))
assert (np.array(fluid.global_scope().find_var("wide_w").get_tensor()) == before).all()
after, = exe.run(train, feed=small, fetch_list=[loss])
assert after < first and exe.run(other, feed=small, fetch_list=[twice])[0] < 2 * first
""", simdevice_bytes=1 << 23)
    lines = said.splitlines()
    assert "cannot allocate" in lines[0] and "are in use" in lines[0] and "allows" in lines[0], said
    assert "made at" in lines[1] and "CUDAPlace(0)" in lines[2], said
    holds = [line.split(None, 2) for line in lines if line.startswith("  holds")]
    held = {purpose: int(count) for _, count, purpose in holds}
    assert held["bytes: wide_w"] == 256 * 256 * 4, said
    arena, = (count for purpose, count in held.items() if "temporaries of the step that fetches twice" in purpose)
    assert arena >= 600 * 256 * 4 and [int(h[1]) for h in holds] == sorted(held.values(), reverse=True), said
    assert any("requested for temporaries of the step that fetches mean" in line for line in lines), said
    assert any(line.startswith("  kept   ") for line in lines), said
    needs = [line for line in lines if line.startswith("  needs")]
    assert needs and "4194304 bytes: " in needs[0] and "[4096, 256] float32" in needs[0], said


def test_parameters_for_which_there_is_no_room_are_named():
    told(FULL + """
_, startup, _ = net_of(2048, lambda loss: loss)
exe = fluid.Executor(fluid.CUDAPlace(0))
said = refused(lambda: exe.run(startup))
assert "wide_w" in said and "made at" in said and "cannot allocate 16777216" in said, said
_, startup, _ = net_of(64, lambda loss: loss)
exe.run(startup)
there = np.zeros((2048, 1024), "float32")
said = refused(lambda: fluid.LoDTensor().set(there, fluid.CUDAPlace(0)))
assert "requested for tensors outside of programs" in said and "bytes: wide_w" in said, said
main, _, loss = net_of(64, lambda loss: loss)
exe.run(main, feed={"x": np.ones((4, 64), "float32")}, fetch_list=[loss])
""", simdevice_bytes=1 << 22)


def test_what_is_kept_is_given_back_before_a_device_is_full():
    told(FULL + """
place = fluid.CUDAPlace(0)
for rows in range(1, 7):  # of sizes that do not serve each other
    fluid.LoDTensor().set(np.zeros((rows, 1 << 19), "float32"), place)
""", simdevice_bytes=1 << 24)


def test_memory_is_reported_by_place():
    said = told("""
    main, startup, _, loss = net()
    exe = fluid.Executor(fluid.CUDAPlace(1))
    exe.run(startup)
    exe.run(main, feed=batch(0), fetch_list=[loss])
    report = fluid.memory_report(main)
    there = report.places["CUDAPlace(1)"]
    weights = 4 * (13 * 8 + 8 + 8 + 1)
    assert there["parameters"] == report["parameters"] == weights, report.places
    assert there["total"] >= weights + there["gradients"] > weights and there["kept"] >= 0
    assert report["total"] == sum(held["total"] for held in report.places.values())
    assert "CUDAPlace(0)" not in report.places and "CPUPlace" in report.places
    assert {v["place"] for v in report.variables if v["name"] == "fc_0.w_0"} == {"CUDAPlace(1)"}
    assert report.to_dict()["places"]["CUDAPlace(1)"]["parameters"] == weights
    print(report)
    """)
    assert any(line.startswith("CUDAPlace(1) ") for line in said.splitlines())


def test_the_cpu_reads_what_a_program_left_on_a_device(tmp_path):
    path = str(tmp_path / "rows.txt")
    with open(path, "w") as file:
        for k in range(64):
            file.write("13 %s 1 1.0\n" % " ".join(str(0.01 * ((k * j) % 7)) for j in range(13)))
    told("""
    main, startup, _, loss = net()
    names = [p.name for p in main.all_parameters()]
    device, cpu, scope = fluid.Executor(fluid.CUDAPlace(0)), fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    with fluid.scope_guard(scope):
        device.run(startup)
        device.run(main, feed=batch(0))
        there = scope.find_var(names[0]).get_tensor()
        assert there._place() == fluid.CUDAPlace(0)
        other = fluid.Program()  # which does not have the variable
        with fluid.program_guard(other):
            fluid.layers.fill_constant([1], "float32", 1.0)
        got, = cpu.run(other, fetch_list=[names[0]])
        assert (got == np.array(there)).all() and got.any()
        dataset = fluid.DatasetFactory().create_dataset("QueueDataset")
        dataset.set_batch_size(4)
        dataset.set_use_var([main.global_block().var("x"), main.global_block().var("y")])
        dataset.set_filelist([%r] * 2)
        dataset.set_thread(2)
        cpu.train_from_dataset(main, dataset, scope, thread=2)
        after = np.array(scope.find_var(names[0]).get_tensor())
        assert (after != got).any() and np.isfinite(after).all()
        device.run(main, feed=batch(1))
        assert scope.find_var(names[0]).get_tensor()._place() == fluid.CUDAPlace(0)
    """ % path)
