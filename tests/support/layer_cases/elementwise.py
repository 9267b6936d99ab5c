"""Cases: elementwise operations, reductions, activations, comparisons, operators of Variables."""
import numpy as np

from .common import I, X, case

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
