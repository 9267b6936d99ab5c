"""Functions of Python in a program, and printed tensors."""
import gc
import os
import subprocess
import sys

import numpy
import pytest

import anabranch.fluid as fluid

layers = fluid.layers
X = numpy.random.RandomState(0).normal(size=(4, 3)).astype("float32")


@pytest.fixture(autouse=True)
def fresh_programs():
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.unique_name.guard(), \
            fluid.scope_guard(fluid.Scope()):
        yield


def output(name="out", shape=(-1, 3), dtype="float32"):
    return fluid.default_main_program().current_block().create_var(name=name, shape=list(shape), dtype=dtype)


def run(fetch, program=None, **feed):
    return fluid.Executor(fluid.CPUPlace()).run(program, feed=feed or {"x": X}, fetch_list=fetch)


def tanh(x):
    return numpy.tanh(numpy.array(x))


def tanh_grad(x, y, dy):
    return numpy.array(dy) * (1 - numpy.square(numpy.array(y)))


@pytest.mark.parametrize("skipped", [False, True])
def test_gradient_is_that_of_the_user(skipped):
    x = fluid.data("x", [None, 3], "float32")
    x.stop_gradient = False
    out = output()
    if skipped:
        layers.py_func(tanh, x, out, lambda y, dy: tanh_grad(None, y, dy), skip_vars_in_backward_input=x)
    else:
        layers.py_func(tanh, x, out, tanh_grad)
    weighed = layers.reduce_sum(out * out)
    ours, theirs = fluid.gradients([weighed, layers.reduce_sum(layers.square(layers.tanh(x)))], [x])[0], None
    theirs = numpy.tanh(X)
    got, grad = run([out, ours])
    numpy.testing.assert_allclose(got, theirs, rtol=1e-6)
    numpy.testing.assert_allclose(grad, 2 * 2 * theirs * (1 - theirs ** 2), rtol=1e-4, atol=1e-6)


def test_several_values_of_other_shapes_and_dtypes_and_sequences():
    x = fluid.data("x", [None, 1], "float32", lod_level=1)
    a, b = output("a", (-1, 2)), output("b", (-1,), "int64")

    def function(t):
        assert t.recursive_sequence_lengths() == [[1, 3]] and isinstance(t, fluid.LoDTensor)
        return numpy.concatenate([numpy.array(t)] * 2, 1), numpy.arange(3)

    layers.py_func(function, x, [a, b])
    after = layers.reduce_sum(b)
    t = fluid.create_lod_tensor(X[:, :1].copy(), [[1, 3]], fluid.CPUPlace())
    got = run([a, b, after], x=t)
    assert got[0].shape == (4, 2) and got[1].tolist() == [0, 1, 2] and got[2].tolist() == [3]


def test_functions_without_inputs_or_outputs_are_called_in_order():
    x = fluid.data("x", [None, 3], "float32")
    seen = []
    layers.py_func(lambda t: seen.append(("a", numpy.array(t).shape)), x, None)
    made = layers.py_func(lambda: numpy.full([2, 3], 7, "float32"), None, output())
    layers.py_func(lambda t: seen.append(("b", numpy.array(t)[0, 0])), made, None)
    for _ in range(3):
        run([made])
    assert seen == [("a", (4, 3)), ("b", 7)] * 3


def test_what_a_function_keeps_is_its_own():
    x = fluid.data("x", [None, 3], "float32")
    kept = []
    out = layers.py_func(lambda t: kept.append(t) or numpy.array(t) + 1, x, output())
    run([layers.scale(out, 2.0)])
    kept[0].set(numpy.zeros([1000], "float32"), fluid.CPUPlace())
    gc.collect()
    numpy.testing.assert_allclose(run([out])[0], X + 1)
    numpy.testing.assert_array_equal(numpy.array(kept[1]), X)


@pytest.mark.parametrize("function, error", [
    (lambda t: 1 / 0, ZeroDivisionError), (lambda t: None, ValueError), (lambda t: (t, t), ValueError),
    (lambda t: "text", fluid.core.InvalidArgument), (lambda t: {}, fluid.core.InvalidArgument),
])
def test_error_of_a_function_comes_out_and_the_executor_goes_on(function, error):
    x = fluid.data("x", [None, 3], "float32")
    out = layers.py_func(function, x, output())
    with pytest.raises(error):
        run([out])
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x = fluid.data("x", [None, 3], "float32")
        numpy.testing.assert_array_equal(run([layers.scale(x, 1.0)], fluid.default_main_program())[0], X)


def noting(seen):
    def function(*values):
        seen.append([type(v).__name__ for v in values])
        return X
    return function


def on_one_device(program):
    return program


def on_replicas(program):
    return fluid.CompiledProgram(program).with_data_parallel(places=fluid.cpu_places(2))


@pytest.mark.parametrize("compiled", [on_one_device, on_replicas])
@pytest.mark.parametrize("cloned", [False, True])
def test_an_input_that_is_not_fed_is_named(compiled, cloned):
    first, second = fluid.data("first", [None, 3]), fluid.data("second", [None, 3])
    seen = []
    layers.py_func(noting(seen), first, output("a"))
    layers.py_func(noting(seen), [second, first], output("b"))
    program = fluid.default_main_program().clone() if cloned else fluid.default_main_program()
    with pytest.raises(fluid.core.EnforceNotMet) as e:
        run(["b"], compiled(program), second=X)
    told = str(e.value)
    assert 'variable "first" has no value: it was not fed' in told and 'Feeds of this call: "second"' in told
    assert "py_func at " in told and "layers.py_func(noting(seen), first" in told
    assert seen == []
    assert isinstance(e.value, LookupError)


def test_an_unfed_input_among_fed_ones_is_named():
    seen = []
    layers.py_func(noting(seen), [fluid.data("first", [None, 3]), fluid.data("second", [None, 3])], output())
    with pytest.raises(LookupError, match='"second" has no value'):
        run(["out"], first=X)
    assert seen == []
    run(["out"], first=X, second=X)
    assert seen == [["LoDTensor", "LoDTensor"]]


def test_pruning_leaves_out_a_function_whose_input_is_not_fed():
    seen = []
    layers.py_func(noting(seen), fluid.data("first", [None, 3]), output("a"))
    b = layers.py_func(tanh, fluid.data("second", [None, 3]), output("b"))
    got, = fluid.Executor().run(feed={"second": X}, fetch_list=[b], use_prune=True)
    numpy.testing.assert_array_equal(got, numpy.tanh(X))
    assert seen == []


def test_variables_that_no_feed_could_give_are_passed_as_none():
    seen = []
    state = output("state")
    state.persistable = True
    layers.py_func(noting(seen), state, output("a"))
    kept = output("kept")
    layers.py_func(noting(seen), kept, kept)    # its own result of the last run, if there was one
    layers.py_func(lambda: X, fluid.data("x", [None, 3]), output("b"))
    numpy.testing.assert_array_equal(fluid.Executor().run(fetch_list=["b"])[0], X)
    assert seen == [["NoneType"], ["NoneType"]]


@pytest.mark.parametrize("make, error", [
    (lambda x: layers.py_func(3, x, output()), TypeError), (lambda x: layers.py_func(tanh, 3, output()), TypeError),
    (lambda x: layers.py_func(tanh, x, 3), TypeError), (lambda x: layers.py_func(tanh, x, output(), 3), TypeError),
    (lambda x: layers.py_func(tanh, x, output(shape=())), ValueError),
    (lambda x: layers.py_func(tanh, x, output(), tanh_grad, [fluid.data("z", [2])]), ValueError),
    (lambda x: layers.Print(3), TypeError), (lambda x: layers.Print(x, print_phase="never"), ValueError),
])
def test_bad_arguments(make, error):
    with pytest.raises(error):
        make(fluid.data("x", [None, 3], "float32"))


def test_program_of_another_process_names_no_function():
    x = fluid.data("x", [None, 3], "float32")
    layers.py_func(tanh, x, output())
    op = fluid.default_main_program().global_block().ops[0]
    op._set_attr("forward_callable_id", 10 ** 6)
    with pytest.raises(Exception, match="number 1000000"):
        run(["out"])


def test_on_replicas():
    x = fluid.data("x", [None, 3], "float32")
    out = layers.py_func(tanh, layers.fc(x, 3), output(), tanh_grad)
    loss = layers.mean(out)
    fluid.optimizer.SGD(0.1).minimize(loss)
    executor = fluid.Executor(fluid.CPUPlace())
    executor.run(fluid.default_startup_program())
    program = fluid.CompiledProgram(fluid.default_main_program()).with_data_parallel(
        loss_name=loss.name, places=fluid.cpu_places(2))
    losses = [executor.run(program, feed={"x": X}, fetch_list=[loss])[0].mean() for _ in range(5)]
    assert losses[-1] < losses[0]


PRINTS = """
import numpy
import anabranch.fluid as fluid
x = fluid.data("x", [None, 2], "float32", lod_level=1)
x.stop_gradient = False
y = fluid.layers.Print(x, message="look:", first_n=2, summarize=3)
z = fluid.layers.Print(fluid.layers.cast(x, "int64"), print_tensor_name=False, print_tensor_shape=False,
                       print_tensor_type=False, print_tensor_lod=False)
b = fluid.layers.Print(x, print_phase="backward", summarize=0)
g, = fluid.gradients([fluid.layers.reduce_sum(y) + fluid.layers.reduce_sum(b)], [x])
t = fluid.create_lod_tensor(numpy.arange(8).reshape(4, 2).astype("float32") / 3, [[1, 3]], fluid.CPUPlace())
executor = fluid.Executor(fluid.CPUPlace())
for _ in range(3):
    executor.run(feed={"x": t}, fetch_list=[g, z], return_numpy=False)
"""


def test_printed_text():
    done = subprocess.run([sys.executable, "-c", PRINTS], capture_output=True, text=True, env=dict(os.environ))
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines.count("look:  x  shape: [4, 2]  dtype: float32  lod: [[0, 1, 4]]  data: [0, 0.333333, 0.666667, ...]"
                       ) == 2, done.stdout
    assert lines.count("data: [0, 0, 0, 1, 1, 1, 2, 2]") == 3
    assert sum(line.startswith("look:  print_x_0.tmp_0@GRAD") for line in lines) == 2
    assert sum(line.endswith("data: [...]") for line in lines) == 3


@pytest.mark.parametrize("func, said", [
    (lambda a: a, "func must take 2 arguments, one for each Variable of x, got <lambda>(a)"),
    (lambda a, b, c: a, "func must take 2 arguments, one for each Variable of x, got <lambda>(a, b, c)")])
def test_a_function_of_another_number_of_arguments(func, said):
    with fluid.program_guard(fluid.Program(), fluid.Program()):
        x, out = fluid.data("x", [2]), fluid.default_main_program().current_block().create_var(
            name="out", shape=[2], dtype="float32")
        for free in (lambda: numpy.ones(2), lambda *a: a[0], lambda a, b, c=3: a):
            fluid.layers.py_func(free, [x, x], out)
        with pytest.raises(TypeError) as caught:
            fluid.layers.py_func(func, [x, x], out)
    assert said in str(caught.value)
