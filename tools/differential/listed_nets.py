"""Rules of listed.py for operators of nets: images, detection, sequences, tables, quantisation, blocks, files."""

import listed_when as when
import numpy as np
from listed import DIFFERS, GRADIENT, RAISES, WORKS, Rule
from listed_refusals import LIMITED, REFUSED_HERE, REFUSED_THERE, TRANSPOSED
from when_nets import (
    adaptive,
    counted_by_background,
    either_below_0,
    empty_on_a_level,
    has_blank,
    has_empty,
    has_levels,
    is_cascade,
    last_images_have_nothing,
    levels,
    makes_nothing,
    other_scores,
    repeated,
    same_rows,
    scaled_or_crowded,
    scores_of_nothing,
    shares_a_cell,
    shows_nothing,
    some,
    sources_do_not_fit,
    spans_floats,
    ties_in,
    turned,
    widths_differ,
)

TIES = "equal values in `top_k`, `argsort`, `similarity_focus`, `matrix_nms`, `generate_proposals`"
BLANK = "`warpctc` with a label that equals the blank"
FAINT = "`warpctc` with probabilities below 1e-38"
DTYPE = "a dtype without a kernel in 1.8.5, mostly float64 or integers"
COUNTERS = (
    "the state that an operator updates in place, if the script sets it to a tensor with sequences or of another shape"
)
NOTHING = "operators on empty tensors, on sequences without rows, or on parameters with an extent of 0"
TAKEN = (
    "arguments with an extra or a missing axis of extent 1, with extra columns, with a lower rank, or "
    "with a known extent where 1.8.5 expects an unknown one, or an unknown one where it expects a known one"
)
FREE = "attributes that 1.8.5 restricts, and inputs that it requires although they have no effect"
MEANT = "arguments that 1.8.5 reads only in part, or beyond their end"
OUTSIDE = "average pooling with `pool2d`, `pool3d` over a window outside the image (`ceil_mode`)"
NO_PIXELS = (
    "`unpool` with negative positions; `unfold`, `max_pool2d_with_index` with a window or stride of 0; `image_resize`, "
    "`fsp_matrix`, `pool2d`, `pool3d` with images that have no pixels"
)
ADAPTIVE = "the operators `pool2d`, `pool3d` with `adaptive`"
MIXED = "the operator `pool3d` with NHWC as the layout"
INDEXED = "gradient of `max_pool2d_with_index`, `max_pool3d_with_index` through windows outside the image"
IM2SEQUENCE = "`im2sequence` with an `input_image_size` larger than the image"
IM2SEQUENCE_GRAD = "gradient of `im2sequence` with `input_image_size`"
DEFORMED = "`deformable_conv` with an `im2col_step` other than 1 (the default is 64)"
POLYGONS = "`multiclass_nms` with polygons that intersect themselves"
ANY_ID = "the ids of `embedding`"
COUNTS = "the classes that `detection_map` counts"
SCORES = "the state of `detection_map`, if the scores of TruePos and FalsePos differ"
PARTS = "gradient of `deformable_roi_pooling` with a `part_size` of two different numbers"
BATCHES = (
    "`fsp_matrix` with two batches of different sizes; `grid_sampler`, `affine_grid` with shapes that do not match"
)
TAGGED = "`crf_decoding` with labels that have no sequences"
CASCADE = "`generate_proposal_labels` with `is_cascade_rcnn=True`"
COLLECTED = "`collect_fpn_proposals` with equal scores; `collect_fpn_proposals` with a `post_nms_topN` of 0"
NO_IMAGES = (
    "sequences of the results of `mine_hard_examples`, `matrix_nms`, `multiclass_nms`, `generate_proposals` "
    "without images"
)
CHOSEN = (
    "`retinanet_target_assign`, `rpn_target_assign` with equal overlaps, or with fewer or more crowd flags than boxes"
)
IDENTITY = "`attention_lstm`, `fusion_lstm`, `fused_embedding_fc_lstm` with identity as an activation"
EMPTY = "`fusion_gru`, `fusion_lstm`, `fused_embedding_fc_lstm` with empty sequences; `fusion_gru` with `origin_mode`"
NO_GRADIENT = "gradient of `dropout` with `is_test`, of `batch_norm` with `is_test`, of `expand` with ExpandTimes"
CARRIED = "sequences of the gradients of `roi_perspective_transform`, `linear_chain_crf`, `tensor_array_to_tensor`"
OF_LEVELS = (
    "`sequence_reverse`, `sequence_conv`, `sequence_pad`, `sequence_enumerate`, `dynamic_lstm`, `dynamic_gru` with "
    "several LoD levels, `sequence_pool` with three"
)
APPENDED = "`lod_append` to a tensor that has sequences"
TIMES = "sequences of `expand` with ExpandTimes, if the first number of `expand_times` is not 1"
UNREAD = "gradient of a tensor array with elements that are never read"
TREE = "gradient of `tree_conv` with respect to the nodes, if `output_size` or `num_filters` is above 1"
INSTAG = "`filter_by_instag` with more than two axes, or with tags of several LoD levels"
FP16 = "`save_as_fp16`, `load_as_fp16` for dtypes other than float32"
RANGE = "a scale of 0 or below in `fake_quantize_*`; a sum of squares of 0 in `data_norm`"
BY_IMAGE = ("distribute_fpn_proposals", "generate_mask_labels", "generate_proposal_labels")
BY_IMAGE += ("reorder_lod_tensor_by_rank", "retinanet_target_assign", "rpn_target_assign")
INTERPOLATIONS = ("bilinear_interp", "nearest_interp", "trilinear_interp")
WINDOWS = ("conv2d", "conv3d", "depthwise_conv2d", "deformable_conv", "deformable_conv_v1", "im2sequence", "unfold")
NMS = ("multiclass_nms", "multiclass_nms2", "locality_aware_nms")
COUNTED = (
    "batch_norm",
    "inplace_abn",
    "fake_quantize_range_abs_max",
    "fake_quantize_dequantize_moving_average_abs_max",
    "fake_quantize_moving_average_abs_max",
    "moving_average_abs_max_scale",
)
WITH_IMAGES = ("mine_hard_examples", "matrix_nms", "generate_proposals", *NMS)
FUSED = ("fusion_gru", "fusion_lstm", "fused_embedding_fc_lstm")
POOLED = ("fusion_seqpool_concat", "fusion_seqpool_cvm_concat")
ASSIGNED = ("retinanet_target_assign", "rpn_target_assign")

CHANNELS_LAST = when.has(lambda a: a["data_format"] == "NHWC")
COMPARED = "`edit_distance`, if the two inputs have different numbers of sequences"
COUNTED_BACK = "`slice`, `strided_slice` with axes below 0"
AXIS_BELOW_0 = when.has(lambda a: min(a["axes"]) < 0)

RULES = [
    # ---- images
    Rule(DIFFERS, OUTSIDE, ("pool2d", "pool3d"), why="0.0, not -?nan"),
    Rule(DIFFERS, ADAPTIVE, ("pool2d", "pool3d"), when=adaptive),
    *[Rule(kind, MIXED, ("pool3d",), when=CHANNELS_LAST) for kind in (DIFFERS, GRADIENT)],
    Rule(GRADIENT, ADAPTIVE, ("pool2d", "pool3d"), when=adaptive),
    Rule(RAISES, ADAPTIVE, ("pool2d", "pool3d"), ours="must hold images with elements", when=adaptive),
    Rule(RAISES, NO_PIXELS, ("pool2d", "pool3d"), ours="must hold images with elements"),
    Rule(
        GRADIENT,
        INDEXED,
        ("max_pool2d_with_index", "max_pool3d_with_index"),
        when=when.has(lambda a: any(p > 0 for p in a.get("paddings", []))),
    ),
    Rule(
        DIFFERS,
        "`spp` with average pooling, if a level has more windows than the image has pixels",
        ("spp",),
        why="nan, not",
    ),
    Rule(GRADIENT, "gradient of `spp`", ("spp",), theirs="out of bound"),
    *[
        Rule(kind, DEFORMED, ("deformable_conv", "deformable_conv_v1"), when=when.has(lambda a: a["im2col_step"] != 1))
        for kind in (DIFFERS, GRADIENT)
    ],
    Rule(RAISES, BATCHES, ("fsp",), ours="Y must be"),
    Rule(DIFFERS, IM2SEQUENCE, ("im2sequence",), why="shape", when=some("Y", lambda y: True)),
    Rule(GRADIENT, IM2SEQUENCE_GRAD, ("im2sequence",), when=some("Y", lambda y: True)),
    Rule(
        DIFFERS,
        "`quantize` with three or more axes to NHWC",
        ("quantize",),
        when=when.both(when.has(lambda a: a.get("output_format") == "NHWC"), some("Input", lambda x: x.ndim > 2)),
    ),
    Rule(
        DIFFERS,
        "`quantize`, `requantize` of infinity",
        ("requantize",),
        when=when.has(lambda a: a.get("Scale_in") == 0),
    ),
    Rule(DIFFERS, RANGE, ("data_norm",), why="inf", when=some("BatchSquareSum", lambda s: (s == 0).any())),
    Rule(DIFFERS, RANGE, ("fake_quantize_range_abs_max",), when=some("InScale", lambda s: (s <= 0).any())),
    Rule(DIFFERS, RANGE, COUNTED[3:], when=either_below_0),
    Rule(DIFFERS, COUNTERS, COUNTED, when=when.either(when.only_sequences, when.only_shape)),
    Rule(DIFFERS, COUNTERS, ("inplace_abn",), why=r"^(mean|variance)0: sequences \[\], not"),
    Rule(GRADIENT, "gradient of `shuffle_channel`", ("shuffle_channel",), why="gradient of x0@GRAD: -?[0-9]"),
    Rule(GRADIENT, NO_GRADIENT, ("dropout", "batch_norm"), theirs="is_test"),
    Rule(GRADIENT, "gradient of `lrn` with `is_test`", ("lrn",), theirs="is_test"),
    *[
        Rule(kind, TAKEN, ("dropout",), theirs="num_col_dims", when=some("X", lambda x: x.ndim == 1))
        for kind in (WORKS, GRADIENT)
    ],
    Rule(WORKS, NOTHING, (*BY_IMAGE, "row_conv"), theirs="begin_idx", when=empty_on_a_level),
    Rule(WORKS, "`inplace_abn` into a variable other than `input`", ("inplace_abn",), theirs="not inplaced"),
    Rule(WORKS, "`requantize` with a tensor that does not have 4 axes", ("requantize",), theirs="memory descriptor"),
    Rule(WORKS, DTYPE, ("lookup_sparse_table",), theirs="only support FP32"),
    # ---- detection
    Rule(WORKS, "`psroi_pool` with one output channel", ("psroi_pool",), theirs="output_channels|output channel"),
    Rule(
        RAISES,
        "`roi_align`, `prroi_pool`, `roi_pool` with integer input",
        ("roi_align", "prroi_pool", "roi_pool"),
        ours="are kernels",
    ),
    Rule(GRADIENT, PARTS, ("deformable_psroi_pooling",), when=when.has(lambda a: len(set(a.get("part_size", []))) > 1)),
    Rule(GRADIENT, "gradient of `prroi_pool` with respect to boxes without area", ("prroi_pool",), why="nan"),
    Rule(
        GRADIENT,
        "`yolov3_loss` with two boxes in one cell for one anchor",
        ("yolov3_loss",),
        why="of x0",
        when=shares_a_cell,
    ),
    Rule(DIFFERS, POLYGONS, NMS, when=some("BBoxes", lambda b: b.shape[-1] > 4)),
    Rule(DIFFERS, "`target_assign` with `negative_indices` and K above 1", ("target_assign",), why="outweight"),
    Rule(
        DIFFERS,
        "`box_coder` with float64 input and `variance` as an attribute",
        ("box_coder",),
        when=levels("TargetBox", 1),
    ),
    Rule(
        DIFFERS,
        "`box_coder` with float64 input and `variance` as an attribute",
        ("box_coder",),
        when=when.both(when.has(lambda a: a.get("variance")), some("PriorBox", lambda p: p.dtype == np.float64)),
    ),
    Rule(DIFFERS, COUNTS, ("detection_map",), why="map.out", when=counted_by_background),
    Rule(DIFFERS, SCORES, ("detection_map",), when=other_scores),
    Rule(DIFFERS, MEANT, ("detection_map",), when=when.either(levels("DetectRes", 2), levels("Label", 2))),
    Rule(DIFFERS, "the state of `detection_map` without detections", ("detection_map",), why="shape|sequences"),
    Rule(
        DIFFERS,
        "boxes in `detection_map` whose maximum is below their minimum",
        ("detection_map",),
        why="accum(true|false)pos|map.out",
        when=when.either(some("DetectRes", turned), some("Label", turned)),
    ),
    Rule(
        DIFFERS,
        "the order of the results of `generate_proposals` with an `nms_thresh` of 0 or below",
        ("generate_proposals",),
        when=when.both(when.has(lambda a: a["nms_thresh"] <= 0), same_rows),
    ),
    Rule(DIFFERS, COLLECTED, ("collect_fpn_proposals",), when=ties_in("MultiLevelScores")),
    Rule(DIFFERS, TIES, ("similarity_focus",), when=ties_in("X")),
    Rule(DIFFERS, TIES, ("matrix_nms", "generate_proposals"), when=ties_in("Scores")),
    Rule(DIFFERS, COLLECTED, ("collect_fpn_proposals",), when=when.has(lambda a: a.get("post_nms_topN") == 0)),
    Rule(DIFFERS, COLLECTED, ("collect_fpn_proposals",), why="sequences", when=last_images_have_nothing),
    Rule(DIFFERS, CASCADE, ("generate_proposal_labels",), when=when.both(when.has(is_cascade), scaled_or_crowded)),
    Rule(WORKS, CHOSEN, ("rpn_target_assign",), theirs="number of sampled (scores|bboxes)"),
    Rule(DIFFERS, NO_IMAGES, WITH_IMAGES, why=r"sequences \[\], not \[\[0\]\]"),
    Rule(
        DIFFERS,
        "`generate_mask_labels` with an image that has a scale of 0",
        ("generate_mask_labels",),
        why="not -?nan",
    ),
    Rule(DIFFERS, CHOSEN, ASSIGNED),
    # ---- sequences
    Rule(
        DIFFERS,
        "`chunk_eval` with a `seq_length` of shape [1, N]",
        ("chunk_eval",),
        when=some("SeqLength", lambda n: n.ndim == 2 and n.shape[0] < n.size),
    ),
    Rule(WORKS, NOTHING, ("im2sequence",), theirs="begin_idx"),
    Rule(WORKS, NOTHING, ("beam_search",), theirs="is not right", when=when.empty),
    Rule(
        WORKS,
        "`cos_sim` with different numbers of rows",
        ("cos_sim",),
        theirs="1st dimension of Input",
    ),
    Rule(
        GRADIENT,
        "`cos_sim` with different numbers of rows",
        ("cos_sim",),
        theirs="1st dimension of Input",
        why="gradient accepted here",
        when=when.unknown,
    ),
    Rule(
        WORKS,
        "parameters of `label_smooth`, `sequence_conv`, `attention_lstm` with an unknown number of rows",
        ("label_smooth", "sequence_conv", "attention_lstm"),
        theirs="number of elements in input|shape is not consistent|AttentionBias shapes must be",
        when=when.unknown,
    ),
    Rule(WORKS, COUNTED_BACK, ("slice",), theirs="end should greater", when=AXIS_BELOW_0),
    *[Rule(kind, COUNTED_BACK, ("slice",), when=AXIS_BELOW_0) for kind in (DIFFERS, GRADIENT)],
    Rule(DIFFERS, "`ctc_greedy_decoder`, `ctc_align`, if no token of the batch is left", ("ctc_align",), why="shape"),
    Rule(DIFFERS, "`fusion_seqpool_concat` with empty sequences", POOLED, when=has_empty),
    *[Rule(kind, FAINT, ("warpctc",), when=some("Logits", spans_floats)) for kind in (DIFFERS, GRADIENT)],
    Rule(WORKS, TAGGED, ("crf_decoding",), theirs=r"Input\(label\) should be a sequence"),
    Rule(RAISES, COMPARED, ("edit_distance",), ours="the same number of sequences"),
    Rule(DIFFERS, "`warpctc` with empty sequences", ("warpctc",), why="inf"),
    Rule(WORKS, "`warpctc` with empty sequences", ("warpctc",), theirs="workspace_size", when=has_empty),
    Rule(DIFFERS, BLANK, ("warpctc",), why="inf", when=has_blank),
    Rule(GRADIENT, BLANK, ("warpctc",), when=has_blank),
    Rule(WORKS, OF_LEVELS, ("gru",), theirs="one level", when=levels("Input", 2)),
    Rule(WORKS, OF_LEVELS, ("sequence_pad",), theirs="lod info mismatches", when=levels("X", 2)),
    Rule(DIFFERS, EMPTY, FUSED, when=has_empty),
    Rule(DIFFERS, EMPTY, ("fusion_gru",), when=when.has(lambda a: a.get("origin_mode"))),
    Rule(DIFFERS, IDENTITY, ("attention_lstm", *FUSED), when=when.has(lambda a: "identity" in a.values())),
    Rule(
        DIFFERS,
        "`match_matrix_tensor` with two inputs of different widths",
        ("match_matrix_tensor",),
        when=widths_differ,
    ),
    *[Rule(kind, APPENDED, ("lod_reset",), when=levels("X", 1)) for kind in (DIFFERS, GRADIENT)],
    Rule(GRADIENT, "gradient of `lstm_unit` through the cell alone", ("lstm_unit",), why="gradients of .*not of"),
    Rule(
        GRADIENT,
        "`sequence_conv` with a `padding_start` above 0",
        ("sequence_conv",),
        why="of filter",
        when=when.has(lambda a: a.get("contextStart", 0) > 0),
    ),
    Rule(GRADIENT, "gradient of `sequence_conv` for its padding", ("sequence_conv",), when=some("PaddingData", np.any)),
    Rule(
        GRADIENT,
        'gradient of `sequence_pool` with `pool_type="max"` and `is_test`',
        ("sequence_pool",),
        theirs="index and output|holds no memory",
        when=when.has(lambda a: a.get("is_test")),
    ),
    Rule(GRADIENT, TREE, ("tree_conv",), why="of nodesvector", when=some("Filter", lambda f: f.shape[2:] != (1, 1))),
    Rule(GRADIENT, "`cvm`, if CVM has more rows than there are sequences", ("cvm",), ours="cvm_grad: CVM must be"),
    Rule(
        GRADIENT, CARRIED, ("roi_perspective_transform", "linear_chain_crf", "tensor_array_to_tensor"), why="sequences"
    ),
    # ---- tables
    Rule(WORKS, ANY_ID, ("split_selected_rows",), theirs=r"x.height = -1"),
    Rule(
        GRADIENT,
        "sparse gradient of `fused_embedding_seq_pool`",
        ("fused_embedding_seq_pool",),
        why="rows",
        when=when.has(lambda a: a.get("is_sparse")),
    ),
    Rule(GRADIENT, "the table of `pyramid_hash`", ("pyramid_hash",), why="w0@GRAD"),
    Rule(DIFFERS, "DropPos of `pyramid_hash`", ("pyramid_hash",), why="droppos"),
    Rule(DIFFERS, INSTAG, ("filter_by_instag",), when=some("Ins", lambda x: x.ndim != 2)),
    Rule(DIFFERS, INSTAG, ("filter_by_instag",), when=levels("Ins_tag", 2)),
    Rule(
        DIFFERS,
        "IndexMap of `filter_by_instag` for empty sequences",
        ("filter_by_instag",),
        why="indexmap",
        when=has_empty,
    ),
    Rule(DIFFERS, "sparse rows of more than two axes", ("merge_selected_rows", "split_ids"), when=when.wide_rows),
    Rule(DIFFERS, NOTHING, ("merge_selected_rows", "unpool"), why="dtype|shape", when=when.empty),
    Rule(DIFFERS, "`split_ids` with sparse rows whose ids repeat", ("split_ids",), when=repeated),
    Rule(DIFFERS, MEANT, ("beam_search_decode",), when=sources_do_not_fit),
    Rule(DIFFERS, "`beam_search` with scores that are NaN", ("beam_search",), when=scores_of_nothing),
    Rule(DIFFERS, MEANT, ("filter_by_instag",), when=some("Filter_tag", lambda t: t.ndim > 1)),
    Rule(
        DIFFERS,
        "`lookup_sparse_table` with ids that have more than two axes",
        ("lookup_sparse_table",),
        why="shape",
        when=some("Ids", lambda i: i.ndim > 2),
    ),
    Rule(
        DIFFERS,
        "`tensor_array_to_tensor` with vectors and an axis that they do not have",
        ("tensor_array_to_tensor",),
        why="index:",
    ),
    Rule(RAISES, NOTHING, INTERPOLATIONS, ours="must hold images with elements"),
    Rule(
        RAISES,
        MEANT,
        ("pad2d", "cos_sim", "sum", "gather_nd", "sequence_scatter", "retinanet_target_assign", *TRANSPOSED),
        ours=(
            "must agree in|must be equal|must hold int|an output extent above 0|a window with elements|"
            "Anchor must have at least one row|must not cut"
        ),
        when=when.empty,
    ),
    Rule(RAISES, MEANT, TRANSPOSED, ours="an output extent above 0", when=shows_nothing),
    Rule(RAISES, MEANT, ("cos_sim",), ours="must agree in|2 to 9 axes", when=when.unknown),
    Rule(WORKS, FREE, ("maxout",), theirs="should be divisible", when=when.has(lambda a: a["axis"] < 0)),
    Rule(WORKS, NOTHING, ("spectral_norm", "shard_index"), theirs="should be (equal|1)", when=when.empty),
    Rule(DIFFERS, TIMES, ("expand",), when=when.both(when.only_sequences, when.given("ExpandTimes"))),
    # ---- clusters, blocks, files
    Rule(
        GRADIENT,
        "gradient of an Input that a `conditional_block` does not read",
        ("conditional_block",),
        why="gradients of .*, not of",
    ),
    Rule(GRADIENT, NOTHING, ("select_input", "shrink_rnn_memory"), why=r"not of \[\]", when=makes_nothing),
    Rule(GRADIENT, UNREAD, ("read_from_array",), theirs="no memory"),
    Rule(GRADIENT, UNREAD, ("read_from_array",), why=r"not of \['x"),
    Rule(DIFFERS, "an empty side of `split_lod_tensor`", ("split_lod_tensor",), why=r"sequences \[\[0\]"),
    Rule(DIFFERS, FP16, ("save", "save_combine", "load", "load_combine"), why="dtype float64|dtype int|dtype bool"),
    Rule(WORKS, FREE, ("fusion_seqconv_eltadd_relu",), theirs="bias is NULL", when=when.empty),
    # ---- of all operators
    Rule(WORKS, TAKEN, theirs=r"but received [^!=]*:-1 != ", when=when.unknown),
    Rule(WORKS, TAKEN, theirs=r"\b(one|1) level|L[oO]D level", when=has_levels(2)),
    Rule(RAISES, MEANT, (*WINDOWS, *TRANSPOSED), ours=r"(dilations|strides|paddings|kernels|kernel_sizes) must be"),
    Rule(RAISES, MEANT, ("fill_constant_batch_size_like",), ours="at least 0|is negative", when=shows_nothing),
    Rule(RAISES, MEANT, ours=r"and Param must hold one dtype"),
    Rule(RAISES, MEANT, ours=r"must divide the", when=when.empty),
    Rule(RAISES, MEANT, ours=r"must have a sequence for each of the \d+ (images|rows)"),
    Rule(RAISES, MEANT, ours=r"at least one|extents above 0|must not be empty", when=when.empty),
    # ---- for each operator the text that must be found in our error, or in that of Fluid 1.8.5
    *[Rule(RAISES, MEANT, (op,), ours=pattern) for op, pattern in REFUSED_HERE.items()],
    *[Rule(WORKS, TAKEN, (op,), theirs=pattern) for op, pattern in REFUSED_THERE.items()],
    *[Rule(WORKS, FREE, (op,), theirs=pattern) for op, pattern in LIMITED.items()],
]
