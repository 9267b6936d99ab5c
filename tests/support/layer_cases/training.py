"""Cases: learning rates, initializers, optimizers, clips, nets."""
import numpy as np

from .common import I, X, case, im

# ---- learning rates
case('lr_exp', lambda f, L: L.exponential_decay(0.1, 3, 0.5))
case('lr_exp_s', lambda f, L: L.exponential_decay(0.1, 3, 0.5, True))
case('lr_nat', lambda f, L: L.natural_exp_decay(0.1, 3, 0.5))
case('lr_nat_s', lambda f, L: L.natural_exp_decay(0.1, 3, 0.5, True))
case('lr_inv', lambda f, L: L.inverse_time_decay(0.1, 3, 0.5))
case('lr_inv_s', lambda f, L: L.inverse_time_decay(0.1, 3, 0.5, True))
case('lr_poly', lambda f, L: L.polynomial_decay(0.1, 8, 0.01, 2.0))
case('lr_poly_c', lambda f, L: L.polynomial_decay(0.1, 8, 0.01, 2.0, True))
case('lr_piece', lambda f, L: L.piecewise_decay([3, 6, 9], [0.1, 0.05, 0.02, 0.01]))
case('lr_piece_bad', lambda f, L: L.piecewise_decay([3, 6, 9], [0.1, 0.05, 0.02]))
case('lr_noam', lambda f, L: L.noam_decay(64, 5))
case('lr_noam2', lambda f, L: L.noam_decay(64, 5, 0.3))
case('lr_cos', lambda f, L: L.cosine_decay(0.1, 3, 5))
case('lr_warm', lambda f, L: L.linear_lr_warmup(0.1, 4, 0.01, 0.08))
case('lr_warm_v', lambda f, L: L.linear_lr_warmup(L.cosine_decay(0.1, 3, 5), 4, 0.01, 0.08))
case('lr_cos_bad', lambda f, L: L.cosine_decay('a', 3, 5))

# ---- initializers


def cp(init, shape=(4, 6), dtype='float32'):
    return lambda f, L: L.create_parameter(list(shape), dtype, name='p', default_initializer=init(f.initializer))


case('in_const', cp(lambda I: I.Constant(2.0)))
case('in_constcpu', cp(lambda I: I.Constant(2.0, True)))
case('in_unif', cp(lambda I: I.Uniform(-2.0, 3.0, 5)))
case('in_unif_diag', cp(lambda I: I.Uniform(-2.0, 3.0, 5, 2, 2, 0.5)))
case('in_norm', cp(lambda I: I.Normal(1.0, 2.0, 3)))
case('in_trunc', cp(lambda I: I.TruncatedNormal(1.0, 2.0, 3)))
case('in_xav', cp(lambda I: I.Xavier()))
case('in_xavn', cp(lambda I: I.Xavier(uniform=False)))
case('in_xavf', cp(lambda I: I.Xavier(fan_in=3, fan_out=5, seed=4)))
case('in_xavc', cp(lambda I: I.Xavier(), (4, 3, 2, 2)))
case('in_xav1', cp(lambda I: I.Xavier(), (4,)))
case('in_msra', cp(lambda I: I.MSRA()))
case('in_msran', cp(lambda I: I.MSRA(uniform=False, fan_in=7, seed=3)))
case('in_msrac', cp(lambda I: I.MSRA(), (4, 3, 2, 2)))
case('in_bil', cp(lambda I: I.Bilinear(), (2, 1, 4, 4)))
case('in_bilbad', cp(lambda I: I.Bilinear(), (2, 4)))
case('in_bilbad2', cp(lambda I: I.Bilinear(), (2, 1, 4, 3)))
case('in_np', cp(lambda I: I.NumpyArrayInitializer(np.arange(6, dtype='float32').reshape(2, 3)), (2, 3)))
case('in_npi', cp(lambda I: I.NumpyArrayInitializer(np.arange(6, dtype='int32').reshape(2, 3)), (2, 3), 'int32'))
case('in_np64', cp(lambda I: I.NumpyArrayInitializer(np.arange(6, dtype='float64').reshape(2, 3)), (2, 3), 'float64'))
case('in_npi64', cp(lambda I: I.NumpyArrayInitializer(np.arange(6, dtype='int64').reshape(2, 3)), (2, 3), 'int64'))
case('in_npbad', cp(lambda I: I.NumpyArrayInitializer([1.0, 2.0]), (2,)))
for dt in ('float16', 'float64'):
    for nm in ('Constant', 'Uniform', 'Normal', 'TruncatedNormal', 'Xavier', 'MSRA'):
        case('in_%s_%s' % (dt, nm), cp(lambda I, nm=nm: getattr(I, nm)(), (4, 6), dt))


def cpseed(init):

    def g(f, L):
        f.default_startup_program().random_seed = 11
        f.default_main_program().random_seed = 12
        return [L.create_parameter([4, 6], 'float32', name='p', default_initializer=init(f.initializer))]
    return g


for nm in ('Uniform', 'Normal', 'TruncatedNormal', 'Xavier', 'MSRA'):
    case('in_seed_' + nm, cpseed(lambda I, nm=nm: getattr(I, nm)()))

# ---- optimizers, clips, weight decay


def net(f, L, sparse=False):
    e = L.embedding(I(f), [20, 4], is_sparse=sparse, param_attr='emb')
    h = L.fc([X(f), e], 8, act='tanh')
    p = L.fc(h, 1)
    return L.mean(L.square_error_cost(p, X(f, None, 1, n='y')))


def opt(mk, sparse=False, **kw):

    def g(f, L):
        loss = net(f, L, sparse)
        ops, pg = mk(f).minimize(loss, **kw)
        return [o.type for o in ops] + [str(len(ops))] + [(a.name, b.name) for a, b in pg]
    return g


O = {'sgd': lambda f: f.optimizer.SGD(0.1), 'mom': lambda f: f.optimizer.Momentum(0.1, 0.9, use_nesterov=True), 'ada': lambda f: f.optimizer.Adagrad(0.1, initial_accumulator_value=0.2), 'adam': lambda f: f.optimizer.Adam(0.1, lazy_mode=True), 'adamax': lambda f: f.optimizer.Adamax(0.1), 'dec': lambda f: f.optimizer.DecayedAdagrad(0.1), 'add': lambda f: f.optimizer.Adadelta(0.1), 'rms': lambda f: f.optimizer.RMSProp(0.1), 'rmsc': lambda f: f.optimizer.RMSProp(0.1, momentum=0.5, centered=True), 'ftrl': lambda f: f.optimizer.Ftrl(0.1, 0.2, 0.3), 'lamb': lambda f: f.optimizer.Lamb(0.1, exclude_from_weight_decay_fn=lambda p: p.name.endswith('b_0')), 'lars': lambda f: f.optimizer.LarsMomentum(0.1, 0.9)}
for n, o in O.items():
    case('opt_' + n, opt(o))
    case('opts_' + n, opt(o, True))
case('opt_named', opt(lambda f: f.optimizer.Adam(0.1, name='my')))
case('opt_plist', opt(O['adam'], parameter_list=['emb']))
case('opt_nograd', opt(O['adam'], no_grad_set={'emb'}))
case('opt_decay', opt(lambda f: f.optimizer.Momentum(0.1, 0.9, regularization=f.regularizer.L2Decay(0.1))))
case('opt_decay1', opt(lambda f: f.optimizer.Momentum(0.1, 0.9, regularization=f.regularizer.L1Decay(0.1))))
case('opt_decay_sp', opt(lambda f: f.optimizer.Momentum(0.1, 0.9, regularization=f.regularizer.L2Decay(0.1)), True))
case('opt_decay1_sp', opt(lambda f: f.optimizer.Momentum(0.1, 0.9, regularization=f.regularizer.L1Decay(0.1)), True))
for nm, c in (('v', lambda f: f.clip.GradientClipByValue(0.5)), ('v2', lambda f: f.clip.GradientClipByValue(0.5, -0.1)), ('n', lambda f: f.clip.GradientClipByNorm(0.5)), ('g', lambda f: f.clip.GradientClipByGlobalNorm(0.5)), ('some', lambda f: f.clip.GradientClipByGlobalNorm(0.5, need_clip=lambda p: p.name == 'emb'))):
    for s in (False, True):
        case('clip_%s_%s' % (nm, s), opt(lambda f, c=c: f.optimizer.SGD(0.1, grad_clip=c(f)), s))
        case('clip_reg_%s_%s' % (nm, s), opt(lambda f, c=c: f.optimizer.SGD(0.1, grad_clip=c(f), regularization=f.regularizer.L2Decay(0.1)), s))
case('clip_bad', lambda f, L: f.optimizer.SGD(0.1, grad_clip=1.0))
case('clip_vneg', lambda f, L: f.clip.GradientClipByValue(-1.0))
case('clip_str', lambda f, L: [str(f.clip.GradientClipByValue(1.0, -2.0)), str(f.clip.GradientClipByNorm(1.0)), str(f.clip.GradientClipByGlobalNorm(1.0)), str(f.regularizer.L1Decay(0.1)), str(f.regularizer.L2Decay(0.1))])


def setclip(names, two=False):

    def g(f, L):
        loss = net(f, L)
        if names:
            f.clip.set_gradient_clip(f.clip.GradientClipByGlobalNorm(0.2), param_list=names)
        else:
            f.clip.set_gradient_clip(f.clip.GradientClipByNorm(0.2))
        if two:
            f.clip.set_gradient_clip(f.clip.GradientClipByGlobalNorm(0.3), param_list=['fc_0.w_0'])
        return [(a.name, b.name) for a, b in f.optimizer.SGD(0.1).minimize(loss)[1]]
    return g


case('setclip', setclip(None))
case('setclip_n', setclip(['emb', 'fc_0.b_0']))
case('setclip_two', setclip(['emb', 'fc_0.b_0'], True))
case('setclip_bad', lambda f, L: (net(f, L), f.clip.set_gradient_clip(3)))
case('setclip_badp', lambda f, L: (net(f, L), f.clip.set_gradient_clip(f.clip.GradientClipByNorm(0.2), param_list=[3])))


def errclip(f, L):
    x = X(f)
    h = L.fc(x, 3)
    f.default_main_program().global_block().var(h.name)._set_error_clip(f.clip.ErrorClipByValue(max=0.1))
    f.optimizer.SGD(0.1).minimize(L.mean(h))


case('errclip', errclip)
case('opt_lrvar', lambda f, L: f.optimizer.SGD(L.exponential_decay(0.1, 3, 0.5)).minimize(net(f, L))[1])
case('opt_plr', lambda f, L: f.optimizer.SGD(0.1).minimize(L.mean(L.fc(X(f), 3, param_attr=f.ParamAttr(learning_rate=0.5), bias_attr=f.ParamAttr(learning_rate=2.0))))[1])
case('opt_plr_v', lambda f, L: f.optimizer.Adam(L.noam_decay(64, 5)).minimize(L.mean(L.fc(X(f), 3, param_attr=f.ParamAttr(learning_rate=0.5))))[1])
case('opt_two', lambda f, L: (lambda l: [f.optimizer.Adam(0.1).minimize(l), f.optimizer.Adam(0.2).minimize(l)])(net(f, L))[0][1])
case('opt_split', lambda f, L: (lambda o: o.apply_gradients(o.backward(net(f, L))))(f.optimizer.SGD(0.1)).__len__())
case('opt_applyopt', lambda f, L: (lambda o, l: o.apply_optimize(l, f.default_startup_program(), o.backward(l)))(f.optimizer.SGD(0.1), net(f, L)).__len__())
case('opt_none', lambda f, L: f.optimizer.SGD(0.1).minimize(L.mean(X(f))))
case('opt_notscalar', lambda f, L: f.optimizer.SGD(0.1).minimize(L.fc(X(f), 2)))
case('opt_notvar', lambda f, L: f.optimizer.SGD(0.1).minimize(np.ones(3)))
case('opt_str', lambda f, L: f.optimizer.SGD('0.1').minimize(net(f, L)))
case('opt_int', lambda f, L: f.optimizer.SGD(1))
case('opt_nolr', lambda f, L: f.optimizer.SGD())
case('opt_lrNone', lambda f, L: f.optimizer.SGD(None))
case('opt_reg_per', lambda f, L: f.optimizer.SGD(0.1, regularization=f.regularizer.L1Decay(0.2)).minimize(L.mean(L.fc(X(f), 3, param_attr=f.ParamAttr(regularizer=f.regularizer.L2Decay(0.3)))))[1])
case('adam_betavar', lambda f, L: f.optimizer.Adam(0.1, beta1=L.create_global_var([1], 0.9, 'float32', True, name='b1'), beta2=L.create_global_var([1], 0.99, 'float32', True, name='b2')).minimize(net(f, L))[1])
case('opt_f64', lambda f, L: f.optimizer.Adam(0.1).minimize(L.mean(L.fc(X(f, d='float64'), 3)))[1])

# ---- nets
case('nets_cp', lambda f, L: f.nets.simple_img_conv_pool(im(f), 4, 3, 2, 2, act='relu'))
case('nets_cp_full', lambda f, L: f.nets.simple_img_conv_pool(im(f), 6, 3, 2, 2, 1, 'avg', False, 2, 1, 1, 3, 'w', 'b', 'relu', False))
case('nets_group', lambda f, L: f.nets.img_conv_group(im(f), [4, 5], 2, conv_act='relu', conv_with_batchnorm=True, conv_batchnorm_drop_rate=[0.3, 0], pool_stride=2))
case('nets_group2', lambda f, L: f.nets.img_conv_group(im(f), [4, 5], 2, conv_act='relu'))
case('nets_seq', lambda f, L: f.nets.sequence_conv_pool(X(f, None, 4, lod=1), 5, 3))
case('nets_glu', lambda f, L: f.nets.glu(X(f, None, 6)))
case('nets_glubad', lambda f, L: f.nets.glu(X(f, None, 5)))
case('nets_attn', lambda f, L: f.nets.scaled_dot_product_attention(X(f, 3, 5, 8), X(f, 3, 6, 8, n='k'), X(f, 3, 6, 8, n='v'), 2, 0.1))
case('nets_attn1', lambda f, L: f.nets.scaled_dot_product_attention(X(f, 3, 5, 8), X(f, 3, 6, 8, n='k'), X(f, 3, 6, 8, n='v')))
case('nets_attnbad', lambda f, L: f.nets.scaled_dot_product_attention(X(f, 3, 5, 8), X(f, 3, 6, 8, n='k'), X(f, 3, 6, 8, n='v'), 3))
case('nets_attnbad2', lambda f, L: f.nets.scaled_dot_product_attention(X(f, 5, 8), X(f, 6, 8, n='k'), X(f, 6, 8, n='v'), 2))


def setclip_all(f, L):
    loss = net(f, L)
    f.clip.set_gradient_clip(f.clip.GradientClipByGlobalNorm(0.2))
    return [(a.name, b.name) for a, b in f.optimizer.SGD(0.1).minimize(loss)[1]]


case('setclip_all', setclip_all)


def setclip_val(f, L):
    loss = net(f, L)
    f.clip.set_gradient_clip(f.clip.GradientClipByValue(0.2, -0.1))
    return [(a.name, b.name) for a, b in f.optimizer.SGD(0.1, regularization=f.regularizer.L2Decay(0.1)).minimize(loss)[1]]


case('setclip_val', setclip_val)
G = {'0': lambda x: x[0], '1': lambda x: x[:, 1], '2': lambda x: x[:, :, 1:3], '3': lambda x: x[-1, 0:2], '4': lambda x: x[:, 0:3:2], '5': lambda x: x[1:, 0, -1], '6': lambda x: x[:, :, ::-1], '7': lambda x: x[:], '8': lambda x: x[:, :], '9': lambda x: x[1:2, 0:3:2, 1], 'a': lambda x: x[...], 'b': lambda x: x[0:2:1], 'c': lambda x: x[5], 'd': lambda x: x[-3:], 'e': lambda x: x[:-1], 'f': lambda x: x[::2], 'g': lambda x: x[::-1, 0], 'h': lambda x: x[2:0:-1], 'i': lambda x: x[0, 0, 0], 'j': lambda x: x[0][0], 'k': lambda x: x[None], 'l': lambda x: x[0:-1:1, 1:, :2], 'm': lambda x: x['a'], 'n': lambda x: x[1.5], 'o': lambda x: x[0, 0, 0, 0], 'p': lambda x: x[:, ::2], 'q': lambda x: x[..., 1]}
for k, g in G.items():
    case('gi_' + k, lambda f, L, g=g: g(X(f, 2, 3, 4)))
case('giu_1', lambda f, L: X(f, None, 4)[:, 1])
case('giu_0', lambda f, L: X(f, None, 4)[0])
case('giv_0', lambda f, L: X(f, None, 4)[L.fill_constant([1], 'int32', 1)])
case('giv_1', lambda f, L: X(f, None, 4)[:, L.fill_constant([1], 'int32', 1)])
case('giv_3', lambda f, L: X(f, 5, 4)[L.fill_constant([1], 'int32', 1):])
case('giv_2', lambda f, L: X(f, None, 4)[0:L.fill_constant([1], 'int32', 1)])
