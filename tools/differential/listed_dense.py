"""The rules of listed.py for elementwise operators, tensors, reductions, losses, metrics and updates."""

import listed_when as when
from listed import DIFFERS, GRADIENT, RAISES, WORKS, Rule
from listed_dense_errors import LOGIC, PAIRS, REDUCTIONS, REFUSED, TAKEN

DTYPE = "a dtype without a kernel in 1.8.5, mostly float64 or integers"
NOTHING = "operators on empty tensors, on sequences without rows, or on parameters with an extent of 0"
MORE = (
    "arguments with an extra or a missing axis of extent 1, with extra columns, with a lower rank, or "
    "with a known extent where 1.8.5 expects an unknown one, or an unknown one where it expects a known one"
)
PART = "arguments that 1.8.5 reads only in part, or beyond their end"
UNKNOWN = (
    "operators that need a known extent while the program is built (`cross`, `increment`, `range`, "
    "`crop_tensor`, sparse updates of `Adadelta` ...)"
)
MEETS = (
    "comparisons and elementwise operators with an extent of 1 in X and a larger one in Y, or with an "
    "`axis` that does not fit"
)
LOD = (
    "an LoD that covers more or fewer rows than the result has (`accuracy`, `index_select` on axis 0, `stack` with "
    "one tensor ...)"
)
NO_AXIS = "`unbind` of a vector, `p_norm` over the only axis, `fill` with an empty shape"
BEYOND = (
    "`unbind`, `p_norm` with an axis beyond the rank; `unbind` into more or fewer outputs than the axis has elements"
)
COUNTERS = (
    "the state that an operator updates in place, if the script sets it to a tensor with sequences or of another shape"
)
WIDE_ROWS = "sparse rows of more than two axes"
HALF = "float16 in `fill_any_like`, `erf`, `kron`"
CANCELS = (
    "differences close to 0: `norm` and `adagrad` with an `epsilon` below 0, `rmsprop` with a `decay` below 0"
)

RULES = [Rule(WORKS, MORE, (op,), theirs=pattern) for op, pattern in TAKEN.items()]
RULES += [Rule(RAISES, PART, (op,), ours=pattern) for op, pattern in REFUSED.items()]
RULES += [
    # ---- accepted here
    Rule(
        WORKS, NOTHING, theirs="holds no memory|number of heads|at least one tensor|should not be zero", when=when.empty
    ),
    Rule(WORKS, NOTHING, ("split",), theirs="other than unknown section", when=when.empty),
    Rule(WORKS, NOTHING, ("coalesce_tensor",), theirs="no accurate error hint", when=when.empty),
    Rule(WORKS, UNKNOWN, ("cross", "increment", "range", "adadelta", "adamax", "rmsprop"), when=when.unknown),
    Rule(WORKS, "`DGCMomentumOptimizer` without a GPU", ("dgc_momentum",), theirs="DGC is not useful"),
    Rule(WORKS, UNKNOWN, ("crop_tensor", "cross_entropy"), theirs=r"\(-1\) of the input|is \[-1\]", when=when.unknown),
    Rule(WORKS, WIDE_ROWS, ("adagrad",), theirs="no accurate error hint", when=when.wide_rows),
    Rule(WORKS, NOTHING, ("strided_slice",), theirs="zero_dim_condition", when=when.empty),
    Rule(WORKS, NOTHING, ("fused_elemwise_activation",), theirs="Broadcast dimension mismatch", when=when.empty),
    Rule(WORKS, MEETS, PAIRS + LOGIC + ("fused_elemwise_activation",), when=when.x_is_narrower),
    Rule(WORKS, MEETS, PAIRS + ("equal_reduce",), theirs="Operands could not be broadcast", when=when.x_is_narrower),
    Rule(WORKS, "`uniform_random` with `min` equal to `max`", ("uniform_random",), theirs="min must less then max"),
    Rule(WORKS, "`assign` without an input", ("assign",), when=when.without("X")),
    Rule(WORKS, "the operator `fc` with relu and without a bias", ("fc",), theirs="bias is NULL"),
    Rule(
        WORKS,
        "`sections` of `split` that contradict `num`",
        ("split", "split_byref"),
        when=when.has(lambda a: a["num"] > 0),
    ),
    Rule(WORKS, "`cumsum` with an `axis` below -1", ("cumsum",), when=when.has(lambda a: a["axis"] < -1)),
    Rule(
        WORKS,
        "`center_loss`, if `cluster_num` is not the number of centers",
        ("center_loss",),
        change="cluster_num",
    ),
    Rule(WORKS, "`coalesce_tensor` with `check_name`", ("coalesce_tensor",), when=when.has(lambda a: a["check_name"])),
    Rule(
        WORKS,
        "`reduce_*` and `reverse` with an empty list of axes",
        REDUCTIONS + ("reverse", "frobenius_norm"),
        theirs="greater than 0|can not be empty",
        when=when.has(lambda a: [] in (a.get("dim"), a.get("axis"))),
    ),
    Rule(
        WORKS,
        "`softmax_with_cross_entropy` with labels that lack the last axis",
        ("softmax_with_cross_entropy",),
        theirs="axis dimension of Input.Label. should be 1|same rank|should be equal",
    ),
    Rule(
        WORKS,
        "`softmax_with_cross_entropy` along another axis without `numeric_stable_mode`",
        ("softmax_with_cross_entropy",),
        theirs="not in numeric_stable_mode",
    ),
    Rule(
        WORKS,
        "`smooth_l1` with only one of the two weights",
        ("smooth_l1_loss",),
        theirs="both inside and outside",
    ),
    # ---- refused here
    Rule(RAISES, BEYOND, ("p_norm",), ours="axis is"),
    Rule(RAISES, "`pow` of integers with a negative factor", ("pow",), ours="at least 0 for integers", when=when.empty),
    Rule(RAISES, HALF, ("erf", "kron", "fill_any_like"), ours="o[fn] float16"),
    Rule(
        RAISES,
        "`bce_loss` with labels of a different shape, `partial_concat` and `partial_sum` with columns that do not "
        "exist, `fill` with too few numbers",
        ("bce_loss", "partial_concat", "partial_sum"),
        ours="same shape|must not exceed",
    ),
    Rule(
        RAISES,
        "`sampling_id`: the declared dtype of the indices; a matrix without columns",
        ("sampling_id",),
        ours="column",
    ),
    # ---- other values
    Rule(DIFFERS, LOD, why="sequences", when=when.both(when.ends_early, when.only_sequences)),
    Rule(GRADIENT, LOD, why="refused there", when=when.ends_early),
    Rule(
        DIFFERS, LOD, ("accuracy", "equal_reduce", "index_select", "unbind"), why="sequences", when=when.only_sequences
    ),
    Rule(
        DIFFERS,
        "sequences of `unsqueeze` with an empty list of axes",
        ("unsqueeze", "unsqueeze2"),
        when=when.both(when.only_sequences, when.has(lambda a: a["axes"] == [])),
    ),
    Rule(DIFFERS, "NaN in `top_k`, `argsort`", ("top_k", "argsort"), when=when.not_a_number("X")),
    Rule(
        DIFFERS,
        "equal values in `top_k`, `argsort`, `similarity_focus`, `matrix_nms`, `generate_proposals`",
        ("top_k",),
        why="indices",
        when=when.ties("X", "Indices"),
    ),
    Rule(
        DIFFERS,
        "equal values in `top_k`, `argsort`, `similarity_focus`, `matrix_nms`, `generate_proposals`",
        ("argsort",),
        why="indices",
        when=when.ties("X", "Indices", lambda case: case["attrs"].get("axis", -1)),
    ),
    Rule(
        DIFFERS,
        NO_AXIS,
        ("unbind", "p_norm", "fill", "fill_constant", "arg_max", "arg_min", "squeeze", "squeeze2"),
        why=r"not \(\)",
        when=when.only_shape,
    ),
    Rule(DIFFERS, MEETS, PAIRS + LOGIC + ("fused_elemwise_activation",), why="shape", when=when.x_is_narrower),
    Rule(DIFFERS, MEETS, LOGIC, when=when.y_ends_beyond_x),
    Rule(
        DIFFERS,
        "`elementwise_pow`, `elementwise_mod`, `elementwise_floordiv`, if X has fewer axes or smaller extents than Y",
        ("elementwise_pow", "elementwise_mod", "elementwise_floordiv"),
        when=when.x_is_narrower,
    ),
    Rule(DIFFERS, NOTHING, ("mean_iou", "kldiv_loss", "accuracy", "batch_norm"), why="nan", when=when.empty),
    Rule(
        DIFFERS,
        "`clip_by_norm`, `GradientClipByNorm` of zeros",
        ("clip_by_norm", "dgc_clip_by_norm"),
        why="not nan",
        when=lambda case, theirs, ours: not when.value(case, "X").any(),
    ),
    Rule(
        GRADIENT,
        "gradient of `leaky_relu` with an `alpha` above 1",
        ("leaky_relu",),
        when=when.has(lambda a: a["alpha"] > 1),
    ),
    Rule(
        DIFFERS,
        "`center_loss`, if `cluster_num` is not the number of centers",
        ("center_loss",),
        change="cluster_num",
    ),
    Rule(
        DIFFERS,
        "`smooth_l1` with only one of the two weights",
        ("smooth_l1_loss",),
        when=when.without("InsideWeight"),
    ),
    Rule(DIFFERS, CANCELS, ("rmsprop",), why="param|moment", when=when.has(lambda a: a["decay"] < 0)),
    Rule(DIFFERS, CANCELS, ("adagrad",), why="param", when=when.has(lambda a: a["epsilon"] < 0)),
    Rule(DIFFERS, NOTHING, ("fused_elemwise_activation",), why="shape", when=when.empty),
    Rule(DIFFERS, WIDE_ROWS, ("clip", "clip_by_norm", "sum"), why="shape", when=when.wide_rows),
    # ---- gradients
    Rule(
        GRADIENT,
        "`fused_elemwise_activation` of X times a function of Y: the gradient with respect to Y",
        ("fused_elemwise_activation",),
        why="gradient of y0@GRAD: -?[0-9]",
        when=when.has(
            lambda a: a["functor_list"][0] == "elementwise_mul" and a["functor_list"][1] in ("tanh", "sigmoid")
        ),
    ),
    Rule(GRADIENT, CANCELS, ("norm",), when=when.has(lambda a: a["epsilon"] < 0)),
    Rule(GRADIENT, DTYPE, why="gradient accepted here", theirs="does not have kernel for data_type"),
    Rule(GRADIENT, NOTHING, why=r"gradients of|gradient accepted here", when=when.empty),
]
