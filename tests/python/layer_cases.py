"""Small programs, one a layer, optimizer or error; what Paddle 1.8.5 makes of each is in data/layer_programs.json.gz.

Each case is a function of the interface: case(name, lambda f, L: ...), f the module fluid, L its layers. X and I make fed
variables of floats and of ids.
"""
import numpy as np

CASES = {}


def X(f, *s, **k):
    return f.data(k.get('n', 'x'), list(s) or [None, 4], k.get('d', 'float32'), lod_level=k.get('lod', 0))


def I(f, *s, **k):
    return f.data(k.get('n', 'ids'), list(s) or [None, 1], 'int64', lod_level=k.get('lod', 0))


def case(name, fn):
    """Registers fn(fluid, layers), which builds a program and returns what is compared by name."""
    CASES[name] = fn


# ---- fully connected
case('fc', lambda f, L: L.fc(X(f), 3))
case('fc_list', lambda f, L: L.fc([X(f), X(f, None, 5, n='y')], 3, act='relu', param_attr=['a', 'b'], bias_attr='c'))
case('fc_list1attr', lambda f, L: L.fc([X(f), X(f, None, 5, n='y')], 3, act='relu'))
case('fc_name', lambda f, L: L.fc(X(f), 3, name='mine', act='tanh'))
case('fc_nobias', lambda f, L: L.fc(X(f), 3, bias_attr=False, act='softmax'))
case('fc_flat2', lambda f, L: L.fc(X(f, None, 3, 4), 5, num_flatten_dims=2, act='gelu'))
case('fc_flatneg', lambda f, L: L.fc(X(f, None, 3, 4), 5, num_flatten_dims=-1))
case('fc_lod', lambda f, L: L.fc(X(f, None, 4, lod=1), 5))
case('fc_f64', lambda f, L: L.fc(X(f, d='float64'), 5))
case('fc_int', lambda f, L: L.fc(I(f), 5))
case('fc_num', lambda f, L: L.fc(3, 5))
case('fc_badact', lambda f, L: L.fc(X(f), 5, act='nothing'))
case('fc_rank1', lambda f, L: L.fc(X(f, 4), 5))
case('fc_attr', lambda f, L: L.fc(X(f), 5, param_attr=f.ParamAttr(name='w', initializer=f.initializer.Normal(0.0, 0.1), learning_rate=0.5, regularizer=f.regularizer.L2Decay(0.1), trainable=False)))
case('fc_notrain', lambda f, L: f.optimizer.SGD(0.1).minimize(L.mean(L.fc(L.fc(X(f), 5, param_attr=f.ParamAttr(trainable=False)), 1)))[1])
for act in ('relu', 'sigmoid', 'softmax', 'leaky_relu', 'relu6', 'elu', 'swish', 'hard_sigmoid', 'softplus', 'exp'):
    case('fc_act_' + act, lambda f, L, act=act: L.fc(X(f), 3, act=act))

# ---- ids
case('emb', lambda f, L: L.embedding(I(f), [10, 3]))
case('emb_sp', lambda f, L: L.embedding(I(f), [10, 3], is_sparse=True, padding_idx=-1, param_attr='t', dtype='float64'))
case('emb_pad', lambda f, L: L.embedding(I(f), [10, 3], padding_idx=2))
case('emb_dist', lambda f, L: L.embedding(I(f), [10, 3], is_distributed=True, is_sparse=True))
case('emb_padbad', lambda f, L: L.embedding(I(f), [10, 3], padding_idx=12))
case('emb_float', lambda f, L: L.embedding(X(f), [10, 3]))
case('emb_lod', lambda f, L: L.embedding(I(f, lod=1), [10, 3]))
case('femb', lambda f, L: f.embedding(I(f, None, 3), [10, 3]))
case('femb_sp', lambda f, L: f.embedding(I(f, None, 3), [10, 3], is_sparse=True, padding_idx=-2, param_attr=f.ParamAttr(name='q')))
case('onehot', lambda f, L: L.one_hot(I(f), 7))
case('onehot_o', lambda f, L: L.one_hot(I(f), 7, allow_out_of_range=True))
case('fonehot', lambda f, L: f.one_hot(I(f, None, 3), 7))
case('onehot_var', lambda f, L: L.one_hot(I(f), L.fill_constant([1], 'int32', 5)))
case('fonehot_o', lambda f, L: f.one_hot(I(f, None), 7, allow_out_of_range=True))

# ---- images
im = lambda f: X(f, None, 3, 8, 8, n='im')
case('conv', lambda f, L: L.conv2d(im(f), 4, 3))
case('conv_full', lambda f, L: L.conv2d(im(f), 6, [3, 2], stride=[2, 1], padding=[1, 0], dilation=2, groups=3, act='relu', name='cn', param_attr='w', bias_attr='b'))
case('conv_same', lambda f, L: L.conv2d(im(f), 4, 3, padding='SAME', bias_attr=False))
case('conv_valid', lambda f, L: L.conv2d(im(f), 4, 3, padding='valid'))
case('conv_pad4', lambda f, L: L.conv2d(im(f), 4, 3, padding=[0, 1, 2, 1]))
case('conv_padpairs', lambda f, L: L.conv2d(im(f), 4, 3, padding=[[0, 0], [0, 0], [1, 2], [0, 1]]))
case('conv_padpairs1', lambda f, L: L.conv2d(im(f), 4, 3, padding=[[0, 0], [0, 0], [1, 1], [0, 0]]))
case('conv_pad4eq', lambda f, L: L.conv2d(im(f), 4, 3, padding=[1, 1, 2, 2]))
case('conv_nhwc', lambda f, L: L.conv2d(X(f, None, 8, 8, 3), 4, 3, data_format='NHWC', act='relu'))
case('conv_dw', lambda f, L: L.conv2d(im(f), 3, 3, groups=3, use_cudnn=False))
case('conv_dw2', lambda f, L: L.conv2d(im(f), 6, 3, groups=3))
case('conv_badg', lambda f, L: L.conv2d(im(f), 4, 3, groups=2))
case('conv_badg2', lambda f, L: L.conv2d(im(f), 4, 3, groups=3))
case('conv_badcudnn', lambda f, L: L.conv2d(im(f), 4, 3, use_cudnn=1))
case('conv_badfmt', lambda f, L: L.conv2d(im(f), 4, 3, data_format='NCWH'))
case('conv_badpad', lambda f, L: L.conv2d(im(f), 4, 3, padding='HALF'))
case('conv_padbatch', lambda f, L: L.conv2d(im(f), 4, 3, padding=[[1, 0], [0, 0], [1, 1], [0, 0]]))
case('conv_unkch', lambda f, L: L.conv2d(X(f, None, None, 8, 8), 4, 3))
case('conv_int', lambda f, L: L.conv2d(I(f, None, 3, 8, 8), 4, 3))
case('conv_notvar', lambda f, L: L.conv2d(np.ones((1, 3, 8, 8), 'float32'), 4, 3))
case('conv_fsbad', lambda f, L: L.conv2d(im(f), 4, [3, 3, 3]))
case('conv_fsfloat', lambda f, L: L.conv2d(im(f), 4, 3.0))
case('convt', lambda f, L: L.conv2d_transpose(im(f), 4, filter_size=3))
case('convt_os', lambda f, L: L.conv2d_transpose(im(f), 4, output_size=[17, 17], stride=2, padding=1, act='relu', groups=1))
case('convt_osint', lambda f, L: L.conv2d_transpose(im(f), 4, output_size=17, filter_size=3, stride=2))
case('convt_same', lambda f, L: L.conv2d_transpose(im(f), 3, filter_size=3, stride=2, padding='SAME', groups=3, use_cudnn=False, bias_attr=False))
case('convt_none', lambda f, L: L.conv2d_transpose(im(f), 3))
case('convt_nhwc', lambda f, L: L.conv2d_transpose(X(f, None, 8, 8, 3), 4, filter_size=2, data_format='NHWC'))
case('pool', lambda f, L: L.pool2d(im(f), 2))
case('pool_full', lambda f, L: L.pool2d(im(f), [3, 2], 'avg', [2, 1], 1, ceil_mode=True, exclusive=False, name='p'))
case('pool_global', lambda f, L: L.pool2d(im(f), global_pooling=True))
case('pool_same', lambda f, L: L.pool2d(im(f), 3, 'avg', 2, 'SAME'))
case('pool_valid', lambda f, L: L.pool2d(im(f), 3, 'avg', 2, 'VALID'))
case('pool_pad4', lambda f, L: L.pool2d(im(f), 3, 'avg', 2, [1, 0, 0, 1]))
case('pool_padpairs', lambda f, L: L.pool2d(im(f), 3, 'avg', 2, [[0, 0], [0, 0], [1, 1], [0, 0]]))
case('pool_nhwc', lambda f, L: L.pool2d(X(f, None, 8, 8, 3), 2, data_format='NHWC'))
case('pool_badtype', lambda f, L: L.pool2d(im(f), 2, 'mid'))
case('pool_m1', lambda f, L: L.pool2d(im(f)))
case('pool_ceilvalid', lambda f, L: L.pool2d(im(f), 2, pool_padding='VALID', ceil_mode=True))
case('pool_padbatch', lambda f, L: L.pool2d(im(f), 2, pool_padding=[[1, 0], [0, 0], [1, 1], [0, 0]]))
case('pool_badfmt', lambda f, L: L.pool2d(im(f), 2, data_format='XX'))
case('pool_badcudnn', lambda f, L: L.pool2d(im(f), 2, use_cudnn='a'))
case('pool_badpad', lambda f, L: L.pool2d(im(f), 2, pool_padding='HALF'))
case('pool_int', lambda f, L: L.pool2d(I(f, None, 3, 8, 8), 2))
case('apool', lambda f, L: L.adaptive_pool2d(im(f), [3, 2], 'avg'))
case('apool_idx', lambda f, L: L.adaptive_pool2d(im(f), 3, 'max', require_index=True))
case('apool_bad', lambda f, L: L.adaptive_pool2d(im(f), 3, 'avg', require_index=True))
case('apool_bad2', lambda f, L: L.adaptive_pool2d(im(f), 3, 'mid'))

# ---- normalisation
case('bn', lambda f, L: L.batch_norm(im(f)))
case('bn_full', lambda f, L: L.batch_norm(im(f), act='relu', momentum=0.8, epsilon=0.001, param_attr='s', bias_attr='b', moving_mean_name='mm', moving_variance_name='mv', name='bn'))
case('bn_2d', lambda f, L: L.batch_norm(X(f, None, 5), is_test=True))
case('bn_nhwc', lambda f, L: L.batch_norm(X(f, None, 8, 8, 3), data_layout='NHWC', use_global_stats=True))
case('bn_inplace', lambda f, L: L.batch_norm(im(f), in_place=True))
case('bn_nobias', lambda f, L: L.batch_norm(im(f), bias_attr=False, param_attr=False))
case('bn_badlayout', lambda f, L: L.batch_norm(im(f), data_layout='XX'))
case('bn_int', lambda f, L: L.batch_norm(I(f)))
case('bn_momvar', lambda f, L: L.batch_norm(im(f), momentum=L.fill_constant([1], 'float32', 0.9)))
case('bn_f64', lambda f, L: L.batch_norm(X(f, None, 5, d='float64')))
case('bn_avg', lambda f, L: (L.batch_norm(X(f, None, 5), do_model_average_for_mean_and_var=False), [(p.name, p.trainable, p.do_model_average, p.optimize_attr) for p in f.default_main_program().all_parameters()])[1])
case('bn_avgT', lambda f, L: (L.batch_norm(X(f, None, 5)), [(p.name, p.trainable, p.do_model_average, p.optimize_attr) for p in f.default_main_program().all_parameters()])[1])
case('ln', lambda f, L: L.layer_norm(X(f, None, 3, 4)))
case('ln_full', lambda f, L: L.layer_norm(X(f, None, 3, 4), begin_norm_axis=2, epsilon=0.001, act='tanh', name='ln', param_attr='s', bias_attr='b'))
case('ln_plain', lambda f, L: L.layer_norm(X(f), scale=False, shift=False))
case('ln_plain_attr', lambda f, L: L.layer_norm(X(f), scale=False, shift=False, param_attr='a', bias_attr='b'))
case('ln_false', lambda f, L: L.layer_norm(X(f), param_attr=False, bias_attr=False))
case('ln_int', lambda f, L: L.layer_norm(I(f)))
case('gn', lambda f, L: L.group_norm(im(f), 3))
case('gn_full', lambda f, L: L.group_norm(X(f, None, 8, 8, 4), 2, epsilon=0.001, param_attr='s', bias_attr='b', act='relu', data_layout='NHWC', name='g'))
case('gn_none', lambda f, L: L.group_norm(im(f), 3, param_attr=False, bias_attr=False))
case('gn_bad', lambda f, L: L.group_norm(im(f), 3, data_layout='XX'))
case('in', lambda f, L: L.instance_norm(im(f)))
case('in_full', lambda f, L: L.instance_norm(im(f), epsilon=0.001, param_attr='s', bias_attr='b', name='g'))
case('lrn', lambda f, L: L.lrn(im(f)))
case('lrn_full', lambda f, L: L.lrn(im(f), n=3, k=2.0, alpha=0.1, beta=0.5, name='l'))
case('lrn_bad', lambda f, L: L.lrn(X(f)))
case('dropout', lambda f, L: L.dropout(X(f), 0.3))
case('dropout_full', lambda f, L: L.dropout(X(f), 0.3, is_test=True, seed=7, name='d', dropout_implementation='upscale_in_train'))
case('dropout_int', lambda f, L: L.dropout(I(f), 0.3))
case('dropout_seedprog', lambda f, L: (setattr(f.default_main_program(), 'random_seed', 5), L.dropout(X(f), 0.3))[1])
case('l2n', lambda f, L: L.l2_normalize(X(f, None, 3, 4), axis=1))
case('l2n_1d', lambda f, L: L.l2_normalize(X(f, 4), axis=1, epsilon=0.001, name='n'))

# ---- losses and metrics
case('ce', lambda f, L: L.cross_entropy(X(f), I(f)))
case('ce_soft', lambda f, L: L.cross_entropy(X(f), X(f, n='y'), soft_label=True))
case('ce_ign', lambda f, L: L.cross_entropy(X(f), I(f), ignore_index=3))
case('ce_flabel', lambda f, L: L.cross_entropy(X(f), X(f, None, 1, n='y')))
case('ce_int', lambda f, L: L.cross_entropy(I(f, n='z'), I(f)))
case('ce_notvar', lambda f, L: L.cross_entropy(X(f), 3))
case('sce', lambda f, L: L.softmax_with_cross_entropy(X(f), I(f)))
case('sce_ret', lambda f, L: L.softmax_with_cross_entropy(X(f), I(f), return_softmax=True, ignore_index=2, numeric_stable_mode=False))
case('sce_soft', lambda f, L: L.softmax_with_cross_entropy(X(f), X(f, n='y'), soft_label=True))
case('sce_axis', lambda f, L: L.softmax_with_cross_entropy(X(f, 3, 4, 5), I(f, 3, 1, 5), axis=1))
case('sce_int', lambda f, L: L.softmax_with_cross_entropy(I(f, n='q'), I(f)))
case('sigce', lambda f, L: L.sigmoid_cross_entropy_with_logits(X(f), X(f, n='y')))
case('sigce_full', lambda f, L: L.sigmoid_cross_entropy_with_logits(X(f), X(f, n='y'), ignore_index=-1, name='s', normalize=True))
case('sec', lambda f, L: L.square_error_cost(X(f), X(f, n='y')))
case('sec_bad', lambda f, L: L.square_error_cost(X(f), 3))
case('mse', lambda f, L: L.mse_loss(X(f), X(f, n='y')))
case('logloss', lambda f, L: L.log_loss(X(f, None, 1), X(f, None, 1, n='y'), 0.001, 'nm'))
case('huber', lambda f, L: L.huber_loss(X(f, None, 1), X(f, None, 1, n='y'), 0.5))
case('smooth', lambda f, L: L.smooth_l1(X(f), X(f, n='y')))
case('smooth_full', lambda f, L: L.smooth_l1(X(f), X(f, n='y'), X(f, n='a'), X(f, n='b'), 2.0))
for r in ('mean', 'sum', 'batchmean', 'none', 'bad'):
    case('kl_' + r, lambda f, L, r=r: L.kldiv_loss(X(f), X(f, n='y'), r))
case('kl_name', lambda f, L: L.kldiv_loss(X(f), X(f, n='y'), name='k'))
case('rank_loss', lambda f, L: L.rank_loss(X(f, None, 1), X(f, None, 1, n='a'), X(f, None, 1, n='b')))
case('margin_rank', lambda f, L: L.margin_rank_loss(X(f, None, 1), X(f, None, 1, n='a'), X(f, None, 1, n='b'), 0.2, 'm'))
case('bpr', lambda f, L: L.bpr_loss(X(f), I(f)))
case('teacher', lambda f, L: L.teacher_student_sigmoid_loss(X(f, None, 1), X(f, None, 1, n='y')))
case('dice', lambda f, L: L.dice_loss(X(f), I(f)))
case('npair', lambda f, L: L.npair_loss(X(f, 4, 3), X(f, 4, 3, n='p'), X(f, 4, n='y')))
case('ls', lambda f, L: L.label_smooth(X(f)))
case('ls_full', lambda f, L: L.label_smooth(X(f), X(f, 1, 4, n='q'), 0.3, 'float64', 'nm'))
case('ls_bad', lambda f, L: L.label_smooth(X(f), epsilon=1.5))
case('acc', lambda f, L: L.accuracy(X(f), I(f)))
case('acc_k', lambda f, L: L.accuracy(X(f), I(f), k=3))
case('acc_ct', lambda f, L: L.accuracy(X(f), I(f), 1, L.create_tensor('int64'), L.create_tensor('int64')))
case('acc_int', lambda f, L: L.accuracy(I(f, n='z'), I(f)))
case('auc', lambda f, L: L.auc(X(f, None, 2), I(f)))
case('auc_full', lambda f, L: L.auc(X(f, None, 2), I(f), curve='PR', num_thresholds=255, topk=1, slide_steps=3))
case('auc_0', lambda f, L: L.auc(X(f, None, 2), I(f), slide_steps=0))
case('cos_sim', lambda f, L: L.cos_sim(X(f), X(f, n='y')))
case('mean_iou', lambda f, L: L.mean_iou(f.data('a', [3, 4], 'int32'), f.data('b', [3, 4], 'int32'), 4))

# ---- elementwise
for n in ('add', 'sub', 'mul', 'div', 'max', 'min', 'pow', 'mod', 'floordiv'):
    d = 'int64' if n in ('mod', 'floordiv') else 'float32'
    case('ew_' + n, lambda f, L, n=n, d=d: getattr(L, 'elementwise_' + n)(X(f, d=d), X(f, n='y', d=d)))
    case('ewn_' + n, lambda f, L, n=n, d=d: getattr(L, 'elementwise_' + n)(X(f, None, 3, 4, d=d), X(f, 3, n='y', d=d), axis=1, name='nm'))
    case('ewa_' + n, lambda f, L, n=n, d=d: getattr(L, 'elementwise_' + n)(X(f), X(f, n='y'), act='relu'))
    for dt in ('bool', 'int8', 'uint8', 'int32', 'int64', 'float16', 'float64'):
        case('ewd_%s_%s' % (n, dt), lambda f, L, n=n, dt=dt: getattr(L, 'elementwise_' + n)(X(f, d=dt), X(f, n='y', d=dt)))
    case('ew_bad_' + n, lambda f, L, n=n: getattr(L, 'elementwise_' + n)(X(f), 3))
    case('ew_bad2_' + n, lambda f, L, n=n: getattr(L, 'elementwise_' + n)(X(f), X(f, n='y', d='float64')))
case('ew_shape', lambda f, L: L.elementwise_add(X(f, 2, 3), X(f, 4, 5, n='y')))

# ---- reductions
for n in ('sum', 'mean', 'max', 'min', 'prod'):
    case('rd_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f)))
    case('rd1_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, None, 3, 4), 1, True, 'nm'))
    case('rd2_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, None, 3, 4), [0, -1]))
    case('rdall_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, None, 3, 4), [0, 1, 2]))
    case('rdempty_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, None, 3, 4), []))
    case('rdtuple_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, None, 3, 4), (0, 1)))
    for dt in ('bool', 'int8', 'int32', 'int64', 'float16', 'float64'):
        case('rdd_%s_%s' % (n, dt), lambda f, L, n=n, dt=dt: getattr(L, 'reduce_' + n)(X(f, d=dt)))
for n in ('all', 'any'):
    case('rd_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, d='bool')))
    case('rd1_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f, d='bool'), 1, True, 'nm'))
    case('rdf_' + n, lambda f, L, n=n: getattr(L, 'reduce_' + n)(X(f)))
case('mean', lambda f, L: L.mean(X(f)))
case('mean_name', lambda f, L: L.mean(X(f), name='m'))
case('mean_int', lambda f, L: L.mean(I(f)))

# ---- products and sums
case('matmul', lambda f, L: L.matmul(X(f, 3, 4), X(f, 4, 5, n='y')))
case('matmul_full', lambda f, L: L.matmul(X(f, None, 4, 3), X(f, None, 5, 4, n='y'), True, True, 0.5, 'm'))
case('matmul_bad', lambda f, L: L.matmul(X(f, 2, 3), X(f, 4, 5, n='y')))
case('matmul_bad2', lambda f, L: L.matmul(X(f, 2, 3, 3), X(f, 4, 3, 5, n='y')))
case('matmul_vec', lambda f, L: L.matmul(X(f, 4), X(f, 4, n='y')))
case('matmul_int', lambda f, L: L.matmul(I(f, 2, 3), I(f, 3, 2, n='y')))
case('mul', lambda f, L: L.mul(X(f, None, 3, 4), X(f, 12, 5, n='y')))
case('mul_full', lambda f, L: L.mul(X(f, None, 3, 4), X(f, 4, 5, n='y'), 2, 1, 'm'))
case('bmm', lambda f, L: L.bmm(X(f, None, 3, 4), X(f, None, 4, 5, n='y'), 'm'))
case('dot', lambda f, L: L.dot(X(f), X(f, n='y'), 'm'))
case('addmm', lambda f, L: L.addmm(X(f, 3, 5), X(f, 3, 4, n='a'), X(f, 4, 5, n='b'), 0.5, 2.0, 'm'))
case('kron', lambda f, L: L.kron(X(f), X(f, n='y')))
case('scale', lambda f, L: L.scale(X(f)))
case('scale_full', lambda f, L: L.scale(X(f), 2.0, 1.0, False, 'relu', 's'))
case('scale_var', lambda f, L: L.scale(X(f), L.fill_constant([1], 'float32', 2.0)))
case('scale_int', lambda f, L: L.scale(I(f), 2))
case('scale_bool', lambda f, L: L.scale(X(f, d='bool'), 2))
case('sums', lambda f, L: L.sums([X(f), X(f, n='y')]))
case('sums_out', lambda f, L: L.sums([X(f), X(f, n='y')], out=L.create_tensor('float32')))
case('sums_one', lambda f, L: L.sums(X(f)))
case('sum', lambda f, L: L.sum([X(f), X(f, n='y')]))
case('sum_one', lambda f, L: L.sum(X(f)))
case('sum_bad', lambda f, L: L.sum(3))
case('pow', lambda f, L: L.pow(X(f), 2.5, 'p'))
case('pow_var', lambda f, L: L.pow(X(f), L.fill_constant([1], 'float32', 2.0)))
case('pow_int', lambda f, L: L.pow(I(f), 2))
case('clip', lambda f, L: L.clip(X(f), -1.0, 1.0))
case('clip_name', lambda f, L: L.clip(X(f), -1, 1, 'c'))
case('clip_bn', lambda f, L: L.clip_by_norm(X(f), 1.5))
case('clip_bn_name', lambda f, L: L.clip_by_norm(X(f), 1.5, 'c'))
case('clip_int', lambda f, L: L.clip(I(f), -1.0, 1.0))
case('cumsum', lambda f, L: L.cumsum(X(f)))
case('cumsum_full', lambda f, L: L.cumsum(X(f), 1, True, True))
case('increment', lambda f, L: L.increment(L.fill_constant([1], 'float32', 2.0)))
case('increment_not', lambda f, L: L.increment(L.fill_constant([1], 'float32', 2.0), value=3.0, in_place=False))
case('increment_int', lambda f, L: L.increment(L.fill_constant([1], 'int64', 2)))

# ---- activations
UN = 'sigmoid logsigmoid exp tanh tanh_shrink softshrink abs ceil floor cos sin round square softplus softsign relu relu6 elu leaky_relu hard_sigmoid hard_swish swish stanh brelu soft_relu selu hard_shrink thresholded_relu gelu erf sign mish sqrt rsqrt log reciprocal log1p acos asin atan softmax log_softmax'.split()
for n in UN:
    case('un_' + n, lambda f, L, n=n: getattr(L, n)(X(f)))
    if n not in ('sign', 'erf', 'gelu', 'softshrink', 'hard_shrink', 'thresholded_relu'):
        case('unn_' + n, lambda f, L, n=n: getattr(L, n)(X(f), name='nm'))
    case('unbad_' + n, lambda f, L, n=n: getattr(L, n)(np.ones(3, 'float32')))
    for dt in ('int32', 'int64', 'float64', 'float16', 'bool'):
        case('und_%s_%s' % (n, dt), lambda f, L, n=n, dt=dt: getattr(L, n)(X(f, d=dt)))
case('un2_relu6', lambda f, L: L.relu6(X(f), 4.0))
case('un2_elu', lambda f, L: L.elu(X(f), 0.3))
case('un2_leaky', lambda f, L: L.leaky_relu(X(f), 0.3))
case('un2_hs', lambda f, L: L.hard_sigmoid(X(f), 0.3, 0.4))
case('un2_hsw', lambda f, L: L.hard_swish(X(f), 2.0, 3.0, 1.5))
case('un2_swish', lambda f, L: L.swish(X(f), 1.7))
case('un2_stanh', lambda f, L: L.stanh(X(f), 0.5, 1.2))
case('un2_brelu', lambda f, L: L.brelu(X(f), -1.0, 1.5))
case('un2_sr', lambda f, L: L.soft_relu(X(f), 1.5))
case('un2_selu', lambda f, L: L.selu(X(f), 1.2, 0.8))
case('un2_ss', lambda f, L: L.softshrink(X(f), 0.8))
case('un2_hsr', lambda f, L: L.hard_shrink(X(f), 0.8))
case('un2_tr', lambda f, L: L.thresholded_relu(X(f), 0.8))
case('un2_gelu', lambda f, L: L.gelu(X(f), True))
case('un2_sm', lambda f, L: L.softmax(X(f, None, 3, 4), True, 'n', 1))
case('un2_lsm', lambda f, L: L.log_softmax(X(f, None, 3, 4), 1))
case('un2_lsm_dt', lambda f, L: L.log_softmax(X(f, None, 3, 4), 1, 'float64', 'nm'))
case('un2_mish', lambda f, L: L.mish(X(f), 10, 'm'))
case('un2_mishbad', lambda f, L: L.mish(X(f), -1))
case('maxout', lambda f, L: L.maxout(X(f, None, 6, 3, 3), 2, 'm', 1))
case('maxout_bad', lambda f, L: L.maxout(X(f, None, 6, 3, 3), 2, 'm', 2))
for m in ('all', 'channel', 'element', 'bad'):
    case('prelu_' + m, lambda f, L, m=m: L.prelu(X(f, None, 3, 2, 2), m))
case('prelu_name', lambda f, L: L.prelu(X(f, None, 3, 2, 2), 'all', f.ParamAttr(name='al'), 'pr'))

# ---- shapes and places
case('reshape', lambda f, L: L.reshape(X(f, None, 3, 4), [-1, 12]))
case('reshape0', lambda f, L: L.reshape(X(f, None, 3, 4), [0, -1], act='tanh', name='r'))
case('reshape_in', lambda f, L: L.reshape(X(f, None, 3, 4), [0, -1], inplace=True))
case('reshape_bad', lambda f, L: L.reshape(X(f, 2, 3), [4, 5]))
case('reshape_2m1', lambda f, L: L.reshape(X(f, 2, 3), [-1, -1]))
case('reshape_act', lambda f, L: L.reshape(X(f, 2, 3), [3, 2], actual_shape=f.data('s', [2], 'int32')))
case('reshape_var', lambda f, L: L.reshape(X(f, 2, 3), f.data('s', [2], 'int32')))
case('reshape_lvar', lambda f, L: L.reshape(X(f, 2, 3), [L.fill_constant([1], 'int32', 3), 2]))
case('reshape_neg', lambda f, L: L.reshape(X(f, 2, 3), [-2, 2]))
case('reshape_zero', lambda f, L: L.reshape(X(f, 2, 3), [2, 3, 0]))
case('reshape_str', lambda f, L: L.reshape(X(f, 2, 3), 'ab'))
case('transpose', lambda f, L: L.transpose(X(f, None, 3, 4), [0, 2, 1], 't'))
case('transpose_bad', lambda f, L: L.transpose(X(f, None, 3, 4), [0, 2]))
case('transpose_bad2', lambda f, L: L.transpose(X(f, None, 3, 4), [0, 2, 3]))
case('transpose_tuple', lambda f, L: L.transpose(X(f, None, 3, 4), (0, 2, 1)))
case('squeeze', lambda f, L: L.squeeze(X(f, None, 1, 4), [1]))
case('squeeze_e', lambda f, L: L.squeeze(X(f, 2, 1, 4), [], 's'))
case('unsqueeze', lambda f, L: L.unsqueeze(X(f), [0, 2], 's'))
case('unsqueeze_i', lambda f, L: L.unsqueeze(X(f), 1))
case('unsqueeze_v', lambda f, L: L.unsqueeze(X(f), L.fill_constant([1], 'int32', 1)))
case('unsqueeze_lv', lambda f, L: L.unsqueeze(X(f), [L.fill_constant([1], 'int32', 1), 2]))
case('flatten', lambda f, L: L.flatten(X(f, None, 3, 4), 2, 'f'))
case('flatten_bad', lambda f, L: L.flatten(X(f, None, 3, 4), 5))
case('concat', lambda f, L: L.concat([X(f), X(f, n='y')], 1))
case('concat_name', lambda f, L: L.concat([X(f), X(f, n='y')], -1, 'c'))
case('concat_one', lambda f, L: L.concat(X(f)))
case('concat_bad', lambda f, L: L.concat([X(f, 2, 3), X(f, 4, 5, n='y')]))
case('concat_num', lambda f, L: L.concat([X(f, 2, 3), 3]))
case('concat_axisvar', lambda f, L: L.concat([X(f, 2, 3), X(f, 2, 3, n='y')], L.fill_constant([1], 'int32', 1)))
case('concat_mixed', lambda f, L: L.concat([X(f, 2, 3), X(f, 2, 3, n='y', d='float64')]))
case('split', lambda f, L: L.split(X(f, None, 6), 2))
case('split_s', lambda f, L: L.split(X(f, None, 6), [1, 2, -1], 1, 's'))
case('split_bad', lambda f, L: L.split(X(f, 2, 3), 2, dim=1))
case('split_var', lambda f, L: L.split(X(f, 2, 6), 3, dim=L.fill_constant([1], 'int32', 1)))
case('split_svar', lambda f, L: L.split(X(f, 2, 6), [L.fill_constant([1], 'int32', 2), 4], dim=1))
case('split_type', lambda f, L: L.split(X(f, 2, 6), 2.0, dim=1))
case('stack', lambda f, L: L.stack([X(f), X(f, n='y')], 1))
case('stack_one', lambda f, L: L.stack(X(f)))
case('unstack', lambda f, L: L.unstack(X(f, 3, 4), 1))
case('unstack_n', lambda f, L: L.unstack(X(f, 3, 4), 1, 4))
case('slice', lambda f, L: L.slice(X(f, 3, 4, 5), [1, 2], [0, 1], [2, 3]))
case('slice_var', lambda f, L: L.slice(X(f, 3, 4, 5), [1, 2], [0, L.fill_constant([1], 'int32', 1)], [2, 3]))
case('slice_tensor', lambda f, L: L.slice(X(f, 3, 4, 5), [1, 2], f.data('s', [2], 'int32'), [2, 3]))
case('slice_bad', lambda f, L: L.slice(X(f, 3, 4, 5), 1, [0], [1]))
case('sslice', lambda f, L: L.strided_slice(X(f, 3, 4, 5), [1, 2], [0, 1], [2, 3], [1, 2]))
case('expand', lambda f, L: L.expand(X(f), [2, 3], 'e'))
case('expand_var', lambda f, L: L.expand(X(f), [L.fill_constant([1], 'int32', 2), 3]))
case('expand_tensor', lambda f, L: L.expand(X(f), f.data('s', [2], 'int32')))
case('expand_as', lambda f, L: L.expand_as(X(f, 1, 4), X(f, 3, 4, n='y'), 'e'))
case('gather', lambda f, L: L.gather(X(f, 5, 3), f.data('i', [None], 'int32')))
case('gather_o', lambda f, L: L.gather(X(f, 5, 3), f.data('i', [None], 'int64'), False))
case('gather_f', lambda f, L: L.gather(X(f, 5, 3), X(f, n='i')))
case('gather_nd', lambda f, L: L.gather_nd(X(f, 5, 3), I(f, 4, 1), 'g'))
case('scatter', lambda f, L: L.scatter(X(f, 5, 3), I(f, 2), X(f, 2, 3, n='u'), 's', False))
case('pad', lambda f, L: L.pad(X(f, 2, 3), [0, 1, 1, 0], 0.5, 'p'))
case('pad2d', lambda f, L: L.pad2d(im(f), [1, 2, 0, 1], 'reflect', 0.5, 'NCHW', 'p'))
case('reverse', lambda f, L: L.reverse(X(f), [1]))
case('reverse_i', lambda f, L: L.reverse(X(f), 1))
case('where', lambda f, L: L.where(X(f, d='bool')))
case('multiplex', lambda f, L: L.multiplex([X(f), X(f, n='y')], f.data('i', [None, 1], 'int32')))
case('shape', lambda f, L: L.shape(X(f)))
case('rank', lambda f, L: L.rank(X(f)))
case('size', lambda f, L: L.size(X(f)))
case('topk', lambda f, L: L.topk(X(f), 2, 't'))
case('topk_var', lambda f, L: L.topk(X(f), L.fill_constant([1], 'int32', 2)))
case('argmax', lambda f, L: L.argmax(X(f), 1))
case('argmin', lambda f, L: L.argmin(X(f)))
case('argsort', lambda f, L: L.argsort(X(f), 0, True, 'a'))
case('argsort_d', lambda f, L: L.argsort(X(f)))

# ---- creation
case('fill', lambda f, L: L.fill_constant([2, 3], 'float32', 1.5))
case('fill_int', lambda f, L: L.fill_constant([2, 3], 'int64', 7))
case('fill_bool', lambda f, L: L.fill_constant([1], 'bool', True))
case('fill_out', lambda f, L: L.fill_constant([1], 'float32', 2, out=L.create_tensor('float32')))
case('fill_cpu', lambda f, L: L.fill_constant([1], 'float32', 2, force_cpu=True))
case('fill_shapevar', lambda f, L: L.fill_constant([L.fill_constant([1], 'int32', 2), 3], 'float32', 2))
case('fill_shapetensor', lambda f, L: L.fill_constant(f.data('s', [2], 'int32'), 'float32', 2))
case('fill_valvar', lambda f, L: L.fill_constant([2], 'float32', L.fill_constant([1], 'float32', 2)))
case('fill_bad', lambda f, L: L.fill_constant([2], 'complex', 2))
case('fill_np', lambda f, L: L.fill_constant(np.array([2, 3]), 'float32', 2))
case('fill_outdt', lambda f, L: L.fill_constant([1], 'float32', 2, out=L.create_tensor('int64')))
case('fill_tuple', lambda f, L: L.fill_constant((2, 3), np.float32, 2))
case('fcbsl', lambda f, L: L.fill_constant_batch_size_like(X(f), [-1, 3], 'int64', 3, 0, 0, True))
case('zeros', lambda f, L: L.zeros([2, 3], 'float32'))
case('ones', lambda f, L: L.ones([2, 3], 'int64', True))
case('zeros_like', lambda f, L: L.zeros_like(X(f)))
case('zeros_like_out', lambda f, L: L.zeros_like(X(f), L.create_tensor('float32')))
case('ones_like', lambda f, L: L.ones_like(X(f)))
case('ones_like_out', lambda f, L: L.ones_like(X(f), L.create_tensor('float32')))
case('range', lambda f, L: L.range(0, 10, 2, 'int64'))
case('range_f', lambda f, L: L.range(0.0, 10.0, L.fill_constant([1], 'float32', 2), 'float32'))
case('linspace', lambda f, L: L.linspace(0.0, 10.0, 5, 'float32'))
case('eye', lambda f, L: L.eye(3, 4))
case('eye_b', lambda f, L: L.eye(3, batch_shape=[2]))
case('diag', lambda f, L: L.diag(X(f, 3)))
case('unif', lambda f, L: L.uniform_random([2, 3], min=-2.0, max=1.0, seed=3))
case('unif_var', lambda f, L: L.uniform_random([L.fill_constant([1], 'int32', 2), 3]))
case('unif_t', lambda f, L: L.uniform_random(f.data('s', [2], 'int32'), 'float64'))
case('gauss', lambda f, L: L.gaussian_random([2, 3], 1.0, 2.0, 5, 'float64'))
case('gauss_d', lambda f, L: L.gaussian_random((2, 3)))
case('unifl', lambda f, L: L.uniform_random_batch_size_like(X(f), [-1, 3], 'float32', 0, 0, -2.0, 3.0, 4))
case('gaussl', lambda f, L: L.gaussian_random_batch_size_like(X(f), [-1, 3], 0, 0, 1.0, 2.0, 3, 'float32'))
case('create_param', lambda f, L: L.create_parameter([2, 3], 'float32'))
case('create_param_name', lambda f, L: L.create_parameter([2, 3], 'float32', name='q', attr=f.ParamAttr(learning_rate=0.5)))
case('create_param_bias', lambda f, L: L.create_parameter([2], 'float32', is_bias=True, attr='nm'))
case('create_param_init', lambda f, L: L.create_parameter([2], 'float32', default_initializer=f.initializer.Constant(3.0)))
case('create_tensor', lambda f, L: L.create_tensor('int64'))
case('create_tensor_n', lambda f, L: L.create_tensor('int64', 'nm', True))
case('cgv', lambda f, L: L.create_global_var([2, 3], 1.5, 'float32', True, True, 'gv'))
case('cgv_d', lambda f, L: L.create_global_var([1], 2, 'int64'))
case('cgv_bad', lambda f, L: L.create_global_var(1, 2, 'int64'))
case('counter', lambda f, L: L.autoincreased_step_counter())
case('counter2', lambda f, L: [L.autoincreased_step_counter('cc', 5, 2), L.autoincreased_step_counter('cc', 5, 2)])
case('assign', lambda f, L: L.assign(X(f)))
case('assign_np', lambda f, L: L.assign(np.array([[1, 2], [3, 4]], 'float32')))
case('assign_np_i', lambda f, L: L.assign(np.array([1, 2], 'int64')))
case('assign_np_i32', lambda f, L: L.assign(np.array([1, 2], 'int32')))
case('assign_np_f64', lambda f, L: L.assign(np.array([1, 2], 'float64')))
case('assign_np_bool', lambda f, L: L.assign(np.array([True, False])))
case('assign_out', lambda f, L: L.assign(X(f), L.create_tensor('float32')))
case('assign_list', lambda f, L: L.assign([1.0]))
case('cast', lambda f, L: L.cast(X(f), 'int64'))
case('cast_bad', lambda f, L: L.cast(X(f), 'complex'))
case('cast_u8', lambda f, L: L.cast(X(f), 'uint8'))
case('cast_bad2', lambda f, L: L.cast(3, 'int64'))

# ---- comparisons and logic
for n in ('less_than', 'less_equal', 'greater_than', 'greater_equal', 'equal', 'not_equal'):
    case('cmp_' + n, lambda f, L, n=n: getattr(L, n)(X(f), X(f, n='y')))
    case('cmpc_' + n, lambda f, L, n=n: getattr(L, n)(X(f), X(f, n='y'), cond=L.create_tensor('bool')))
    case('cmpb_' + n, lambda f, L, n=n: getattr(L, n)(X(f), 3))
    for dt in ('bool', 'int8', 'float16'):
        case('cmpd_%s_%s' % (n, dt), lambda f, L, n=n, dt=dt: getattr(L, n)(X(f, d=dt), X(f, n='y', d=dt)))
case('lt_cpu', lambda f, L: L.less_than(X(f), X(f, n='y'), force_cpu=True))
case('lt_cpuF', lambda f, L: L.less_than(X(f), X(f, n='y'), force_cpu=False))
for n in ('and', 'or', 'xor'):
    case('lg_' + n, lambda f, L, n=n: getattr(L, 'logical_' + n)(X(f, d='bool'), X(f, n='y', d='bool')))
    case('lgn_' + n, lambda f, L, n=n: getattr(L, 'logical_' + n)(X(f, d='bool'), X(f, n='y', d='bool'), name='nm'))
    case('lgo_' + n, lambda f, L, n=n: getattr(L, 'logical_' + n)(X(f, d='bool'), X(f, n='y', d='bool'), L.create_tensor('bool'), 'nm'))
    case('lgf_' + n, lambda f, L, n=n: getattr(L, 'logical_' + n)(X(f), X(f, n='y')))
case('lg_not', lambda f, L: L.logical_not(X(f, d='bool')))
case('lg_noto', lambda f, L: L.logical_not(X(f, d='bool'), L.create_tensor('bool'), 'nm'))
case('is_empty', lambda f, L: L.is_empty(X(f)))
case('is_empty_c', lambda f, L: L.is_empty(X(f), L.create_tensor('bool')))
case('isfinite', lambda f, L: L.isfinite(X(f)))
case('has_inf', lambda f, L: L.has_inf(X(f)))
case('has_nan', lambda f, L: L.has_nan(X(f)))

# ---- fed variables
case('data', lambda f, L: L.data('d', [3, 4]))
case('data_na', lambda f, L: L.data('d', [3, 4], append_batch_size=False, dtype='int64', lod_level=1, stop_gradient=False))
case('data_m1', lambda f, L: L.data('d', [3, -1]))
case('data_None', lambda f, L: L.data('d', [None, 4]))
case('data_bad', lambda f, L: L.data(3, [3, 4]))

# ---- sequences
case('seqpool', lambda f, L: L.sequence_pool(X(f, None, 4, lod=1), 'sum'))
case('seqpool_max', lambda f, L: L.sequence_pool(X(f, None, 4, lod=1), 'MAX', True, 0.5))
case('seqpool_bad', lambda f, L: L.sequence_pool(X(f, None, 4, lod=1), 'most'))
case('seqfirst', lambda f, L: L.sequence_first_step(X(f, None, 4, lod=1)))
case('seqlast', lambda f, L: L.sequence_last_step(X(f, None, 4, lod=1)))
case('seqconv', lambda f, L: L.sequence_conv(X(f, None, 4, lod=1), 5, 3, act='tanh'))
case('seqconv_full', lambda f, L: L.sequence_conv(X(f, None, 4, lod=1), 5, 4, padding_start=-2, bias_attr=False, param_attr='w', name='sc'))
case('seqsoftmax', lambda f, L: L.sequence_softmax(X(f, None, 1, lod=1), True, 's'))
case('seqexp', lambda f, L: L.sequence_expand(X(f), X(f, n='y', lod=1), 0, 'n'))
case('seqexpas', lambda f, L: L.sequence_expand_as(X(f), X(f, n='y', lod=1), 'n'))
case('seqresh', lambda f, L: L.sequence_reshape(X(f, lod=1), 2))
case('seqcat', lambda f, L: L.sequence_concat([X(f, lod=1), X(f, n='y', lod=1)], 'n'))
case('seqslice', lambda f, L: L.sequence_slice(X(f, lod=1), I(f, None, 1, n='o'), I(f, None, 1, n='l'), 'n'))
case('seqrev', lambda f, L: L.sequence_reverse(X(f, lod=1), 'n'))
case('seqenum', lambda f, L: L.sequence_enumerate(I(f, lod=1), 2, 1, 'n'))
case('seqpad', lambda f, L: L.sequence_pad(X(f, lod=1), L.fill_constant([1], 'float32', 0.0), 7, 'n'))
case('sequnpad', lambda f, L: L.sequence_unpad(X(f, 3, 4), I(f, 3), 'n'))
case('seqmask', lambda f, L: L.sequence_mask(I(f, 3), 5, 'float32', 'n'))
case('seqmask_d', lambda f, L: L.sequence_mask(I(f, 3)))
case('lodreset', lambda f, L: L.lod_reset(X(f), target_lod=[0, 2, 4]))
case('lodreset_y', lambda f, L: L.lod_reset(X(f), X(f, n='y', lod=1)))
case('lodreset_bad', lambda f, L: L.lod_reset(X(f)))

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

# ---- operators of Variables
OPSX = {'add': lambda x, y: x + y, 'sub': lambda x, y: x - y, 'mul': lambda x, y: x * y, 'div': lambda x, y: x / y, 'pow': lambda x, y: x ** y, 'lt': lambda x, y: x < y, 'le': lambda x, y: x <= y, 'gt': lambda x, y: x > y, 'ge': lambda x, y: x >= y, 'eq': lambda x, y: x == y, 'ne': lambda x, y: x != y, 'mod': lambda x, y: x % y, 'fdiv': lambda x, y: x // y}
for n, o in OPSX.items():
    case('op_' + n, lambda f, L, o=o: o(X(f), X(f, n='y')))
    case('op_s_' + n, lambda f, L, o=o: o(X(f), 2.5))
    case('op_si_' + n, lambda f, L, o=o: o(X(f), 2))
    case('op_r_' + n, lambda f, L, o=o: o(2.5, X(f)))
    case('op_i_' + n, lambda f, L, o=o: o(I(f), 2))
    case('op_if_' + n, lambda f, L, o=o: o(I(f), 2.5))
    case('op_ri_' + n, lambda f, L, o=o: o(2, I(f)))
    case('op_ii_' + n, lambda f, L, o=o: o(I(f), I(f, n='y')))
    case('op_mix_' + n, lambda f, L, o=o: o(X(f), X(f, n='y', d='float64')))
    case('op_imix_' + n, lambda f, L, o=o: o(X(f, None, 1), I(f)))
    case('op_sm_' + n, lambda f, L, o=o: o(X(f), X(f, 4, n='y')))
    case('op_rsm_' + n, lambda f, L, o=o: o(X(f, 4, n='y'), X(f, 3, 4)))
    case('op_str_' + n, lambda f, L, o=o: o(X(f), 'a'))
    case('op_1_' + n, lambda f, L, o=o: o(X(f), 1))
    case('op_r1_' + n, lambda f, L, o=o: o(1.0, X(f)))
case('op_neg', lambda f, L: -X(f))
case('op_neg_i', lambda f, L: -I(f))
case('op_astype', lambda f, L: X(f).astype('int64'))
case('op_astype_n', lambda f, L: X(f).astype(np.float64))
case('op_np', lambda f, L: X(f) + np.float32(2))
case('op_np64', lambda f, L: X(f) * np.float64(2))
case('op_nparr', lambda f, L: X(f) * np.ones(4, 'float32'))
case('op_bool', lambda f, L: X(f) * True)

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

# ---- sequences moved, cut and padded
S = lambda f, *s, **k: X(f, *s, lod=k.pop('lod', 1), **k)
case('seq_softmax', lambda f, L: L.sequence_softmax(S(f, None, 1)))
case('seq_softmax_t', lambda f, L: L.sequence_softmax(I(f, lod=1)))
case('seq_concat', lambda f, L: L.sequence_concat([S(f), S(f, n='y')]))
case('seq_concat_t', lambda f, L: L.sequence_concat(S(f)))
case('seq_concat_e', lambda f, L: L.sequence_concat([S(f), S(f, n='y', d='int32')]))
case('seq_expand', lambda f, L: L.sequence_expand(S(f), S(f, n='y', lod=2), ref_level=0, name='nm'))
case('seq_expand_t', lambda f, L: L.sequence_expand(S(f, d='bool'), S(f, n='y')))
case('seq_expand_as', lambda f, L: L.sequence_expand_as(S(f), S(f, n='y')))
case('seq_expand_as_t', lambda f, L: L.sequence_expand_as(S(f), 3))
case('seq_pad', lambda f, L: L.sequence_pad(S(f), L.assign(np.zeros(1, 'float32')), maxlen=5))
case('seq_pad_name', lambda f, L: L.sequence_pad(S(f), L.assign(np.zeros(1, 'float32')), name='q'))
case('seq_unpad', lambda f, L: L.sequence_unpad(X(f, 10, 5), f.data('n', [10], 'int64')))
case('seq_unpad_3', lambda f, L: L.sequence_unpad(X(f, 10, 5, 2), f.data('n', [10], 'int64')))
case('seq_unpad_t', lambda f, L: L.sequence_unpad(X(f, 10, 5), f.data('n', [10], 'int32')))
case('seq_mask', lambda f, L: L.sequence_mask(f.data('n', [10], 'int64'), maxlen=5, dtype='float32'))
case('seq_mask_v', lambda f, L: L.sequence_mask(f.data('n', [10], 'int64'), maxlen=f.data('m', [1], 'int32')))
case('seq_mask_n', lambda f, L: L.sequence_mask(f.data('n', [10], 'int64')))
case('seq_reverse', lambda f, L: L.sequence_reverse(S(f)))
case('seq_reverse_t', lambda f, L: L.sequence_reverse(S(f, d='bool')))
case('seq_slice', lambda f, L: L.sequence_slice(S(f), I(f, n='o'), I(f, n='l')))
case('seq_slice_t', lambda f, L: L.sequence_slice(S(f), X(f, n='o'), I(f, n='l')))
case('seq_reshape', lambda f, L: L.sequence_reshape(S(f), 2))
case('seq_enumerate', lambda f, L: L.sequence_enumerate(I(f, lod=1), 2, 3))
case('seq_enumerate_t', lambda f, L: L.sequence_enumerate(S(f), 2, 3))
case('seq_scatter', lambda f, L: L.sequence_scatter(X(f, 3, 6), I(f, lod=1), S(f, None, 1, n='u')))
case('lod_reset_y', lambda f, L: L.lod_reset(S(f), y=S(f, None, 1, n='y', lod=2)))
case('lod_reset_l', lambda f, L: L.lod_reset(S(f), target_lod=[0, 3]))
case('lod_reset_none', lambda f, L: L.lod_reset(S(f)))
case('lod_append_l', lambda f, L: L.lod_append(S(f), [0, 3]))
case('lod_append_v', lambda f, L: L.lod_append(S(f), S(f, None, 1, n='y')))
case('lod_append_t', lambda f, L: L.lod_append(S(f), 3))

# ---- click-through and many classes
case('cvm', lambda f, L: L.continuous_value_model(X(f, None, 8), X(f, None, 2, n='c')))
case('cvm_off', lambda f, L: L.continuous_value_model(X(f, None, 8, lod=1), X(f, None, 2, n='c'), False))
case('cvm_t', lambda f, L: L.continuous_value_model(I(f), X(f, None, 2, n='c')))
case('instag', lambda f, L: L.filter_by_instag(X(f), I(f, lod=1), f.data('f', [None], 'int64'), True))
case('nce', lambda f, L: L.nce(X(f, None, 8), I(f), 100, num_neg_samples=5))
case('nce_log', lambda f, L: L.nce(X(f, None, 8), I(f), 100, sample_weight=X(f, None, 1, n='w'), sampler='log_uniform', seed=3, is_sparse=True, bias_attr=False))
case('nce_custom', lambda f, L: L.nce(X(f, None, 8), I(f), 4, sampler='custom_dist', custom_dist=[.1, .2, .3, .4], num_neg_samples=2))
case('nce_t', lambda f, L: L.nce(X(f, None, 8), X(f, None, 1, n='y'), 100))
case('nce_none', lambda f, L: L.nce(X(f, None, 8), I(f), 100, sampler='custom_dist'))
case('nce_attr', lambda f, L: L.nce(X(f, None, 8), I(f), 100, param_attr=f.ParamAttr(name='pw'), bias_attr=f.ParamAttr(name='pb')))
case('hsigmoid', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), 6))
case('hsigmoid_tree', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), 6, path_table=I(f, None, 3, n='t'), path_code=I(f, None, 3, n='c'), is_custom=True, is_sparse=True, bias_attr=False))
case('hsigmoid_one', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), 1))
case('hsigmoid_none', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), None))
case('hsigmoid_code', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), 6, path_code=I(f, None, 3, n='c')))
case('hsigmoid_half', lambda f, L: L.hsigmoid(X(f, None, 8), I(f), 6, path_code=I(f, None, 3, n='c'), is_custom=True))
case('sampled', lambda f, L: L.sampled_softmax_with_cross_entropy(X(f, None, 100), I(f), 5))
case('sampled_own', lambda f, L: L.sampled_softmax_with_cross_entropy(X(f, 8, 100), I(f, 8, 1), 5, use_customized_samples=True, customized_samples=I(f, 8, 6, n='s'), customized_probabilities=X(f, 8, 6, n='p'), seed=2, remove_accidental_hits=False))
case('center_loss', lambda f, L: L.center_loss(X(f, None, 8), I(f), 6, 0.1, f.ParamAttr(name='cen')))
case('center_loss_v', lambda f, L: L.center_loss(X(f, None, 8), I(f), 6, L.fill_constant([1], 'float32', .2), None, False))
case('center_loss_t', lambda f, L: L.center_loss(X(f, None, 8), I(f), 6, 'a', None))
case('data_norm', lambda f, L: L.data_norm(X(f)))
case('data_norm_all', lambda f, L: L.data_norm(X(f), param_attr={'batch_size': 7., 'batch_sum': 1., 'batch_square': 3.}, name='q', slot_dim=2, act='relu', summary_decay_rate=.5))
case('hash', lambda f, L: L.hash(I(f), 10))

# ---- recurrent
case('lstm', lambda f, L: L.dynamic_lstm(S(f, None, 8), 8))
case('lstm_all', lambda f, L: L.dynamic_lstm(S(f, None, 8), 8, X(f, None, 2, n='h'), X(f, None, 2, n='c'), f.ParamAttr(name='w'), f.ParamAttr(name='b'), False, True, 'relu', 'sigmoid', 'identity', name='q'))
case('lstm_nobias', lambda f, L: L.dynamic_lstm(S(f, None, 8), 8, bias_attr=False))
case('lstm_h', lambda f, L: L.dynamic_lstm(S(f, None, 8), 8, X(f, None, 2, n='h')))
case('lstm_t', lambda f, L: L.dynamic_lstm(I(f, None, 8, lod=1), 8))
case('lstmp', lambda f, L: L.dynamic_lstmp(S(f, None, 8), 8, 3))
case('lstmp_all', lambda f, L: L.dynamic_lstmp(S(f, None, 8), 8, 3, f.ParamAttr(name='w'), None, False, True, 'relu', 'sigmoid', 'identity', 'relu', name='q', h_0=X(f, None, 3, n='h'), c_0=X(f, None, 2, n='c'), cell_clip=2., proj_clip=1.))
case('lstmp_init', lambda f, L: L.dynamic_lstmp(S(f, None, 8), 8, 3, h_0=X(f, None, 3, n='h'), c_0=X(f, None, 2, n='c'), cell_clip=2., proj_clip=1.))
case('gru', lambda f, L: L.dynamic_gru(S(f, None, 6), 2))
case('gru_all', lambda f, L: L.dynamic_gru(S(f, None, 6), 2, f.ParamAttr(name='w'), False, True, 'relu', 'sigmoid', X(f, None, 2, n='h'), True))
case('gru_wide', lambda f, L: L.dynamic_gru(S(f, None, 8), 2))
case('gru_t', lambda f, L: L.dynamic_gru(I(f, None, 6, lod=1), 2))
case('gru_unit', lambda f, L: L.gru_unit(X(f, None, 6), X(f, None, 2, n='h'), 6))
case('gru_unit_all', lambda f, L: L.gru_unit(X(f, None, 6), X(f, None, 2, n='h'), 6, f.ParamAttr(name='w'), False, 'relu', 'identity', True))
case('gru_unit_t', lambda f, L: L.gru_unit(I(f, None, 6), X(f, None, 2, n='h'), 6))
case('lstm_unit', lambda f, L: L.lstm_unit(X(f, None, 8), X(f, None, 5, n='h'), X(f, None, 5, n='c')))
case('lstm_unit_all', lambda f, L: L.lstm_unit(X(f, 4, 8), X(f, 4, 5, n='h'), X(f, 4, 3, n='c'), 1.5, f.ParamAttr(name='w'), f.ParamAttr(name='b'), 'q'))
case('lstm_unit_nobias', lambda f, L: L.lstm_unit(X(f, None, 8), X(f, None, 5, n='h'), X(f, None, 5, n='c'), bias_attr=False))
case('lstm_unit_same', lambda f, L: L.lstm_unit(X(f, 4, 8), X(f, 4, 3, n='h'), X(f, 4, 3, n='c'), 1.5, f.ParamAttr(name='w'), f.ParamAttr(name='b'), 'q'))
case('lstm_unit_rows', lambda f, L: L.lstm_unit(X(f, 4, 8), X(f, 5, 5, n='h'), X(f, 4, 3, n='c')))
case('lstm_unit_rank', lambda f, L: L.lstm_unit(X(f, 4, 8, 1), X(f, 4, 5, n='h'), X(f, 4, 3, n='c')))
case('lstm_unit_t', lambda f, L: L.lstm_unit(I(f), X(f, None, 5, n='h'), X(f, None, 5, n='c')))
