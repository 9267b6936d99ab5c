"""Cases: recurrent layers of contrib, and its layers of one op."""
from .common import X, case
from .decoders import leaves

seq = lambda f, *s, **k: X(f, *(s or (None, 5, 4)), **k)
lens = lambda f, d='int64': X(f, None, n='len', d=d)


def gru(f, x=None, h=None, **k):
    return leaves(f.contrib.layers.basic_gru(seq(f) if x is None else x, h, 6, **k))


def lstm(f, x=None, h=None, c=None, **k):
    return leaves(f.contrib.layers.basic_lstm(seq(f) if x is None else x, h, c, 6, **k))


ARGUMENTS = {
    'plain': {}, 'two': dict(num_layers=2), 'bi': dict(bidirectional=True), 'bi2': dict(bidirectional=True, num_layers=2),
    'drop': dict(num_layers=2, dropout_prob=.3), 'time': dict(batch_first=False), 'name': dict(name='nn'),
    'none': dict(num_layers=0), 'nobias': dict(bias_attr=False)}
for w, fn in (('gru', gru), ('lstm', lstm)):
    for n, k in ARGUMENTS.items():
        case('cl_%s_%s' % (w, n), lambda f, L, fn=fn, k=k: fn(f, **k))
    case('cl_%s_acts' % w, lambda f, L, fn=fn: fn(f, gate_activation=L.relu, activation=L.sigmoid))
    case('cl_%s_attr' % w, lambda f, L, fn=fn: fn(f, param_attr=f.ParamAttr('pw', initializer=f.initializer.Constant(.1)), bias_attr=f.ParamAttr('pb'), num_layers=2, bidirectional=True))
    case('cl_%s_attr_noname' % w, lambda f, L, fn=fn: fn(f, param_attr=f.ParamAttr(initializer=f.initializer.Constant(.1)), num_layers=2))
    case('cl_%s_len' % w, lambda f, L, fn=fn: fn(f, sequence_length=lens(f), bidirectional=True))
    case('cl_%s_len_time' % w, lambda f, L, fn=fn: fn(f, sequence_length=lens(f, 'int32'), batch_first=False))
    case('cl_%s_64' % w, lambda f, L, fn=fn: fn(f, seq(f, d='float64'), dtype='float64'))
    case('cl_%s_steps' % w, lambda f, L, fn=fn: fn(f, seq(f, None, None, 4)))
    case('cl_%s_num' % w, lambda f, L, fn=fn: fn(f, 3))
st = lambda f, n, k=1: X(f, k, None, 6, n=n)
case('cl_gru_init', lambda f, L: gru(f, h=st(f, 'h')))
case('cl_gru_init_bi', lambda f, L: gru(f, h=st(f, 'h', 4), num_layers=2, bidirectional=True))
case('cl_lstm_init', lambda f, L: lstm(f, h=st(f, 'h'), c=st(f, 'c')))
case('cl_lstm_init_bi', lambda f, L: lstm(f, h=st(f, 'h', 4), c=st(f, 'c', 4), num_layers=2, bidirectional=True, batch_first=False))
case('cl_lstm_init_half', lambda f, L: lstm(f, h=st(f, 'h')))
case('cl_lstm_forget', lambda f, L: lstm(f, forget_bias=.5))

row = lambda f, n, w=6: X(f, None, w, n=n)
U = {'gru': lambda f, L, **k: f.contrib.layers.BasicGRUUnit('uu', 6, **k)(row(f, 'i', 4), row(f, 'h')),
     'lstm': lambda f, L, **k: list(f.contrib.layers.BasicLSTMUnit('uu', 6, **k)(row(f, 'i', 4), row(f, 'h'), row(f, 'c')))}
for w in ('gru', 'lstm'):
    case('cl_unit_' + w, lambda f, L, w=w: U[w](f, L))
    case('cl_unit_%s_attr' % w, lambda f, L, w=w: U[w](f, L, param_attr=f.ParamAttr('pw'), bias_attr=f.ParamAttr('pb')))
    case('cl_unit_%s_acts' % w, lambda f, L, w=w: U[w](f, L, gate_activation=L.relu, activation=L.sigmoid))
case('cl_unit_lstm_forget', lambda f, L: U['lstm'](f, L, forget_bias=.2))
case('cl_unit_twice', lambda f, L: (lambda u: [u(row(f, 'i', 4), row(f, 'h')), u(row(f, 'j', 4), row(f, 'g'))])(f.contrib.layers.BasicGRUUnit('uu', 6)))
case('cl_unit_names', lambda f, L: (lambda u: [u(row(f, 'i', 4), row(f, 'h'))] + [p.name for p in u.parameters()] + [u.full_name()])(f.contrib.layers.BasicGRUUnit('uu', 6)))
case('cell_lstm_acts', lambda f, L: L.LSTMCell(6, gate_activation=L.relu, activation=L.sigmoid)(row(f, 'i', 4), [row(f, 'h'), row(f, 'c')])[0])
case('cell_gru_acts', lambda f, L: L.GRUCell(6, gate_activation=L.relu, activation=L.sigmoid)(row(f, 'i', 4), row(f, 'h'))[0])
case('cell_gru_int', lambda f, L: L.GRUCell(6)(X(f, None, 4, n='i', d='int64'), row(f, 'h')))
case('cell_lstm_int', lambda f, L: L.LSTMCell(6)(X(f, None, 4, n='i', d='int64'), [row(f, 'h'), row(f, 'c')]))

# ---- one op
words = lambda f: X(f, None, 1, n='w', d='int64', lod=1)
case('cl_pool', lambda f, L: f.contrib.layers.fused_embedding_seq_pool(words(f), [10, 4]))
case('cl_pool_args', lambda f, L: f.contrib.layers.fused_embedding_seq_pool(words(f), [10, 4], is_sparse=True, padding_idx=-2, param_attr='t', dtype='float64'))
case('cl_pool_mean', lambda f, L: f.contrib.layers.fused_embedding_seq_pool(words(f), [10, 4], combiner='mean'))
case('cl_ctr', lambda f, L: f.contrib.layers.ctr_metric_bundle(X(f, None, 1), X(f, None, 1, n='y')))
case('cl_ctr_shape', lambda f, L: f.contrib.layers.ctr_metric_bundle(X(f, None, 1), X(f, None, 2, n='y')))
case('cl_nms2', lambda f, L: f.contrib.layers.multiclass_nms2(X(f, None, 9, 4), X(f, None, 3, 9, n='s'), .1, 10, 5))
case('cl_nms2_index', lambda f, L: f.contrib.layers.multiclass_nms2(X(f, None, 9, 4), X(f, None, 3, 9, n='s'), .1, 10, 5, .4, False, .9, -1, True, 'n'))
pair = lambda f, fn, **k: f.contrib.layers.fused_elemwise_activation(X(f), X(f, n='y'), fn, **k)
case('cl_pair', lambda f, L: pair(f, ['elementwise_add', 'relu']))
case('cl_pair_all', lambda f, L: pair(f, ['scale', 'elementwise_add'], scale=.5, axis=0, save_intermediate_out=False))
case('cl_pair_text', lambda f, L: pair(f, 'elementwise_mul,tanh'))
case('cl_pair_unknown', lambda f, L: pair(f, ['elementwise_add', 'nothing']))
case('cl_pair_one', lambda f, L: pair(f, ['elementwise_add']))
case('cl_pair_unary', lambda f, L: pair(f, ['relu', 'tanh']))
case('cl_pair_binary', lambda f, L: pair(f, ['elementwise_add', 'elementwise_mul']))
case('cl_pair_num', lambda f, L: f.contrib.layers.fused_elemwise_activation(3, X(f), ['elementwise_add', 'relu']))
