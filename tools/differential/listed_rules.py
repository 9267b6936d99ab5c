"""The rules of listed.py: differences on purpose, each with the first cell of its row in docs/differences.md."""
from listed import DIFFERS, GRADIENT, RAISES, WORKS, Rule

NOTHING = "operators on no elements, on sequences without rows, on parameters without extents"
REDUCED = "`reduce_*`, attributes `in_dtype`, `out_dtype`"
COUNTERS = "state that an operator updates in its place, when the script gives it sequences or another shape"
EMPTY = "`fusion_gru`, `fusion_lstm`, `fused_embedding_fc_lstm`, sequences without rows; `fusion_gru` with `origin_mode`"
NO_AXIS = "`unbind` of a vector, `p_norm` over the only axis, `fill` with an empty shape"
ALL_AXES = "`reduce_*` with all axes listed, gradient; with `keep_dim` over all"
FUSED = "attributes of fused convolutions (`fuse_brelu` ...) in a program"
SPARSE = "`Ftrl`, `Adadelta`, `Adamax`, `DecayedAdagrad`, `LarsMomentum` with sparse gradients"

#: Arguments that mean something although the original refuses them.
TAKES_MORE = tuple("""
accuracy add_position_encoding affine_grid assign attention_lstm batch_norm bmm box_decoder_and_assign bpr_loss clip
clip_by_norm crop_tensor data_norm density_prior_box detection_map distribute_fpn_proposals elementwise_max elementwise_min
expand fill_constant fusion_seqconv_eltadd_relu fusion_seqexpand_concat_fc gather_nd generate_mask_labels
generate_proposal_labels group_norm hinge_loss instance_norm layer_norm linear_chain_crf linspace log_loss lrn lstm lstmp
margin_rank_loss match_matrix_tensor merge_ids prelu randint range ref_by_trainer_id retinanet_target_assign roi_pool
rpn_target_assign sample_logits scale scatter sequence_concat sequence_enumerate sequence_pad sequence_reverse
sequence_unpad shape smooth_l1_loss split_byref teacher_student_sigmoid_loss uniform_random unstack adadelta adamax
collect_fpn_proposals chunk_eval gru gru_unit proximal_gd proximal_adagrad decayed_adagrad ftrl
""".split())

#: Arguments that the original accepts, of which it reads a part, or more than there is.
MEANT = tuple("""
accuracy adam affine_channel arg_max arg_min assign_value auc average_accumulates bpr_loss center_loss conv2d_transpose
ctc_align cvm deformable_psroi_pooling depthwise_conv2d_transpose dequantize_abs_max dequantize_log detection_map
dgc_clip_by_norm distribute_fpn_proposals dpsgd elementwise_floordiv elementwise_mod equal not_equal less_than less_equal
greater_than greater_equal fake_dequantize_max_abs fake_quantize_dequantize_moving_average_abs_max
fake_quantize_moving_average_abs_max fake_channel_wise_dequantize_max_abs fc fill filter_by_instag ftrl gather_tree
generate_proposal_labels generate_proposals group_norm gru hash im2sequence index_sample label_smooth linear_chain_crf
lod_reset lstm_unit maxout mean_iou meshgrid momentum moving_average_abs_max_scale nce nll_loss one_hot partial_sum pool3d
reduce_max reduce_min ref_by_trainer_id retinanet_detection_output row_conv rpn_target_assign scale scatter_nd_add
sequence_concat sequence_mask sequence_scatter sigmoid_focal_loss spectral_norm split_selected_rows target_assign tdm_child unbind unfold
unique warpctc yolov3_loss
""".split())

RULES = [
    # ---- accepted here
    Rule(WORKS, "a dtype without a kernel in 1.8.5: mostly float64, or integers",
         theirs="kernel for data_type|wrong type|DataType of|bad_get|common_type_value"),
    Rule(WORKS, NOTHING,
         theirs="begin_idx|larger than zero|0 dim|are Empty|match arity|num_col_dims|been initialized|numel"),
    Rule(WORKS, SPARSE, ("ftrl", "adadelta", "adamax", "decayed_adagrad", "lars_momentum", "rmsprop", "lamb", "dpsgd"),
         theirs="LoDTensor"),
    Rule(WORKS, "sparse rows in `scale`, `shape`, `proximal_gd`, `proximal_adagrad` and such", theirs="Variable type must|same dim"),
    Rule(WORKS, "`data_layout`, `data_format` of operators where they have no effect", theirs="storage order"),
    Rule(WORKS, "operators that wait for the streams of a GPU", ("c_sync_calc_stream", "c_sync_comm_stream")),
    Rule(WORKS, "`layers.lstm`", ("cudnn_lstm",)),
    Rule(WORKS, "`meshgrid` of one vector, gradient of that of six", ("meshgrid",)),
    Rule(WORKS, "`psroi_pool` with one output channel", ("psroi_pool",)),
    Rule(WORKS, "arguments with one axis of extent 1 more or fewer, with more columns, of a lower rank, of all extents known",
         TAKES_MORE),
    # ---- refused here
    Rule(RAISES, FUSED, ours="fused forms|fuse_activation|fuse_with_relu"),
    Rule(RAISES, REDUCED, ours="out_dtype must be that of X"),
    Rule(RAISES, "`matmul` with a `head_number` other than 1", ("matmul",), ours="head_number"),
    Rule(RAISES, "`roi_align`, `prroi_pool` of integers", ("roi_align", "prroi_pool"), ours="there are kernels"),
    Rule(RAISES, "`crop`, `crop_tensor`, a part that reaches beyond the tensor, negative offsets", ("crop", "crop_tensor")),
    Rule(RAISES, "arguments of which 1.8.5 reads a part, or more than there is", MEANT),
    # ---- other values
    Rule(DIFFERS, "`top_k`, `argsort`, equal values", ("top_k", "argsort"), why="indices"),
    Rule(DIFFERS, NO_AXIS, ("unbind", "p_norm", "fill", "fill_constant", "arg_max", "arg_min"), why=r"not \(\)"),
    Rule(DIFFERS, "`elementwise_pow`, `elementwise_mod`, `elementwise_floordiv`, X with fewer axes or extents than Y",
         ("elementwise_pow", "elementwise_mod", "elementwise_floordiv")),
    Rule(DIFFERS, "comparisons, elementwise operators: an extent of 1 in X that is larger in Y; an `axis` that does not fit",
         ("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal", "elementwise_add"), why="shape"),
    Rule(DIFFERS, "sequences that do not end at the last row of a result (`accuracy`, `index_select` on axis 0, `stack` of "
         "one tensor ...)", ("accuracy", "index_select", "stack"), why="sequences"),
    Rule(DIFFERS, "`deformable_conv` with `im2col_step` other than 1 (the default is 64)",
         ("deformable_conv", "deformable_conv_v1")),
    Rule(DIFFERS, "`detection_map` without detections, its state", ("detection_map",)),
    Rule(DIFFERS, "`target_assign` with `negative_indices` and K above 1", ("target_assign",), why="outweight"),
    Rule(DIFFERS, "`multiclass_nms` of polygons that cross themselves", ("multiclass_nms", "multiclass_nms2")),
    Rule(DIFFERS, "`ctc_greedy_decoder`, `ctc_align`: nothing is left of a whole batch", ("ctc_align",), why="shape"),
    Rule(DIFFERS, "`fusion_seqpool_concat` of empty sequences", ("fusion_seqpool_concat", "fusion_seqpool_cvm_concat")),
    Rule(DIFFERS, "`warpctc` of empty sequences", ("warpctc",), why="inf"),
    Rule(DIFFERS, EMPTY, ("fusion_gru", "fusion_lstm", "fused_embedding_fc_lstm")),
    Rule(DIFFERS, "`attention_lstm` with identity as an activation", ("attention_lstm",), change="identity"),
    Rule(DIFFERS, "`match_matrix_tensor` of rows of two widths", ("match_matrix_tensor",)),
    Rule(DIFFERS, "`box_coder` of float64 with `variance` as an attribute", ("box_coder",), why="outputbox"),
    Rule(DIFFERS, "`auc`, counts that were not made by the operator", ("auc",)),
    Rule(DIFFERS, COUNTERS, ("average_accumulates", "moving_average_abs_max_scale", "auc", "adam")),
    Rule(DIFFERS, "sparse gradients whose ids come in no order, `Momentum` and `RMSProp`; of more than two axes",
         ("momentum", "rmsprop", "adam", "adagrad"), why="param|velocity|moment"),
    Rule(DIFFERS, "sparse rows of more than two axes", ("merge_selected_rows", "sum", "split_ids", "clip_by_norm"),
         why="shape"),
    Rule(DIFFERS, "sparse rows whose ids repeat, in `split_ids`", ("split_ids",)),
    Rule(DIFFERS, "`filter_by_instag` of more than two axes, or of tags of several levels", ("filter_by_instag",)),
    Rule(DIFFERS, "`image_resize` of the layout AnyLayout", ("bilinear_interp", "nearest_interp", "trilinear_interp"),
         change="AnyLayout"),
    Rule(DIFFERS, "`retinanet_target_assign`, `rpn_target_assign` of equal overlaps, or of crowds and boxes of other numbers",
         ("retinanet_target_assign", "rpn_target_assign")),
    # ---- gradients
    Rule(GRADIENT, "`yolov3_loss`, two boxes in one cell for one anchor", ("yolov3_loss",)),
    Rule(GRADIENT, "gradient of `dropout` with `is_test`, of `batch_norm` with `is_test`, of `expand` with ExpandTimes",
         ("dropout", "batch_norm", "expand")),
    Rule(GRADIENT, ALL_AXES, theirs="match arity"),
    Rule(GRADIENT, REDUCED, change="in_dtype"),
    Rule(GRADIENT, "`meshgrid` of one vector, gradient of that of six", ("meshgrid",)),
    Rule(GRADIENT, "gradient of `shuffle_channel`", ("shuffle_channel",)),
    Rule(GRADIENT, "gradient of `pad_constant_like` of float64", ("pad_constant_like",)),
    Rule(GRADIENT, "gradient of `prroi_pool` by boxes without area", ("prroi_pool",), why="nan"),
    Rule(GRADIENT, "`sequence_conv`, padding that is trained", ("sequence_conv",)),
    Rule(GRADIENT, "gradient of `assign` of no elements", ("assign",)),
    Rule(GRADIENT, "`lstm_unit`, gradient of the cell alone", ("lstm_unit",)),
    Rule(GRADIENT, "`fused_embedding_seq_pool`, sparse gradient", ("fused_embedding_seq_pool",)),
]
