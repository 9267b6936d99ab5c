"""LoDTensor, LoDTensorArray, SelectedRows and scopes."""
import gc

import numpy as np
import pytest

import anabranch.fluid as fluid

CPU = fluid.CPUPlace()


def tensor(array):
    t = fluid.LoDTensor()
    t.set(array, CPU)
    return t


@pytest.mark.parametrize("dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "float16", "float32", "float64"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (1,), (2, 1, 2, 1)])
def test_set_and_get(dtype, shape):
    a = (np.arange(np.prod(shape)) % 2).reshape(shape).astype(dtype)
    t = tensor(a)
    b = np.array(t)
    assert b.dtype == a.dtype and np.array_equal(a, b) and t.shape() == list(shape)
    b[...] = 1
    assert np.array_equal(np.array(t), a)
    assert t._dtype() == fluid.framework.convert_np_dtype_to_dtype_(dtype)


def test_layouts():
    a = np.arange(6, dtype="float32").reshape(2, 3)
    for other in (a.T, a[::-1], np.asfortranarray(a), a.astype(">f4"), a.tolist()):
        assert np.array_equal(np.array(tensor(other)), np.asarray(other))
    assert np.array(tensor(np.float32(3))).shape == (1,)
    halves = np.array([1.5, -2], "float16")
    assert np.array_equal(np.array(tensor(halves.view("uint16"))), halves)


@pytest.mark.parametrize("bad", [np.array([object()]), np.ones(2, "complex64"), np.array(["a"]), np.ones(2, "uint32"),
                                 "text", None, np.zeros([1] * 10, "float32")])
def test_values_that_are_not_tensors(bad):
    with pytest.raises(ValueError):
        fluid.LoDTensor().set(bad, CPU)


def test_lod():
    t = tensor(np.zeros((6, 1), "float32"))
    t.set_recursive_sequence_lengths([[2, 1], [3, 1, 2]])
    assert t.lod() == [[0, 2, 3], [0, 3, 4, 6]] and t.recursive_sequence_lengths() == [[2, 1], [3, 1, 2]]
    assert t.has_valid_recursive_sequence_lengths()
    t.set_lod([[0, 1, 6]])
    assert t.recursive_sequence_lengths() == [[1, 5]]
    for bad in ([[0, 5]], [[1, 6]], [[0, 4, 2, 6]], [[0]], [[]], [[0, 2], [0, 6]]):
        with pytest.raises(fluid.core.EnforceNotMet):
            t.set_lod(bad)
        assert t.recursive_sequence_lengths() == [[1, 5]]
    t.set_lod([])
    assert t.lod() == [] and t.has_valid_recursive_sequence_lengths()


def test_slices_have_no_lod():
    a = np.arange(12, dtype="float32").reshape(4, 3)
    t = tensor(a)
    t.set_lod([[0, 1, 4]])
    assert np.array_equal(np.array(t[1]), a[1:2]) and np.array_equal(np.array(t[-1]), a[3:])
    assert np.array_equal(np.array(t[1:3]), a[1:3]) and np.array_equal(np.array(t[:, 1]), a[:, 1:2])
    assert t[1:3].lod() == [] and len(t) == 4


def test_create_lod_tensor():
    t = fluid.create_lod_tensor(np.zeros((5, 2), "float32"), [[2, 3]], CPU)
    assert t.lod() == [[0, 2, 5]]
    q = fluid.create_lod_tensor([[1, 2], [3, 4, 5]], [[2, 3]], CPU)
    assert np.array_equal(np.array(q), [[1], [2], [3], [4], [5]]) and np.array(q).dtype == np.int64
    assert fluid.create_lod_tensor(t, [[1, 4]], CPU).lod() == [[0, 1, 5]] and t.lod() == [[0, 2, 5]]
    for data, lengths, error in ((np.zeros((5, 2)), [[1, 3]], AssertionError), ([[1, 2]], [[3]], AssertionError),
                                 ("text", [[1]], TypeError), ([1, 2], [[2]], TypeError), (3, [[1]], TypeError)):
        with pytest.raises(error):
            fluid.create_lod_tensor(data, lengths, CPU)


def test_random_lod_tensor():
    t = fluid.create_random_int_lodtensor([[2, 3]], [4], CPU, 0, 2)
    a = np.array(t)
    assert a.shape == (5, 4) and a.dtype == np.int64 and a.min() >= 0 and a.max() <= 2 and t.lod() == [[0, 2, 5]]
    with pytest.raises(AssertionError):
        fluid.create_random_int_lodtensor([[2]], (4,), CPU, 0, 2)


def test_arrays_of_tensors():
    array = fluid.LoDTensorArray()
    array.append(tensor(np.ones((1, 2), "float32")))
    array.append(tensor(np.zeros((3, 2), "float32")))
    assert len(array) == 2 and np.array(array[0]).shape == (1, 2) and np.array(array[-1]).shape == (3, 2)
    with pytest.raises(IndexError):
        array[2]
    array[1] = tensor(np.ones(1, "float32"))
    assert np.array(array[1]) == [1]


def test_selected_rows():
    rows = fluid.core.SelectedRows([1, 1, 4], 10)
    rows.get_tensor().set(np.ones((3, 2), "float32"), CPU)
    assert rows.rows() == [1, 1, 4] and rows.height() == 10 and np.array(rows.get_tensor()).shape == (3, 2)
    rows.set_rows([0, 2, 3])
    rows.set_height(5)
    assert rows.rows() == [0, 2, 3] and rows.height() == 5 and rows.numel() == 6


def test_scopes():
    s = fluid.Scope()
    assert s.find_var("a") is None
    s.var("a").get_tensor().set(np.ones(2, "float32"), CPU)
    child = s.new_scope()
    child.var("b")
    assert np.array(child.find_var("a").get_tensor()).tolist() == [1, 1] and s.find_var("b") is None
    s.drop_kids()
    with fluid.scope_guard(s):
        assert fluid.global_scope() is s
        with pytest.raises(KeyError):
            with fluid.scope_guard(fluid.Scope()):
                raise KeyError
        assert fluid.global_scope() is s
    assert fluid.global_scope() is not s
    with pytest.raises(TypeError):
        with fluid.scope_guard(3):
            pass


def test_values_outlive_their_scope():
    s = fluid.Scope()
    t = s.var("a").get_tensor()
    t.set(np.full(1000, 7, "float32"), CPU)
    s.erase(["a"])
    del s
    gc.collect()
    assert (np.array(t) == 7).all()


def test_a_variable_that_changes_its_kind():
    v = fluid.Scope().var("a")
    t = v.get_tensor()
    t.set(np.ones(2, "float32"), CPU)
    with pytest.raises(fluid.core.EnforceNotMet):
        v.get_selected_rows()
    v._clear()
    assert t.shape() == [0] and np.array(t).size == 0
    v._clear()
    rows = v.get_selected_rows()
    rows.set_height(3)
    with pytest.raises(fluid.core.EnforceNotMet):
        t.shape()


def test_numbers_in_variables():
    v = fluid.Scope().var("a")
    v.set_int(3)
    assert v.is_int() and not v.is_float() and v.get_int() == 3
    v.set_float(2.5)
    assert v.is_float() and v.get_float() == 2.5
    with pytest.raises(fluid.core.EnforceNotMet):
        v.get_int()


def test_places():
    assert fluid.CPUPlace() == fluid.CPUPlace() and str(fluid.CPUPlace()) == "CPUPlace"
    assert fluid.CPUPlace() != 3 and len({fluid.CPUPlace(), fluid.CPUPlace()}) == 1


@pytest.mark.parametrize("replicas", [0, 2])
def test_an_error_of_fed_sequences_names_the_feed(replicas):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("clicks", [None, 3], lod_level=1)
        out = fluid.layers.sequence_pool(x, "sum")
        target = fluid.default_main_program()
        if replicas:
            target = fluid.CompiledProgram(target).with_data_parallel(places=[CPU] * replicas)
        longer = fluid.LoDTensor()
        longer.set_lod([[0, 2, 5]])
        longer.set(np.ones((2, 3), "float32"), CPU)
        feed = [{"clicks": longer}] * replicas if replicas else {"clicks": longer}
        with pytest.raises(ValueError, match="feed clicks: LoD level 0 ends at 5, but there are 2 rows"):
            fluid.Executor(CPU).run(target, feed=feed, fetch_list=[out])


@pytest.mark.parametrize("array, lengths, lines", [
    (np.arange(6, dtype="float32").reshape(6, 1), [[2, 1], [2, 1, 3]],
     ["lod: {{0, 2, 3}{0, 2, 3, 6}}", "dim: 6, 1", "layout: NCHW", "dtype: float", "data: [0 1 2 3 4 5]"]),
    (np.array([1e6, 1234567, 0.1, -0.0, np.nan, np.inf, 1e-5, 123456.7], "float32"), [],
     ["lod: {}", "dim: 8", "layout: NCHW", "dtype: float", "data: [1e+06 1.23457e+06 0.1 -0 nan inf 1e-05 123457]"]),
    (np.array([True, False]), [], ["lod: {}", "dim: 2", "layout: NCHW", "dtype: bool", "data: [1 0]"]),
    (np.array([[2 ** 53 + 1]]), [],
     ["lod: {}", "dim: 1, 1", "layout: NCHW", "dtype: int64_t", "data: [9007199254740993]"]),
    (np.zeros((0, 2), "float64"), [], ["lod: {}", "dim: 0, 2", "layout: NCHW", "dtype: double", "data: []"]),
])
def test_print_shows_the_lines_of_fluid_1_8_5(array, lengths, lines):
    tensor = fluid.LoDTensor()
    tensor.set(array, fluid.CPUPlace())
    tensor.set_recursive_sequence_lengths(lengths)
    assert str(tensor) == "".join("\t%s\n" % line for line in lines)
    assert repr(tensor).startswith("LoDTensor %s" % array.dtype)


def test_iteration_ends_after_the_last_row():
    tensor = fluid.create_lod_tensor(np.arange(6, dtype="float32").reshape(3, 2), [[2, 1]], fluid.CPUPlace())
    assert [np.array(row).tolist() for row in tensor] == [[[0, 1]], [[2, 3]], [[4, 5]]]
    for index in (3, -4, (0, 2)):
        with pytest.raises(IndexError, match="is out of range for axis %d" % isinstance(index, tuple)):
            tensor[index]
    assert np.array(tensor[-3]).tolist() == [[0, 1]] and np.array(tensor[1:9]).shape == (2, 2)
