"""Ids of tables are always checked; the message says which one is wrong, and what it may have been."""
import numpy as np
import pytest

import anabranch.fluid as fluid

ROWS = 10


@pytest.fixture
def run():
    """Looks ids up, given as the feed of a variable C7."""
    def run(shape, ids, lod_level=0, padding_idx=None, old=True):
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            c7 = fluid.data("C7", shape, "int64", lod_level=lod_level)
            table = fluid.ParamAttr(name="table")
            embedding = fluid.layers.embedding if old else fluid.embedding
            out = embedding(c7, [ROWS, 3], is_sparse=True, padding_idx=padding_idx, param_attr=table)
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            return exe.run(main, feed={"C7": ids}, fetch_list=[out])[0]
    return run


def ids(*values):
    return np.array(values, "int64").reshape(-1, 1)


def message(run, *args, **kwargs):
    with pytest.raises(fluid.core.EnforceNotMet) as caught:
        run(*args, **kwargs)
    return str(caught.value)


def test_names_feature_sample_id_and_table(run):
    said = message(run, [None, 1], ids(3, 9, 10, 4))
    assert "feature C7: the id of sample 2 is 10, expected 0 to 9 (table table of 10 rows)" in said


def test_names_the_element_of_a_sample(run):
    said = message(run, [None, 2], np.array([[1, 2], [3, -7]]), old=False)
    assert "the id of sample 1 (its element 1) is -7" in said
    fed = fluid.create_lod_tensor(ids(1, 2, 3, 4, 11), [[3, 0, 2]], fluid.CPUPlace())
    assert "the id of sample 2 (its element 1) is 11" in message(run, [None, 1], fed, lod_level=1)


def test_minus_one_is_an_id_like_others(run):
    """The attribute padding_idx says -1 where there is none."""
    assert "is -1, expected" in message(run, [None, 1], ids(3, -1))
    assert not run([None, 1], ids(3, 9), padding_idx=-1)[1].any()


def test_the_padding_may_lie_above_the_table(run):
    read = run([None, 1], ids(3, ROWS, 9), padding_idx=ROWS)
    assert not read[1].any() and read[0].any() and read[2].any()
    assert "is 11, expected" in message(run, [None, 1], ids(3, 11), padding_idx=ROWS)


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("lookups", [1, 2])
def test_a_padding_above_the_table_has_no_gradient(lookups, sparse, exact):
    fluid.set_flags({"FLAGS_fluid_exact": "1.8.5" if exact else ""})
    try:
        main, startup = fluid.Program(), fluid.Program()
        with fluid.program_guard(main, startup):
            parts = [fluid.layers.reduce_sum(fluid.embedding(
                fluid.data("x%d" % i, [None], "int64"), [ROWS, 2], is_sparse=sparse, padding_idx=ROWS,
                param_attr=fluid.ParamAttr(name="table"))) for i in range(lookups)]
            fluid.optimizer.SGD(1.0).minimize(fluid.layers.sum(parts))
        exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
        with fluid.scope_guard(scope):
            exe.run(startup)
            before = np.array(scope.find_var("table").get_tensor())
            exe.run(main, feed={"x%d" % i: np.array([1, ROWS, 9], "int64") for i in range(lookups)})
            change = before - np.array(scope.find_var("table").get_tensor())
    finally:
        fluid.set_flags({"FLAGS_fluid_exact": ""})
    expected = np.zeros((ROWS, 2))
    expected[[1, 9]] = lookups
    np.testing.assert_allclose(change, expected, atol=1e-6)


@pytest.mark.parametrize("written, said", [
    (np.array([3.5, 0.25], "float32"), "the two floats 3.5 and 0.25"),
    (np.array([7.0], "float64"), "the double 7"),
    (np.array([0.1], "float64"), "the double 0.1"),
    (np.array([12345.0], "float64"), "the double 12345"),
])
def test_floats_are_recognized(run, written, said):
    text = message(run, [None, 1], ids(3, written.view("int64")[0]))
    assert said in text and "are the ids floats?" in text


@pytest.mark.parametrize("number", [10, 123456, -5])
def test_ordinary_numbers_are_not_floats(run, number):
    text = message(run, [None, 1], ids(number))
    assert "float" not in "".join(line for line in text.splitlines() if not line.startswith("  inputs"))
