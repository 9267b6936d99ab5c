"""SOAK: a language model that carries its state, and a loop over an array that grows and shrinks, run very often: do
memory, time and threads stay as they are?"""
import argparse
import importlib
import itertools

import numpy as np
import steady

ROWS, WORDS, WIDTH = 4, 200, 32
ITERATIONS = (1, 12, 3, 24, 7, 40, 2, 18)          # of the recurrence and of the loop, one run after another


def trained(fluid, build, state=()):
    """(executor, program, scope, what it fetches); ``state``: names and shapes of what is carried from run to run."""
    train, startup = fluid.Program(), fluid.Program()
    train.random_seed = startup.random_seed = 1
    with fluid.program_guard(train, startup), fluid.unique_name.guard():
        carried = [fluid.layers.create_global_var(shape, 0.0, "float32", persistable=True, name=name)
                   for name, shape in state]
        loss = build(*carried)
        fluid.optimizer.SGD(0.01).minimize(loss)
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    return exe, train, scope, loss


def language_model(fluid):
    """An LSTM over chunks of text of changing lengths; each starts with the state in which the last one ended."""
    L = fluid.layers

    def build(hidden, cell):
        word, after = fluid.data("word", [None, ROWS, 1], "int64"), fluid.data("after", [None, ROWS, 1], "int64")
        rows = L.embedding(word, [WORDS, WIDTH], is_sparse=True)
        recurrence = L.StaticRNN()
        with recurrence.step():
            row = recurrence.step_input(rows)
            h, c = recurrence.memory(init=hidden), recurrence.memory(init=cell)
            new_h, new_c = L.lstm_unit(row, h, c)
            recurrence.update_memory(h, new_h)
            recurrence.update_memory(c, new_c)
            recurrence.step_output(new_h)
            recurrence.step_output(new_c)
        states = recurrence()
        for all_of_them, kept in zip(states, (hidden, cell)):
            last = L.reshape(L.slice(all_of_them, axes=[0], starts=[-1], ends=[1000]), [ROWS, WIDTH])
            last.stop_gradient = True
            L.assign(last, output=kept)
        scores = L.fc(states[0], WORDS, num_flatten_dims=2)
        return L.mean(L.softmax_with_cross_entropy(scores, after))

    exe, train, scope, loss = trained(fluid, build, [("hidden", [ROWS, WIDTH]), ("cell", [ROWS, WIDTH])])
    random = np.random.RandomState(1)
    feeds = itertools.cycle([{name: random.randint(0, WORDS, (length, ROWS, 1)) for name in ("word", "after")}
                             for length in ITERATIONS])
    return lambda: exe.run(train, feed=next(feeds), fetch_list=[loss], scope=scope)


def growing_array(fluid):
    """A trained loop that writes an element in each iteration and reads the previous one; their number changes."""
    L = fluid.layers

    def build():
        x, iterations = fluid.data("x", [ROWS, WIDTH]), fluid.data("iterations", [1], "int64")
        i = L.zeros([1], "int64")
        array = L.array_write(x, i)
        more = L.less_than(i, iterations)
        loop = L.While(more)
        with loop.block():
            value = L.fc(L.array_read(array, i), WIDTH, act="tanh", param_attr="loop", bias_attr="loop_bias")
            i = L.increment(i, in_place=True)
            L.array_write(value, i, array=array)
            L.less_than(i, iterations, cond=more)
        return L.mean(L.square(L.array_read(array, iterations)))

    exe, train, scope, loss = trained(fluid, build)
    x = np.random.RandomState(1).randn(ROWS, WIDTH).astype("float32")
    feeds = itertools.cycle([{"x": x, "iterations": np.array([n], "int64")} for n in ITERATIONS])
    return lambda: exe.run(train, feed=next(feeds), fetch_list=[loss], scope=scope)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid", help="module with Fluid's API to measure")
    parser.add_argument("--runs", type=int, default=100000)
    args = parser.parse_args()
    fluid = importlib.import_module(args.fluid)
    for what, build in (("language model", language_model), ("growing array", growing_array)):
        steady.report("SOAK", args.fluid, what, args.runs, steady.watch(build(fluid), args.runs))


if __name__ == "__main__":
    main()
