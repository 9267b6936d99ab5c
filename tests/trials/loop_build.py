"""Says random programs of loops (loop_programs.py) in the public API of Fluid.

    net = build(program, fluid, gradients=True)      # main, startup, variables by name, loss, gradients by leaf
    values = run(net, fluid, program, feed, names)   # LoDTensors
"""
import collections

import numpy as np
from loop_mistakes import MISTAKES

Net = collections.namedtuple("Net", "main startup variables loss gradients made")  # made: by a mistake, and accepted
LEAVES = ("x", "y", "s", "w")


class Builder:
    def __init__(self, fluid, program):
        self.fluid, self.layers, self.program = fluid, fluid.layers, program
        self.ranks = fluid.layers.control_flow
        self.v, self.made = {}, []

    def feeds(self):
        for name in ("x", "y"):
            self.v[name] = self.fluid.data(name, [None, 3], "float64")
        self.v["s"] = self.fluid.data("s", [None, 3], "float64", lod_level=1)
        for name in ("n0", "n1"):
            self.v[name] = self.fluid.data(name, [1], "int64")
        zeros = self.fluid.initializer.Constant(0.0)
        self.v["w"] = self.layers.create_parameter([3, 3], "float64", name="w", default_initializer=zeros)
        for name in LEAVES:
            self.v[name].stop_gradient = False

    def steps(self, steps):
        for each in steps:
            ins = [self.v[n] for n in each.ins]
            if each.kind in PURE:
                self.v[each.outs[0]] = PURE[each.kind](self.layers, *ins, *each.args)
            else:
                getattr(self, "do_" + each.kind)(each, *ins)

    def block(self, block, *given):
        """A block gets its arguments as its own variables: it may write them again."""
        self.v.update((name, self.layers.assign(x)) for name, x in zip(block.names, given))
        self.steps(block.steps)
        return [self.v[n] for n in block.results]

    def do_bad(self, s, *ins):
        made = MISTAKES[s.args[0]](self, *ins)
        made = made[0] if isinstance(made, (list, tuple)) else made
        if made is not None and made.block.idx == 0:
            self.made.append(made)

    # ---- effects

    def do_over(self, s, x):
        self.layers.assign(x, self.v[s.outs[0]])

    def do_up(self, s):
        self.layers.increment(self.v[s.outs[0]])

    def do_array(self, s):
        self.v[s.outs[0]] = self.layers.create_array("float64")

    def do_write(self, s, x, at):
        self.layers.array_write(x, at, self.v[s.outs[0]])

    # ---- sequences

    def do_back(self, s, x):
        table = self.ranks.lod_rank_table(x)
        array = self.ranks.lod_tensor_to_array(self.layers.tanh(x), table)
        self.v[s.outs[0]] = self.ranks.array_to_lod_tensor(array, table)

    def do_firsts(self, s, x):
        array = self.ranks.lod_tensor_to_array(x, self.ranks.lod_rank_table(x))
        self.v[s.outs[0]] = row_sum(self.layers, self.layers.array_read(array, number(self.layers, 0)))

    def do_longest(self, s, x):
        self.v[s.outs[0]] = self.ranks.max_sequence_len(self.ranks.lod_rank_table(x))

    def do_reorder(self, s, x, like):
        self.v[s.outs[0]] = self.layers.reorder_lod_tensor_by_rank(x, self.ranks.lod_rank_table(like))

    def do_shrunk(self, s, x, like, t):
        table = self.ranks.lod_rank_table(like)
        ordered = self.layers.reorder_lod_tensor_by_rank(x, table)
        self.v[s.outs[0]] = row_sum(self.layers, self.ranks.shrink_memory(ordered, t, table))

    def do_divided(self, s, x, mask):
        yes, no = self.ranks.split_lod_tensor(x, mask)
        self.v[s.outs[0]] = self.ranks.merge_lod_tensor(self.layers.tanh(yes), self.layers.square(no), x, mask)

    # ---- blocks

    def do_While(self, s, bound):
        i = self.v[s.outs[0]] = number(self.layers, 0)
        going_on = self.layers.less_than(i, bound)
        with self.layers.While(going_on).block():
            self.block(s.blocks[0])
            self.layers.increment(i)
            self.layers.less_than(i, bound, cond=going_on)

    def do_while_loop(self, s, bound):
        def body(i, *carried):
            self.v.update(zip(s.outs, (i, *carried)))
            results = self.block(s.blocks[0])
            return [self.layers.increment(i), *results]
        start = [number(self.layers, 0), *(self.v[n] for n in s.outs[1:])]
        done = self.layers.while_loop(lambda i, *carried: self.layers.less_than(i, bound), body, start)
        self.v.update(zip(s.outs, done))

    def chooser(self, block):
        return lambda: self.block(block)[0]

    def do_cond(self, s, pred):
        self.v[s.outs[0]] = self.layers.cond(pred, *map(self.chooser, s.blocks))

    def do_case(self, s, *preds):
        choosers = [self.chooser(b) for b in s.blocks]
        default = choosers.pop() if s.args[0] else None
        self.v[s.outs[0]] = self.layers.case(list(zip(preds, choosers)), default)

    def do_switch_case(self, s, at):
        choosers = [self.chooser(b) for b in s.blocks]
        default = choosers.pop() if s.args[-1] else None
        self.v[s.outs[0]] = self.layers.switch_case(at, list(zip(s.args, choosers)), default)

    def do_Switch(self, s, *preds):
        with self.layers.Switch() as switch:
            for pred, block in zip(preds, s.blocks):
                with switch.case(pred):
                    self.block(block)
            if s.args[0]:
                with switch.default():
                    self.block(s.blocks[-1])

    def do_IfElse(self, s, mask, *ins):
        chosen = self.layers.IfElse(mask)
        for block, side in zip(s.blocks, (chosen.true_block, chosen.false_block)):
            with side():
                chosen.output(*self.block(block, *[chosen.input(x) for x in ins]))
        self.v[s.outs[0]], = chosen()

    def do_StaticRNN(self, s, init, *inputs):
        stacked = self.layers.stack(list(inputs))
        rnn = self.layers.StaticRNN()
        with rnn.step():
            now, before = rnn.step_input(stacked), rnn.memory(init=init)
            memory, out = self.block(s.blocks[0], now, before)
            rnn.update_memory(before, memory)
            rnn.step_output(out)
        last = self.layers.slice(rnn(), [0], [len(inputs) - 1], [len(inputs)])
        self.v[s.outs[0]] = self.layers.squeeze(last, [0])

    def do_DynamicRNN(self, s, x, init, fixed):
        rnn = self.layers.DynamicRNN()
        with rnn.block():
            now, fixed = rnn.step_input(x), rnn.static_input(fixed)
            before = rnn.memory(init=init, need_reorder=True)
            memory, out = self.block(s.blocks[0], now, before, fixed)
            rnn.update_memory(before, memory)
            rnn.output(out)
        self.v[s.outs[0]] = rnn()


def number(layers, value):
    return layers.fill_constant([1], "int64", value)


def row_sum(layers, x):
    return layers.tanh(layers.reduce_sum(x, dim=0))


def half(combine):
    return lambda layers, x, y: layers.scale(getattr(layers, combine)(x, y), 0.5)


def mask(layers, x):
    zeros = layers.fill_constant_batch_size_like(x, [-1, 1], "float64", 0.0)
    return layers.less_than(layers.reduce_sum(x, dim=1, keep_dim=True), zeros)


PURE = {
    "tanh": lambda layers, x: layers.tanh(x), "sigmoid": lambda layers, x: layers.sigmoid(x),
    "square": lambda layers, x: layers.square(x), "copy": lambda layers, x: layers.assign(x),
    "scale": lambda layers, x, a, b: layers.scale(x, a, b),
    "add": half("elementwise_add"), "sub": half("elementwise_sub"),
    "mul": lambda layers, x, y: layers.elementwise_mul(x, y),
    "matmul": lambda layers, x, w: layers.tanh(layers.matmul(x, w)),
    "rowsum": row_sum, "addvec": half("elementwise_add"),
    "count": number, "plus": lambda layers, i, j: layers.elementwise_add(i, j),
    "least": lambda layers, i, j: layers.elementwise_min(i, j),
    "below": lambda layers, i, j: layers.less_than(i, j),
    "sign": lambda layers, x, at: layers.less_than(layers.reduce_sum(x), layers.fill_constant([1], "float64", at)),
    "empty": lambda layers, x: layers.is_empty(x), "not": lambda layers, c: layers.logical_not(c), "mask": mask,
    "length": lambda layers, a: layers.array_length(a), "read": lambda layers, a, i: layers.array_read(a, i),
    "joined": lambda layers, a, axis, stack: row_sum(layers, layers.reshape(
        layers.tensor_array_to_tensor(a, axis, use_stack=stack)[0], [-1, 3])),
}


def build(program, fluid, gradients=True, statements=None):
    """`statements`: appends them in another way than Builder does."""
    main, startup = fluid.Program(), fluid.Program()
    with fluid.program_guard(main, startup), fluid.unique_name.guard():
        builder = Builder(fluid, program)
        builder.feeds()
        statements(builder) if statements else builder.steps(program.steps)
        layers, v = fluid.layers, builder.v
        parts = [layers.scale(layers.reduce_sum(layers.tanh(v[n])), program.weights[n]) for n in program.matrices]
        loss = layers.sums(parts)
        grads = fluid.gradients([loss], [v[n] for n in LEAVES]) if gradients else []
    return Net(main, startup, v, loss, {n: g for n, g in zip(LEAVES, grads) if g is not None}, builder.made)


def fed(program, fluid, feed):
    made = {n: np.array(a) for n, a in feed.items() if n != "w"}
    made["s"] = fluid.create_lod_tensor(feed["s"], [program.lengths], fluid.CPUPlace())
    return made


def run(net, fluid, program, feeds, fetch, target=None, scope=None):
    """LoDTensors; of one feed for each replica."""
    exe, scope = fluid.Executor(fluid.CPUPlace()), scope or fluid.Scope()
    with fluid.scope_guard(scope):
        exe.run(net.startup)
        scope.find_var("w").get_tensor().set(feeds[0]["w"], fluid.CPUPlace())
        made = [fed(program, fluid, feed) for feed in feeds]
        return exe.run(target or net.main, feed=made[0] if len(made) == 1 else made, fetch_list=fetch,
                       return_numpy=False)
