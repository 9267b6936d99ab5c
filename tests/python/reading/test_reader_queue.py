"""``reader.queue`` has the methods of Fluid's LoDTensorBlockingQueue."""
import numpy
import pytest

import anabranch.fluid as fluid
from anabranch.fluid import core


def made():
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup):
        reader = fluid.layers.py_reader(4, [[-1, 2], [-1, 1]], ["float32", "int64"])
        mean = fluid.layers.mean(fluid.layers.read_file(reader)[0])
    return main, reader, mean


def arrays(value):
    found = core.LoDTensorArray()
    for array in (numpy.full((3, 2), value, "float32"), numpy.ones((3, 1), "int64")):
        tensor = core.LoDTensor()
        tensor.set(array, fluid.CPUPlace())
        found.append(tensor)
    return found


def test_a_queue_has_a_size_and_a_capacity_before_and_in_a_pass():
    main, reader, mean = made()
    assert (reader.queue.size(), reader.queue.capacity(), reader.queue.wait_for_inited()) == (0, 4, None)
    reader.decorate_tensor_provider(lambda: iter([[numpy.ones((3, 2), "float32"), numpy.ones((3, 1), "int64")]] * 2))
    exe, steps = fluid.Executor(fluid.CPUPlace()), 0
    reader.start()
    with pytest.raises(core.EOFException):
        while True:
            exe.run(main, fetch_list=[mean])
            steps += 1
            assert 0 <= reader.queue.size() <= 4
    reader.reset()
    assert (steps, reader.queue.size()) == (2, 0)


def test_batches_can_be_pushed():
    main, reader, mean = made()
    exe = fluid.Executor(fluid.CPUPlace())
    assert reader.queue.push(arrays(1)) and reader.queue.push(arrays(2))
    reader.queue.close()
    assert [exe.run(main, fetch_list=[mean])[0].item() for _ in range(2)] == [1, 2]
    with pytest.raises(core.EOFException):
        exe.run(main, fetch_list=[mean])
    reader.reset()


def test_a_reset_stops_the_thread_that_waits_for_a_batch():
    _, reader, _ = made()
    reader.queue.push(arrays(1))
    reader.reset()
    assert reader.queue.size() == 0


def test_what_cannot_be_pushed_is_refused():
    _, reader, _ = made()
    with pytest.raises(ValueError, match="one tensor for each of read_file_0.tmp_0, .*got 1|must have one tensor"):
        reader.queue.push([arrays(1)[0]])
    with pytest.raises(TypeError, match="batch must be a LoDTensorArray, got int"):
        reader.queue.push(1)
    reader.decorate_tensor_provider(lambda: iter([]))
    with pytest.raises(RuntimeError, match="has a data source"):
        reader.queue.push(arrays(1))
    assert reader.queue.size() == 0


@pytest.mark.parametrize("iterable", [True, False])
def test_loaders_have_a_queue_before_their_first_pass(iterable):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 1])
        loaders = [fluid.io.DataLoader.from_generator([x], 8, iterable=iterable),
                   fluid.io.PyReader([x], 8, True, iterable)]
    for loader in loaders:
        assert (loader.queue.size(), loader.queue.capacity(), loader.queue.capacity) == (0, 8, 8)
