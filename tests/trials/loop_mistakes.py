"""Mistakes with loops, branches and arrays: what must be refused when the program is built, or when it runs."""
from loop_steps import Block, step


def number(b, value, dtype="int64"):
    return b.layers.fill_constant([1], dtype, value)


def an_array(b, x):
    return b.layers.array_write(x, number(b, 0))


def while_of(b, condition, x):
    with b.layers.While(condition).block():
        b.layers.assign(b.layers.tanh(x), x)


def loop(b, x, body):
    return b.layers.while_loop(lambda i, h: b.layers.less_than(i, number(b, 2)), body, [number(b, 0), x])


def without_update(b, x, y):
    rnn = b.layers.StaticRNN()
    with rnn.step():
        now, before = rnn.step_input(b.layers.stack([x, y])), rnn.memory(init=x)
        rnn.step_output(b.layers.elementwise_add(now, before))
    rnn()


def steps_of_two_lengths(b, x, y):
    rnn = b.layers.StaticRNN()
    with rnn.step():
        rnn.step_output(rnn.step_input(b.layers.stack([x, y])))
        rnn.step_output(rnn.step_input(b.layers.stack([x, y, x])))
    rnn()


def static_before_step(b, x, y):
    rnn = b.layers.DynamicRNN()
    with rnn.block():
        rnn.output(rnn.static_input(x))
    rnn()


def one_branch(b, x, y):
    chosen = b.layers.IfElse(b.layers.less_than(b.layers.reduce_sum(x, dim=1, keep_dim=True),
                                                b.layers.reduce_sum(y, dim=1, keep_dim=True)))
    with chosen.true_block():
        chosen.output(chosen.input(x), chosen.input(y))
    with chosen.false_block():
        chosen.output(chosen.input(x))
    chosen()


def bools(b, x):
    return b.layers.less_than(x, b.layers.scale(x, 2.0))


MISTAKES = {
    "reads beyond": lambda b, x, y: b.layers.array_read(an_array(b, x), number(b, 7)),
    "reads before": lambda b, x, y: b.layers.array_read(an_array(b, x), number(b, -1)),
    "writes before": lambda b, x, y: b.layers.array_write(x, number(b, -1)),
    "reads a hole": lambda b, x, y: b.layers.array_read(b.layers.array_write(x, number(b, 3)), number(b, 1)),
    "joins nothing": lambda b, x, y: b.layers.tensor_array_to_tensor(b.layers.create_array("float64")),
    "index of floats": lambda b, x, y: b.layers.array_write(x, number(b, 0, "float64")),
    "length of a tensor": lambda b, x, y: b.layers.array_length(x),
    "reads a tensor": lambda b, x, y: b.layers.array_read(x, number(b, 0)),
    "condition of integers": lambda b, x, y: b.layers.cond(number(b, 1), lambda: x, lambda: y),
    "condition of many": lambda b, x, y: b.layers.cond(bools(b, x), lambda: b.layers.tanh(x), lambda: b.layers.tanh(y)),
    "branches of two structures": lambda b, x, y: b.layers.cond(
        b.layers.less_than(number(b, 1), number(b, 2)), lambda: b.layers.tanh(x), lambda: (x, y)),
    "case of a list": lambda b, x, y: b.layers.case([[number(b, 1), lambda: x], [number(b, 1), lambda: y]]),
    "switch_case of floats": lambda b, x, y: b.layers.switch_case(number(b, 1, "float64"), [lambda: x, lambda: y]),
    "While of integers": lambda b, x, y: while_of(b, number(b, 1), b.layers.tanh(x)),
    "While of many": lambda b, x, y: while_of(b, bools(b, x), b.layers.tanh(x)),
    "while_loop without variables": lambda b, x, y: b.layers.while_loop(lambda: x, lambda: x, []),
    "body that gives less": lambda b, x, y: loop(b, b.layers.tanh(x), lambda i, h: [b.layers.increment(i)]),
    "memory without update": without_update,
    "steps of two lengths": steps_of_two_lengths,
    "static input first": static_before_step,
    "branches of two lengths": one_branch,
    "table of a tensor": lambda b, x, y: b.ranks.max_sequence_len(b.ranks.lod_rank_table(b.layers.tanh(x))),
    "length of a table that is none": lambda b, x, y: b.ranks.max_sequence_len(x),
}


def mistake(maker, seen, lengths):
    """(its name, steps); in a loop now and then."""
    name = maker.one(sorted(MISTAKES))
    made = step("bad", [], ["x", "y"], [name])
    if maker.likely(0.5):
        return name, [made]
    return name, [step("While", [maker.new("i")], ["n1"], [], [Block([made], (), ())])]
