"""The rules of listed.py: differences on purpose, each with the first cell of its row in docs/differences.md."""

import listed_when as when
from listed import DIFFERS, GRADIENT, RAISES, WORKS, Rule
from listed_dense import RULES as DENSE
from listed_nets import RULES as NETS
from listed_rounding import RULES as ROUNDING

NOTHING = "operators on empty tensors, on sequences without rows, or on parameters with an extent of 0"
REDUCED = "`in_dtype` and `out_dtype` of `reduce_*`: the gradient; an `out_dtype` of bool or float16"
COUNTERS = (
    "the state that an operator updates in place, if the script sets it to a tensor with sequences or of another shape"
)
ALL_AXES = "gradient of `reduce_*` with all axes listed; `reduce_*` over all axes with `keep_dim`"
FUSED = "attributes of fused convolutions (`fuse_brelu` ...) in a program"
SPARSE = "`Ftrl`, `Adadelta`, `Adamax`, `DecayedAdagrad`, `LarsMomentum` with sparse gradients"

#: Of a stride below -1.
LONG_STEP = when.either(when.has(lambda a: min(a["strides"]) < -1), when.below("StridesTensor", -1))

RULES = DENSE + NETS + ROUNDING + [
    # ---- accepted here
    Rule(
        WORKS,
        "a dtype without a kernel in 1.8.5, mostly float64 or integers",
        theirs="kernel for data_type|wrong type|DataType of|bad_get|common_type_value",
    ),
    Rule(
        WORKS,
        NOTHING,
        theirs="begin_idx|larger than zero|0 dim|are Empty|match arity|num_col_dims|be(en)? initialized|numel",
        when=when.empty,
    ),
    Rule(
        WORKS,
        SPARSE,
        ("ftrl", "adadelta", "adamax", "decayed_adagrad", "lars_momentum", "rmsprop", "lamb", "dpsgd"),
        theirs="LoDTensor",
    ),
    Rule(
        WORKS,
        "sparse rows in `scale`, `shape`, `proximal_gd`, `proximal_adagrad` and others",
        theirs="Variable type must|same dim",
        when=when.rows,
    ),
    Rule(WORKS, "`data_layout`, `data_format` of operators on which they have no effect", theirs="storage order"),
    Rule(WORKS, "`meshgrid` with one vector; gradient of `meshgrid` with six vectors", ("meshgrid",)),
    # ---- refused here
    Rule(RAISES, FUSED, ours="fused forms|fuse_activation|fuse_with_relu"),
    Rule(RAISES, REDUCED, ours="out_dtype must be the dtype of X"),
    Rule(RAISES, "`matmul` with a `head_number` other than 1", ("matmul",), ours="head_number"),
    Rule(
        RAISES,
        "`crop`, `crop_tensor` of a region that extends beyond the tensor, or with negative offsets",
        ("crop", "crop_tensor"),
    ),
    # ---- other values
    Rule(DIFFERS, "`auc` with counts that the operator did not compute itself", ("auc",)),
    Rule(
        DIFFERS,
        COUNTERS,
        ("average_accumulates", "auc", "adam"),
        when=when.either(when.only_sequences, when.only_shape),
    ),
    Rule(
        DIFFERS,
        "sparse gradients in `Momentum` and `RMSProp`, if the ids are unsorted or there are more than two axes",
        ("momentum", "rmsprop", "adam", "adagrad", "lamb"),
        why="param|velocity|moment|mean",
        when=when.either(when.unordered, when.wide_rows),
    ),
    Rule(DIFFERS, "`strided_slice` with a stride below -1 that passes the end", ("strided_slice",), when=LONG_STEP),
    # ---- gradients
    Rule(GRADIENT, "`strided_slice` with a stride below -1 that passes the end", ("strided_slice",), when=LONG_STEP),
    Rule(GRADIENT, "sparse gradient of `hsigmoid` without a tree", ("hierarchical_sigmoid",)),
    Rule(
        GRADIENT,
        "gradient of `dropout` with `is_test`, of `batch_norm` with `is_test`, of `expand` with ExpandTimes",
        ("expand",),
    ),
    Rule(GRADIENT, ALL_AXES, theirs="match arity"),
    Rule(GRADIENT, REDUCED, change="in_dtype|out_dtype"),
    Rule(GRADIENT, "`meshgrid` with one vector; gradient of `meshgrid` with six vectors", ("meshgrid",)),
    Rule(GRADIENT, "gradient of `pad_constant_like` with float64 input", ("pad_constant_like",)),
    Rule(GRADIENT, "gradient of `assign` with an empty tensor", ("assign",)),
]
