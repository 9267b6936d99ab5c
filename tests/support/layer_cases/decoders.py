"""Cases: decoders, their helpers, decoders of contrib."""
from .common import I, X, case


def leaves(x):
    if isinstance(x, dict):
        return [leaf for k in sorted(x) for leaf in leaves(x[k])]
    return [leaf for v in x for leaf in leaves(v)] if isinstance(x, (list, tuple)) else [x]


emb = lambda f: lambda ids: f.embedding(ids, [10, 4], param_attr='emb')
out = lambda L: lambda x: L.fc(x, 10, num_flatten_dims=len(x.shape) - 1, param_attr='ow', bias_attr=False)
hid = lambda f, *s: X(f, *(s or (None, 6)), n='h')


# ---- beams of one width
def beams(f, L, cell=None, size=3, **k):
    cell = cell or L.GRUCell(hidden_size=6)
    init = hid(f) if isinstance(cell, L.GRUCell) else cell.get_initial_states(hid(f))
    return L.dynamic_decode(L.BeamSearchDecoder(cell, 0, 1, size, emb(f), out(L)), inits=init, **k)


def plain_beams(f, L, m=2, h=None, end=1, start=0, **k):
    d = L.BeamSearchDecoder(L.GRUCell(6), start, end, 2, **dict(dict(embedding_fn=lambda x: f.embedding(x, [6, 6])), **k))
    return L.dynamic_decode(d, inits=hid(f) if h is None else h, max_step_num=m)


case('dec_beam', lambda f, L: beams(f, L, max_step_num=5))
case('dec_beam_1', lambda f, L: beams(f, L, max_step_num=5, size=1))
case('dec_beam_endless', lambda f, L: beams(f, L))
case('dec_beam_all', lambda f, L: beams(f, L, max_step_num=5, output_time_major=True, impute_finished=True, return_length=True, is_test=True))
case('dec_beam_impute', lambda f, L: beams(f, L, max_step_num=5, impute_finished=True))
case('dec_beam_lstm', lambda f, L: beams(f, L, L.LSTMCell(hidden_size=6), max_step_num=5))
case('dec_beam_plain', lambda f, L: plain_beams(f, L))
case('dec_beam_hot', lambda f, L: plain_beams(f, L, embedding_fn=lambda x: L.one_hot(L.unsqueeze(x, [2]), 6)))
case('dec_beam_noemb', lambda f, L: plain_beams(f, L, embedding_fn=None))
case('dec_beam_str', lambda f, L: plain_beams(f, L, 'a'))
case('dec_beam_half', lambda f, L: plain_beams(f, L, 2.5))
case('dec_beam_zero', lambda f, L: plain_beams(f, L, 0))
case('dec_beam_var', lambda f, L: plain_beams(f, L, L.fill_constant([1], 'int64', 3)))
case('dec_beam_end', lambda f, L: plain_beams(f, L, end=9))
case('dec_beam_start', lambda f, L: plain_beams(f, L, start=L.fill_constant([1], 'int64', 0)))
case('dec_beam_none', lambda f, L: L.dynamic_decode(L.BeamSearchDecoder(L.GRUCell(6), 0, 1, 2)))
case('dec_beam_rank', lambda f, L: plain_beams(f, L, h=hid(f, None, 3, 6)))
case('dec_tile', lambda f, L: L.BeamSearchDecoder.tile_beam_merge_with_batch(X(f, None, 5, 7), 3))
case('dec_tile_2', lambda f, L: L.BeamSearchDecoder.tile_beam_merge_with_batch(X(f, None, 5), 3))
case('dec_tile_4', lambda f, L: L.BeamSearchDecoder.tile_beam_merge_with_batch(X(f, None, None, 5, 6), 3))
case('dec_tile_list', lambda f, L: L.BeamSearchDecoder.tile_beam_merge_with_batch([X(f, None, 5)], 3))


# ---- tokens that a helper chooses
def basic(f, L, kind='train', out_fn=True, hk=(), **k):
    cell, init, start = L.GRUCell(hidden_size=6), hid(f), I(f, None, n='s')
    make = {'train': lambda: L.TrainingHelper(X(f, None, None, 4), I(f, None, n='len'), **dict(hk)),
            'greedy': lambda: L.GreedyEmbeddingHelper(emb(f), start, 1),
            'sample': lambda: L.SampleEmbeddingHelper(emb(f), start, 1, **dict(hk))}
    return L.dynamic_decode(L.BasicDecoder(cell, make[kind](), output_fn=out(L) if out_fn else None), inits=init, **k)


def stepped(f, L):
    helper = L.TrainingHelper({'b': X(f, None, None, 4), 'a': X(f, None, 6, 2, n='y')}, I(f, None, n='len'))
    first, finished = helper.initialize()
    return leaves(first) + [finished] + leaves(helper.next_inputs(L.fill_constant([1], 'int64', 2), None, None, None)[1])


sampled = lambda f, L, **k: L.SampleEmbeddingHelper(lambda x: x, I(f, None, n='s'), 1, **k).sample(None, X(f, None, 5), None)
case('dec_train', lambda f, L: basic(f, L))
case('dec_train_time', lambda f, L: basic(f, L, hk={'time_major': True}, output_time_major=True))
case('dec_train_all', lambda f, L: basic(f, L, impute_finished=True, return_length=True, is_test=True, max_step_num=7))
case('dec_train_raw', lambda f, L: basic(f, L, out_fn=False, return_length=True))
case('dec_train_helper', stepped)
case('dec_train_num', lambda f, L: L.TrainingHelper(3, I(f, None, n='s')))
case('dec_train_len', lambda f, L: L.TrainingHelper(X(f, None, 3, 4), 3).initialize())
case('dec_greedy', lambda f, L: basic(f, L, 'greedy', max_step_num=5))
case('dec_greedy_test', lambda f, L: basic(f, L, 'greedy', is_test=True, max_step_num=5))
case('dec_greedy_num', lambda f, L: L.GreedyEmbeddingHelper(lambda x: x, 3, 1).initialize())
case('dec_greedy_32', lambda f, L: L.GreedyEmbeddingHelper(lambda x: x, X(f, None, d='int32'), 1).initialize())
case('dec_sample', lambda f, L: basic(f, L, 'sample', max_step_num=5, hk={'softmax_temperature': 0.5, 'seed': 3}))
case('dec_sample_plain', lambda f, L: basic(f, L, 'sample'))
case('dec_sample_var', lambda f, L: sampled(f, L, softmax_temperature=L.fill_constant([1], 'float32', 2.)))
case('dec_sample_zero', lambda f, L: sampled(f, L, softmax_temperature=0.0))
case('dec_helper_base', lambda f, L: L.DecodeHelper().sample(1, 2, 3))


# ---- decoders of one's own
def nested(f, L, **k):
    class Halving(L.Decoder):
        def initialize(self, inits):
            return X(f, None, 4, n='i'), inits, X(f, None, n='fin', d='bool')

        def step(self, time, inputs, states, flag):
            assert flag == 7
            outputs = {'o': inputs + states['b'], 'p': states['a'][0]}
            states = {'b': states['b'] * 2.0, 'a': [states['a'][0] + 1.0]}
            small = L.less_than(L.reduce_sum(inputs, dim=[1]), L.fill_constant([1], 'float32', 0.01))
            return outputs, states, inputs * 0.5, small
    inits = {'b': X(f, None, 4, n='b'), 'a': [X(f, None, 4, n='a')]}
    return leaves(L.dynamic_decode(Halving(), inits, max_step_num=4, flag=7, **k))


case('dec_nest', lambda f, L: nested(f, L))
case('dec_nest_all', lambda f, L: nested(f, L, impute_finished=True, is_test=True))
case('dec_none', lambda f, L: L.dynamic_decode(None))
case('dec_base', lambda f, L: L.dynamic_decode(L.Decoder()))
case('dec_tree', lambda f, L: L.gather_tree(I(f, 5, 2, 2, n='a'), I(f, 5, 2, 2, n='b')))


# ---- contrib: states with names
ctx = lambda f: X(f, None, 8, n='ctx')


def named(f, L, reorder=True, two=False):
    c = f.contrib.decoder
    states = {'h': c.InitState(init=ctx(f), need_reorder=reorder)}
    if two:
        states['c'] = c.InitState(init_boot=ctx(f), shape=[-1, 8], value=0.5)
    cell = c.StateCell(inputs={'x': None}, states=states, out_state='h')

    @cell.state_updater
    def updater(cell):
        new = L.fc([cell.get_state('h'), cell.get_input('x')], 8, act='tanh', param_attr=['wh', 'wx'], bias_attr='bb')
        if two:
            before = cell.get_state('c')
            cell.set_state('c', before + new)
            new = new * 0.5 + before
        cell.set_state('h', new)
    return cell


def taught(f, L, **k):
    words = L.embedding(I(f, lod=1, n='w'), [20, 6], param_attr='vemb')
    d = f.contrib.decoder.TrainingDecoder(named(f, L, **k))
    with d.block():
        d.state_cell.compute_state(inputs={'x': d.step_input(words)})
        score = L.fc(d.state_cell.get_state('h'), 20, act='softmax', param_attr='so', bias_attr='sb')
        d.state_cell.update_states()
        d.output(score)
    return d()


def static(f, L):
    d = f.contrib.decoder.TrainingDecoder(named(f, L), name='tt')
    with d.block():
        x = d.step_input(X(f, None, 6, n='e', lod=1))
        d.static_input(X(f, None, 3, n='zz', lod=1))
        d.state_cell.compute_state(inputs={'x': x})
        d.state_cell.update_states()
        d.output(d.state_cell.out_state(), x)
    return list(d())


ii = lambda f: I(f, lod=2, n='ii')
ss = lambda f: X(f, None, 1, lod=2, n='is')


def searched(f, L, dec=(), cell=None, **k):
    d = f.contrib.decoder.BeamSearchDecoder(**dict(dict(
        state_cell=cell or named(f, L, **k), init_ids=ii(f), init_scores=ss(f), target_dict_dim=20, word_dim=6,
        topk_size=10, sparse_emb=False, max_len=8, beam_size=3, end_id=1), **dict(dec)))
    d.decode()
    return list(d())


def further(f, L, **k):
    c = f.contrib.decoder
    cell = c.StateCell(inputs={'x': None, 'z': None}, states={'h': c.InitState(init=ctx(f))}, out_state='h')
    cell.state_updater(lambda cell: cell.set_state('h', L.fc([cell.get_state('h'), cell.get_input('x'), cell.get_input('z')], 8, act='tanh')))
    return searched(f, L, dict(input_var_dict={'z': X(f, None, 4, n='z')}, **k), cell)


def own_search(f, L):
    d = f.contrib.decoder.BeamSearchDecoder(named(f, L), ii(f), ss(f), 20, 6, max_len=5, beam_size=2)
    with d.block():
        ids, scores = d.read_array(init=ii(f), is_ids=True), d.read_array(init=ss(f), is_scores=True)
        words = L.embedding(ids, [20, 6])
        d.state_cell.set_state('h', L.sequence_expand(d.state_cell.get_state('h'), scores))
        d.state_cell.compute_state(inputs={'x': words})
        p, tokens = L.topk(L.fc(L.lod_reset(d.state_cell.get_state('h'), y=scores), 20, act='softmax'), 5)
        best, sums = L.beam_search(ids, scores, tokens, L.elementwise_add(L.log(p), L.reshape(scores, [-1]), axis=0), 2, end_id=1)
        with L.Switch() as switch:
            with switch.case(L.is_empty(best)):
                d.early_stop()
            with switch.default():
                d.state_cell.update_states()
                d.update_array(ids, best)
                d.update_array(scores, sums)
    return list(d())


def in_block(f, L, fn):
    d = f.contrib.decoder.BeamSearchDecoder(named(f, L), ii(f), ss(f), 20, 6)
    with d.block():
        return fn(d)


state = lambda f, **k: f.contrib.decoder.StateCell(**dict(dict(inputs={'x': None}, states={'h': f.contrib.decoder.InitState(init=ctx(f))}, out_state='h'), **k))
case('cd_train', lambda f, L: taught(f, L))
case('cd_train_two', lambda f, L: taught(f, L, two=True, reorder=False))
case('cd_train_static', static)
case('cd_search', lambda f, L: searched(f, L))
case('cd_search_two', lambda f, L: searched(f, L, two=True))
case('cd_search_end', lambda f, L: searched(f, L, dict(end_id=2, sparse_emb=True, name='dd')))
case('cd_search_input', lambda f, L: further(f, L, beam_size=2))
case('cd_search_noinput', lambda f, L: searched(f, L, dict(input_var_dict={'z': X(f, None, 4, n='z')})))
case('cd_search_own', own_search)
case('cd_search_noupdater', lambda f, L: searched(f, L, cell=state(f)))
case('cd_read_both', lambda f, L: in_block(f, L, lambda d: d.read_array(ctx(f), is_ids=True, is_scores=True)))
case('cd_read_num', lambda f, L: in_block(f, L, lambda d: d.read_array(3)))
case('cd_update_num', lambda f, L: in_block(f, L, lambda d: d.update_array(3, ctx(f))))
case('cd_update_unknown', lambda f, L: in_block(f, L, lambda d: d.update_array(ctx(f), ctx(f))))
case('cd_init', lambda f, L: f.contrib.decoder.InitState())
case('cd_init_boot', lambda f, L: f.contrib.decoder.InitState(init_boot=ctx(f)))
case('cd_init_shape', lambda f, L: f.contrib.decoder.InitState(init_boot=ctx(f), shape=[-1, 3]).value)
case('cd_init_both', lambda f, L: f.contrib.decoder.InitState(init=ctx(f), init_boot=ctx(f), shape=[-1, 3]).value)
case('cd_cell_state', lambda f, L: state(f, states={'h': 3}))
case('cd_cell_out', lambda f, L: state(f, out_state='q'))
case('cd_cell_get', lambda f, L: state(f).get_state('z'))
case('cd_cell_input', lambda f, L: state(f).get_input('x'))
case('cd_cell_given', lambda f, L: state(f, inputs={'x': ctx(f)}).get_input('x'))
case('cd_cell_compute', lambda f, L: state(f).compute_state({'z': 3}))
case('cd_cell_noupdater', lambda f, L: state(f).compute_state({'x': 3}))
case('cd_cell_twice', lambda f, L: (lambda c: [f.contrib.decoder.TrainingDecoder(c), f.contrib.decoder.TrainingDecoder(c)])(state(f)))
for what in ('step_input', 'static_input', 'output'):
    case('cd_outside_' + what, lambda f, L, what=what: getattr(f.contrib.decoder.TrainingDecoder(state(f)), what)(ctx(f)))
case('cd_outside_cell', lambda f, L: f.contrib.decoder.TrainingDecoder(state(f)).state_cell)
case('cd_outside_call', lambda f, L: f.contrib.decoder.TrainingDecoder(state(f))())
