"""The rules of listed.py: differences on purpose, each with the first cell of its row in docs/differences.md."""
from listed import DIFFERS, GRADIENT, RAISES, WORKS, Rule

DTYPES = "a dtype without a kernel in 1.8.5: mostly float64, or integers"
NOTHING = "operators of no elements, of sequences without rows, of parameters without extents"
AXES = "arguments with one axis of extent 1 more or fewer, or more columns, where the numbers are meant all the same"
MEANT = "arguments of operators that cannot be meant: more numbers than are read, extents that do not fit, unknown kinds"
SPARSE = "`Ftrl`, `Adadelta`, `Adamax`, `DecayedAdagrad`, `LarsMomentum` with sparse gradients"
ONE = "`unbind` of a vector, `p_norm` over the only axis, `fill` with an empty shape"
SWAPPED = "`elementwise_pow`, `elementwise_mod`, `elementwise_floordiv`, X with fewer axes or extents than Y"
TIES = "`top_k`, `argsort`, equal values"
LOD_ENDS = "sequences that do not end at the last row of a result (`accuracy`, `index_select` on axis 0, `stack` of one tensor ...)"

RULES = [
    # ---- accepted here
    Rule(WORKS, DTYPES, theirs="kernel for data_type|wrong type|DataType of|bad_get|common_type_value"),
    Rule(WORKS, NOTHING, theirs="begin_idx|larger than zero|0 dim|are Empty|match arity|num_col_dims|been initialized|numel"),
    Rule(WORKS, SPARSE, ("ftrl", "adadelta", "adamax", "decayed_adagrad", "lars_momentum", "rmsprop", "lamb", "dpsgd"),
         theirs="LoDTensor"),
    Rule(WORKS, "`data_layout`, `data_format` where they have no effect: other words", theirs="storage order"),
    Rule(WORKS, "operators that wait for streams of a GPU", ("c_sync_calc_stream", "c_sync_comm_stream")),
    Rule(WORKS, "`layers.lstm`", ("cudnn_lstm",)),
    Rule(WORKS, "`meshgrid` of one vector, gradient of that of six", ("meshgrid",)),
    Rule(WORKS, "`psroi_pool` with one output channel", ("psroi_pool",)),
    # ---- other values
    Rule(DIFFERS, TIES, ("top_k", "argsort"), why="indices"),
    Rule(DIFFERS, ONE, ("unbind", "p_norm", "fill", "fill_constant", "arg_max", "arg_min"), why=r"not \(\)"),
    Rule(DIFFERS, SWAPPED, ("elementwise_pow", "elementwise_mod", "elementwise_floordiv")),
    Rule(DIFFERS, LOD_ENDS, ("accuracy", "index_select", "stack"), why="sequences"),
    Rule(DIFFERS, "`deformable_conv` with `im2col_step` other than 1 (the default is 64)",
         ("deformable_conv", "deformable_conv_v1")),
    Rule(DIFFERS, "`detection_map` without detections, its state", ("detection_map",)),
    # ---- gradients
    Rule(GRADIENT, "`yolov3_loss`, two boxes in one cell for one anchor", ("yolov3_loss",)),
]
