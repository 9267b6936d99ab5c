"""Cases: branches, loops and arrays."""
from .common import X, case

# ---- control flow


def sw(f, L):
    lr = L.create_global_var([1], 0.0, 'float32', True, name='lr')
    g = L.fill_constant([1], 'float32', 1.0)
    z = L.fill_constant([1], 'float32', 0.0)
    with L.Switch() as s:
        with s.case(L.less_than(z, g)):
            L.assign(g, lr)
        with s.case(L.equal(z, g)):
            L.assign(z, lr)
        with s.default():
            L.assign(L.fill_constant([1], 'float32', 3.0), lr)
    return lr


case('switch', sw)
case('cond', lambda f, L: L.cond(L.less_than(L.fill_constant([1], 'float32', 1.0), L.fill_constant([1], 'float32', 2.0)), lambda: L.fill_constant([2], 'float32', 1.0), lambda: L.fill_constant([2], 'float32', 2.0)))
case('cond_cap', lambda f, L: (lambda x: L.cond(L.less_than(L.mean(x), L.fill_constant([1], 'float32', 2.0)), lambda: [L.fc(x, 2), L.mean(x)], lambda: [L.fc(x, 2), L.reduce_sum(x)]))(X(f)))
case('cond_none', lambda f, L: (lambda x: L.cond(L.less_than(L.mean(x), L.fill_constant([1], 'float32', 2.0)), lambda: L.assign(x, L.create_tensor('float32', 'cc')) and None, None))(X(f)))
case('cond_bad', lambda f, L: L.cond(3, lambda: 1, lambda: 2))
case('cond_badfn', lambda f, L: L.cond(X(f, 1, d='bool'), 3, lambda: 2))
case('cond_diff', lambda f, L: L.cond(X(f, 1, d='bool'), lambda: [X(f), X(f)], lambda: X(f)))
case('cond_grad', lambda f, L: (lambda x: f.gradients([L.mean(L.cond(L.less_than(L.mean(x), L.fill_constant([1], 'float32', 2.0)), lambda: L.scale(x, 2.0), lambda: L.square(x)))], [x]))((lambda v: (setattr(v, 'stop_gradient', False), v)[1])(X(f))))


def three_way(f, L):
    x = L.fill_constant([1], 'float32', 1.0)
    y = L.fill_constant([1], 'float32', 2.0)
    return L.case([(L.less_than(x, y), lambda: L.fill_constant([1], 'float32', 7.0)), (L.less_than(y, x), lambda: L.fill_constant([1], 'float32', 8.0))], lambda: L.fill_constant([1], 'float32', 9.0))


case('case', three_way)
case('case_nodef', lambda f, L: (lambda x, y: L.case([(L.less_than(x, y), lambda: L.fill_constant([1], 'float32', 7.0)), (L.less_than(y, x), lambda: L.fill_constant([1], 'float32', 8.0))]))(L.fill_constant([1], 'float32', 1.0), L.fill_constant([1], 'float32', 2.0)))
case('switch_case', lambda f, L: L.switch_case(L.fill_constant([1], 'int32', 1), {1: lambda: L.fill_constant([1], 'float32', 7.0), 2: lambda: L.fill_constant([1], 'float32', 8.0)}, lambda: L.fill_constant([1], 'float32', 9.0)))
case('switch_case_l', lambda f, L: L.switch_case(L.fill_constant([1], 'int64', 1), [(0, lambda: L.fill_constant([1], 'float32', 7.0)), (4, lambda: L.fill_constant([1], 'float32', 8.0))]))
case('switch_case_fns', lambda f, L: L.switch_case(L.fill_constant([1], 'int64', 1), [lambda: L.fill_constant([1], 'float32', 7.0), lambda: L.fill_constant([1], 'float32', 8.0)]))
case('switch_outside', lambda f, L: L.Switch().case(L.less_than(X(f, 1), X(f, 1))).__enter__())


def num(L, v, d='int64'):
    return L.fill_constant([1], d, v)


def loop(f, L, body, n=3, **kw):
    x, i, bound = X(f), num(L, 0), num(L, n)
    x.stop_gradient = False
    h = L.assign(x)
    going = L.less_than(i, bound)
    with L.While(going, **kw).block():
        body(f, L, h, i)
        L.increment(i)
        L.less_than(i, bound, cond=going)
    return h


def nested_loops(f, L):
    def body(i, h):
        return L.while_loop(lambda i, h: L.less_than(i, num(L, 2)), lambda i, h: [i + 1, L.tanh(h)], [i + 0, h])
    return L.while_loop(lambda i, h: L.less_than(i, num(L, 3)), body, [num(L, 0), L.scale(X(f), 2.0)])


def array_loop(f, L):
    x, i, bound = X(f), num(L, 0), num(L, 3)
    a = L.array_write(x, i)
    going = L.less_than(i, bound)
    with L.While(going).block():
        made = L.fc(L.array_read(a, i), 4)
        L.increment(i)
        L.array_write(made, i, a)
        L.less_than(i, bound, cond=going)
    return [L.array_read(a, i), L.array_length(a)]


case('while', lambda f, L: loop(f, L, lambda f, L, h, i: L.assign(L.tanh(h), h)))
case('while_test', lambda f, L: loop(f, L, lambda f, L, h, i: L.assign(L.tanh(h), h), is_test=True, name='mine'))
case('while_fc', lambda f, L: loop(f, L, lambda f, L, h, i: L.assign(L.fc(h, 4, act='relu'), h)))
case('while_cond', lambda f, L: loop(f, L, lambda f, L, h, i: L.assign(L.cond(L.less_than(i, num(L, 1)), lambda: L.scale(h, 2.0), lambda: L.tanh(h)), h)))
case('while_notbool', lambda f, L: L.While(num(L, 1)))
case('while_notvar', lambda f, L: L.While(3))
case('while_two', lambda f, L: L.While(L.fill_constant([2], 'bool', True)))
case('while_loop', lambda f, L: L.while_loop(lambda i, h: L.less_than(i, num(L, 3)), lambda i, h: [i + 1, L.tanh(h)], [num(L, 0), L.scale(X(f), 2.0)]))
case('while_loop_one', lambda f, L: L.while_loop(lambda i: L.less_than(i, num(L, 3)), lambda i: L.increment(i), [num(L, 0)], True, 'mine'))
case('while_loop_nest', lambda f, L: L.while_loop(lambda i, d: L.less_than(i, d['n']), lambda i, d: [i + 1, {'n': d['n'], 'h': [L.tanh(d['h'][0])]}], [num(L, 0), {'n': num(L, 3), 'h': [L.scale(X(f), 2.0)]}])[1]['h'])
case('while_loop_two', nested_loops)
case('while_loop_array', lambda f, L: L.while_loop(lambda i, a: L.less_than(i, num(L, 3)), lambda i, a: [i + 1, L.array_write(X(f), i, a)], [num(L, 0), L.create_array('float32')]))
case('while_loop_cond', lambda f, L: L.while_loop(3, lambda x: x, [num(L, 0)]))
case('while_loop_body', lambda f, L: L.while_loop(lambda x: x, 3, [num(L, 0)]))
case('while_loop_vars', lambda f, L: L.while_loop(lambda x: x, lambda x: x, num(L, 0)))
case('while_loop_empty', lambda f, L: L.while_loop(lambda x: x, lambda x: x, []))
case('while_loop_notbool', lambda f, L: L.while_loop(lambda x: x, lambda x: x, [num(L, 0)]))
case('while_loop_notvar', lambda f, L: L.while_loop(lambda x: True, lambda x: x, [num(L, 0)]))
case('while_loop_less', lambda f, L: L.while_loop(lambda x, y: L.less_than(x, y), lambda x, y: [x], [num(L, 0), num(L, 1)]))
case('array', lambda f, L: L.create_array('float32'))
case('array_bad', lambda f, L: L.create_array(3))
case('array_write', lambda f, L: L.array_write(X(f), num(L, 0)))
case('array_write_to', lambda f, L: L.array_write(X(f), num(L, 0), L.create_array('float32')))
case('array_write_lod', lambda f, L: L.array_read(L.array_write(X(f, lod=1), num(L, 0)), num(L, 0)))
case('array_write_i32', lambda f, L: L.array_write(X(f), num(L, 0, 'int32')))
case('array_write_num', lambda f, L: L.array_write(3, num(L, 0)))
case('array_write_not', lambda f, L: L.array_write(X(f), num(L, 0), num(L, 0)))
case('array_read', lambda f, L: L.array_read(L.array_write(X(f), num(L, 0)), num(L, 0)))
case('array_read_not', lambda f, L: L.array_read(X(f), num(L, 0)))
case('array_read_i32', lambda f, L: L.array_read(L.create_array('float32'), num(L, 0, 'int32')))
case('array_length', lambda f, L: L.array_length(L.array_write(X(f), num(L, 0))))
case('array_length_not', lambda f, L: L.array_length(X(f)))
case('array_loop', array_loop)

def if_else(f, L, n=1, **kw):
    x, y = X(f), X(f, n='y')
    ie = L.IfElse(f.data('m', [None, 1], 'bool'), **kw)
    with ie.true_block():
        ie.output(*[L.scale(ie.input(x), 2.0 + k) for k in range(n)])
    with ie.false_block():
        ie.output(*[L.square(ie.input(x)) + ie.input(y) for k in range(n)])
    return ie()


def one_sided(f, L):
    ie = L.IfElse(f.data('m', [None, 1], 'bool'))
    with ie.true_block():
        ie.output(L.scale(ie.input(X(f)), 2.0))
    return ie()


def uneven(f, L):
    ie = L.IfElse(f.data('m', [None, 1], 'bool'))
    with ie.true_block():
        ie.output(L.scale(ie.input(X(f)), 2.0))
    with ie.false_block():
        x = ie.input(X(f))
        ie.output(x, x)
    return ie()


def static(f, L, outs=1, init=True, **kw):
    x = f.data('x', [5, 4, 3])
    rnn = L.StaticRNN(**kw)
    with rnn.step():
        now = rnn.step_input(x)
        before = rnn.memory(init=f.data('h', [4, 3])) if init else rnn.memory(shape=[-1, 3], batch_ref=now, init_value=0.5)
        made = L.fc([now, before], 3, act='tanh', bias_attr=False)
        rnn.update_memory(before, made)
        rnn.output(*[made] * outs)
    return rnn()


def static_no_update(f, L):
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(f.data('x', [5, 4, 3]))
        rnn.memory(init=f.data('h', [4, 3]))
        rnn.step_output(now)
    return rnn()


def static_two_lengths(f, L):
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.step_input(f.data('x', [5, 4, 3]))
        rnn.step_input(f.data('y', [6, 4, 3]))


def static_no_memory(f, L):
    rnn = L.StaticRNN()
    with rnn.step():
        rnn.step_output(L.tanh(rnn.step_input(f.data('x', [5, 4, 3]))))
    return rnn()


def static_bad(f, L, what):
    rnn = L.StaticRNN()
    with rnn.step():
        now = rnn.step_input(f.data('x', [5, 4, 3]))
        what(rnn, now)
        rnn.step_output(now)
    return rnn()


def dynamic(f, L, outs=1, init=False, static=False, lod=1, level=0, **kw):
    x = f.data('x', [None, 3], lod_level=lod)
    rnn = L.DynamicRNN(**kw)
    with rnn.block():
        parts = [rnn.step_input(x, level)]
        if static:
            parts.append(rnn.static_input(f.data('c', [None, 2])))
        parts.append(rnn.memory(init=f.data('h', [None, 3]), need_reorder=True) if init else rnn.memory(shape=[3], value=0.1))
        made = L.fc(parts, 3, act='tanh', bias_attr=False)
        rnn.update_memory(parts[-1], made)
        rnn.output(*[made] + parts[:outs - 1])
    return rnn()


def dynamic_bad(f, L, what):
    rnn = L.DynamicRNN()
    with rnn.block():
        what(rnn)
    return rnn()


def arrays_of(L, *shapes):
    a = L.create_array('float32')
    for k, s in enumerate(shapes):
        L.array_write(L.fill_constant(s, 'float32', 1.0), num(L, k), a)
    return a


case('ifelse', if_else)
case('ifelse_two', lambda f, L: if_else(f, L, 2, name='mine'))
case('ifelse_one_sided', one_sided)
case('ifelse_uneven', uneven)
case('ifelse_num', lambda f, L: L.IfElse(3))
case('ifelse_none', lambda f, L: L.IfElse(f.data('m', [None, 1], 'bool'))())
case('ifelse_outside', lambda f, L: L.IfElse(f.data('m', [None, 1], 'bool')).input(X(f)))
case('ifelse_output', lambda f, L: L.IfElse(f.data('m', [None, 1], 'bool')).output(X(f)))
case('srnn', static)
case('srnn_two', lambda f, L: static(f, L, 2, name='mine'))
case('srnn_boot', lambda f, L: static(f, L, init=False))
case('srnn_no_memory', static_no_memory)
case('srnn_no_update', static_no_update)
case('srnn_lengths', static_two_lengths)
case('srnn_early', lambda f, L: L.StaticRNN()())
case('srnn_outside', lambda f, L: L.StaticRNN().step_input(f.data('x', [5, 4, 3])))
case('srnn_memory', lambda f, L: static_bad(f, L, lambda rnn, now: rnn.memory()))
case('srnn_memory_list', lambda f, L: static_bad(f, L, lambda rnn, now: rnn.memory(init=[1])))
case('srnn_update', lambda f, L: static_bad(f, L, lambda rnn, now: rnn.update_memory(now, 3)))
case('srnn_num', lambda f, L: static_bad(f, L, lambda rnn, now: rnn.step_input(3)))
case('srnn_out_num', lambda f, L: static_bad(f, L, lambda rnn, now: rnn.step_output(3)))
case('drnn', dynamic)
case('drnn_two', lambda f, L: dynamic(f, L, 2, name='mine'))
case('drnn_init', lambda f, L: dynamic(f, L, init=True))
case('drnn_static', lambda f, L: dynamic(f, L, init=True, static=True))
case('drnn_level', lambda f, L: dynamic(f, L, lod=2, level=1))
case('drnn_early', lambda f, L: L.DynamicRNN()())
case('drnn_outside', lambda f, L: L.DynamicRNN().step_input(X(f, lod=1)))
case('drnn_static_first', lambda f, L: dynamic_bad(f, L, lambda rnn: rnn.static_input(X(f))))
case('drnn_memory_first', lambda f, L: dynamic_bad(f, L, lambda rnn: rnn.memory(shape=[3])))
case('drnn_num', lambda f, L: dynamic_bad(f, L, lambda rnn: rnn.step_input(3)))
case('array_join', lambda f, L: L.tensor_array_to_tensor(arrays_of(L, [2, 3], [2, 4])))
case('array_join_0', lambda f, L: L.tensor_array_to_tensor(arrays_of(L, [2, 3], [4, 3]), 0, 'mine'))
case('array_stack', lambda f, L: L.tensor_array_to_tensor(arrays_of(L, [2, 3], [2, 3]), 0, use_stack=True))
case('array_stack_1', lambda f, L: L.tensor_array_to_tensor(arrays_of(L, [2, 3], [2, 3]), use_stack=True))
case('array_join_num', lambda f, L: L.tensor_array_to_tensor(3))
case('rank_reorder', lambda f, L: L.reorder_lod_tensor_by_rank(X(f), L.control_flow.lod_rank_table(X(f, n='y', lod=1))))
case('rank_reorder_lod', lambda f, L: L.reorder_lod_tensor_by_rank(X(f, lod=1), L.control_flow.lod_rank_table(X(f, n='y', lod=1))))
case('rank_reorder_not', lambda f, L: L.reorder_lod_tensor_by_rank(X(f), X(f)))
case('rank_len', lambda f, L: L.control_flow.max_sequence_len(L.control_flow.lod_rank_table(X(f, lod=1))))
case('rank_array', lambda f, L: (lambda x, t: L.control_flow.array_to_lod_tensor(L.control_flow.lod_tensor_to_array(x, t), t))(*(lambda x: (x, L.control_flow.lod_rank_table(x)))(X(f, lod=1))))
case('rank_shrink', lambda f, L: L.control_flow.shrink_memory(X(f), num(L, 1), L.control_flow.lod_rank_table(X(f, n='y', lod=1))))
case('split_lod', lambda f, L: L.control_flow.split_lod_tensor(X(f), f.data('m', [None, 1], 'bool')))
case('merge_lod', lambda f, L: L.control_flow.merge_lod_tensor(X(f), X(f), X(f), f.data('m', [None, 1], 'bool')))


def grown(f, L, cell, steps=4, **kw):
    x = f.data('x', [None, steps, 5])
    if kw.pop('lengths', False):
        kw['sequence_length'] = f.data('n', [None], 'int64')
    out, last = L.rnn(cell, x, **kw)
    return [out] + (list(last) if isinstance(last, (list, tuple)) else [last])


def own_cell(f, L):
    class Sum(L.RNNCell):
        def call(self, inputs, states):
            made = L.tanh(inputs + states)
            return made, made

        @property
        def state_shape(self):
            return [5]
    return Sum()


case('cell_gru', lambda f, L: grown(f, L, L.GRUCell(3)))
case('cell_gru_lengths', lambda f, L: grown(f, L, L.GRUCell(3), lengths=True))
case('cell_gru_back', lambda f, L: grown(f, L, L.GRUCell(3), lengths=True, is_reverse=True))
case('cell_gru_attr', lambda f, L: grown(f, L, L.GRUCell(3, f.ParamAttr('w'), f.ParamAttr('b'), L.tanh, L.sigmoid, name='mine')))
case('cell_gru_init', lambda f, L: grown(f, L, L.GRUCell(3), initial_states=f.data('h', [None, 3])))
case('cell_lstm', lambda f, L: grown(f, L, L.LSTMCell(3)))
case('cell_lstm_lengths', lambda f, L: grown(f, L, L.LSTMCell(3), lengths=True))
case('cell_lstm_major', lambda f, L: grown(f, L, L.LSTMCell(3), time_major=True))
case('cell_lstm_back', lambda f, L: grown(f, L, L.LSTMCell(3), is_reverse=True))
case('cell_lstm_attr', lambda f, L: grown(f, L, L.LSTMCell(3, f.ParamAttr('w'), f.ParamAttr('b'), forget_bias=0.5, name='mine')))
case('cell_own', lambda f, L: grown(f, L, own_cell(f, L)))
case('cell_states', lambda f, L: L.GRUCell(3).get_initial_states(X(f), [2], 'float64', 0.5))
case('cell_states_two', lambda f, L: L.LSTMCell(3).get_initial_states(f.data('x', [4, None, 5]), batch_dim_idx=1))
case('cell_none', lambda f, L: L.rnn(3, X(f)))
case('cell_undefined', lambda f, L: L.RNNCell().call(X(f), X(f)))
case('cell_undefined_shape', lambda f, L: L.RNNCell().state_shape)
