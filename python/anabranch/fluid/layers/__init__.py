"""The layers: functions that append ops to the default main program and return Variables.

Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand
from .. import core as core
from ..framework import Variable as Variable
from . import rnn as _rnn  # noqa: F401 - imported now: later, it would replace the function

if _TYPE_CHECKING:
    from . import collective as collective
    from . import control_flow as control_flow
    from . import detection as detection
    from . import device as device
    from . import distributions as distributions
    from . import io as io
    from . import layer_function_generator as layer_function_generator
    from . import learning_rate_scheduler as learning_rate_scheduler
    from . import loss as loss
    from . import metric_op as metric_op
    from . import nn as nn
    from . import ops as ops
    from . import sequence_lod as sequence_lod
    from . import tensor as tensor
    from . import utils as utils
    from ._generated_activations import (
        brelu,
        elu,
        gelu,
        hard_shrink,
        hard_sigmoid,
        hard_swish,
        leaky_relu,
        logsigmoid,
        relu,
        relu6,
        selu,
        sigmoid,
        soft_relu,
        softplus,
        softshrink,
        softsign,
        stanh,
        tanh,
        tanh_shrink,
        thresholded_relu,
    )
    from ._generated_elementwise import (
        elementwise_add,
        elementwise_div,
        elementwise_floordiv,
        elementwise_max,
        elementwise_min,
        elementwise_mod,
        elementwise_mul,
        elementwise_pow,
        elementwise_sub,
        equal,
        expand_as,
        greater_equal,
        greater_than,
        less_equal,
        less_than,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
        not_equal,
    )
    from ._generated_functions import (
        abs,
        acos,
        asin,
        atan,
        ceil,
        cos,
        erf,
        exp,
        floor,
        log,
        log1p,
        reciprocal,
        round,
        rsqrt,
        sin,
        sqrt,
        square,
    )
    from ._generated_images import grid_sampler, pixel_shuffle, shuffle_channel, space_to_depth, temporal_shift
    from ._generated_losses import bpr_loss, kldiv_loss, log_loss, rank_loss, sigmoid_cross_entropy_with_logits
    from ._generated_places import (
        gather,
        gather_nd,
        hash,
        index_sample,
        index_select,
        pad,
        pad_constant_like,
        scatter,
        shape,
        size,
        where,
    )
    from ._generated_products import addmm, bmm, kron, mul
    from ._generated_reductions import (
        cumsum,
        has_inf,
        has_nan,
        isfinite,
        mean,
        reduce_all,
        reduce_any,
        reduce_max,
        reduce_mean,
        reduce_min,
        reduce_prod,
        reduce_sum,
        softmax,
    )
    from ._generated_sequences import (
        add_position_encoding,
        gather_tree,
        sequence_concat,
        sequence_enumerate,
        sequence_expand,
        sequence_expand_as,
        sequence_reshape,
        sequence_reverse,
        sequence_scatter,
        sequence_softmax,
    )
    from .activations import maxout, mish, prelu, sign, swish
    from .alignments import ctc_greedy_decoder, edit_distance, warpctc
    from .arrays import array_length, array_read, array_write, create_array, tensor_array_to_tensor
    from .beam_decoder import BeamSearchDecoder
    from .beams import beam_search, beam_search_decode
    from .borders import expand, pad2d
    from .boxes import box_clip, box_coder, iou_similarity, polygon_box_transform, yolo_box
    from .branches import Switch, case, cond, switch_case
    from .callables import Print, py_func
    from .cells import GRUCell, LSTMCell, RNNCell, rnn
    from .chains import chunk_eval, crf_decoding, linear_chain_crf
    from .composed import addcmul, clamp, full, full_like, logsumexp, t
    from .conv import conv2d, conv3d
    from .conv_transpose import conv2d_transpose, conv3d_transpose
    from .copies import assign, cast, sums
    from .create import autoincreased_step_counter, create_global_var, create_parameter, create_tensor
    from .crops import affine_grid, crop, crop_tensor
    from .ctr import continuous_value_model, data_norm, filter_by_instag
    from .decode_helpers import BasicDecoder, DecodeHelper, GreedyEmbeddingHelper, SampleEmbeddingHelper, TrainingHelper
    from .decoding import Decoder, dynamic_decode
    from .deformable import deformable_conv, deformable_roi_pooling
    from .dense import dropout, fc, label_smooth, log_softmax
    from .diagonals import allclose, cross, diag_embed, dist, trace, tril, triu
    from .distributions import Categorical, MultivariateNormalDiag, Normal, Uniform
    from .dynamic_rnn import DynamicRNN
    from .feature_maps import fsp_matrix
    from .feeders import create_py_reader_by_data, double_buffer, py_reader, read_file
    from .fill import (
        diag,
        eye,
        fill_constant,
        fill_constant_batch_size_like,
        linspace,
        ones,
        ones_like,
        range,
        zeros,
        zeros_like,
    )
    from .flips import flip, meshgrid, roll
    from .focus import random_crop, similarity_focus
    from .index import multiplex, reverse, scatter_nd, scatter_nd_add, shard_index
    from .inputs import data
    from .joins import concat, split, stack, unstack
    from .learning_rate_scheduler import (
        cosine_decay,
        exponential_decay,
        inverse_time_decay,
        linear_lr_warmup,
        natural_exp_decay,
        noam_decay,
        piecewise_decay,
        polynomial_decay,
    )
    from .loads import load
    from .lod import lod_append, lod_reset, sequence_mask, sequence_pad, sequence_unpad
    from .loops import While, while_loop
    from .losses.classification import cross_entropy, softmax_with_cross_entropy, teacher_student_sigmoid_loss
    from .losses.ranking import dice_loss, margin_rank_loss, npair_loss
    from .losses.regression import huber_loss, mse_loss, smooth_l1, square_error_cost
    from .matching import bipartite_match, detection_output, multiclass_nms, target_assign
    from .math import clip, clip_by_norm, cos_sim, dot, l2_normalize, matmul, pow, scale, sum
    from .metric import accuracy, auc, mean_iou
    from .norm import affine_channel, batch_norm, group_norm, inplace_abn, instance_norm, layer_norm, lrn
    from .pool import adaptive_pool2d, adaptive_pool3d, pool2d, pool3d
    from .priors import anchor_generator, density_prior_box, prior_box
    from .proposals import box_decoder_and_assign, collect_fpn_proposals, distribute_fpn_proposals, generate_proposals
    from .query import get_tensor_from_selected_rows, increment, is_empty, merge_selected_rows, rank
    from .random import gaussian_random, gaussian_random_batch_size_like, uniform_random, uniform_random_batch_size_like
    from .random_ints import randint, randperm, sampling_id
    from .rank_tables import reorder_lod_tensor_by_rank
    from .recurrent import dynamic_gru, dynamic_lstm, dynamic_lstmp, gru_unit, lstm_unit
    from .resize import image_resize, image_resize_short, resize_bilinear, resize_nearest, resize_trilinear
    from .rois import prroi_pool, psroi_pool, roi_align, roi_perspective_transform, roi_pool
    from .row_branches import IfElse
    from .sampled import center_loss, hsigmoid, nce, sampled_softmax_with_cross_entropy
    from .scores import bilinear_tensor_product, sigmoid_focal_loss
    from .search import argmax, argmin, argsort, topk
    from .sequence import row_conv, sequence_conv, sequence_first_step, sequence_last_step, sequence_pool
    from .sequence_rows import sequence_slice
    from .shapes import flatten, reshape, squeeze, transpose, unsqueeze
    from .short_names import arange, elementwise_equal, interpolate, nonzero, randn
    from .slices import slice, strided_slice
    from .spectral import spectral_norm
    from .ssd import multi_box_head, ssd_loss
    from .stacked import lstm
    from .static_rnn import StaticRNN
    from .suppression import detection_map, locality_aware_nms, matrix_nms, retinanet_detection_output
    from .tables import embedding, one_hot
    from .targets import generate_mask_labels, generate_proposal_labels, retinanet_target_assign, rpn_target_assign
    from .unfolding import im2sequence, unfold
    from .values import unique, unique_with_counts
    from .yolo_loss import yolov3_loss

__all__ = [
    "BasicDecoder", "BeamSearchDecoder", "Categorical", "DecodeHelper", "Decoder", "DynamicRNN", "GRUCell",
    "GreedyEmbeddingHelper", "IfElse", "LSTMCell", "MultivariateNormalDiag", "Normal", "Print", "RNNCell",
    "SampleEmbeddingHelper", "StaticRNN", "Switch", "TrainingHelper", "Uniform", "While", "abs", "accuracy", "acos",
    "adaptive_pool2d", "adaptive_pool3d", "add_position_encoding", "addcmul", "addmm", "affine_channel",
    "affine_grid", "allclose", "anchor_generator", "arange", "argmax", "argmin", "argsort", "array_length",
    "array_read", "array_write", "asin", "assign", "atan", "auc", "autoincreased_step_counter", "batch_norm",
    "beam_search", "beam_search_decode", "bilinear_tensor_product", "bipartite_match", "bmm", "box_clip", "box_coder",
    "box_decoder_and_assign", "bpr_loss", "brelu", "case", "cast", "ceil", "center_loss", "chunk_eval", "clamp",
    "clip", "clip_by_norm", "collect_fpn_proposals", "concat", "cond", "continuous_value_model", "conv2d",
    "conv2d_transpose", "conv3d", "conv3d_transpose", "cos", "cos_sim", "cosine_decay", "create_array",
    "create_global_var", "create_parameter", "create_py_reader_by_data", "create_tensor", "crf_decoding", "crop",
    "crop_tensor", "cross", "cross_entropy", "ctc_greedy_decoder", "cumsum", "data", "data_norm", "deformable_conv",
    "deformable_roi_pooling", "density_prior_box", "detection_map", "detection_output", "diag", "diag_embed",
    "dice_loss", "dist", "distribute_fpn_proposals", "dot", "double_buffer", "dropout", "dynamic_decode",
    "dynamic_gru", "dynamic_lstm", "dynamic_lstmp", "edit_distance", "elementwise_add", "elementwise_div",
    "elementwise_equal", "elementwise_floordiv", "elementwise_max", "elementwise_min", "elementwise_mod",
    "elementwise_mul", "elementwise_pow", "elementwise_sub", "elu", "embedding", "equal", "erf", "exp", "expand",
    "expand_as", "exponential_decay", "eye", "fc", "fill_constant", "fill_constant_batch_size_like",
    "filter_by_instag", "flatten", "flip", "floor", "fsp_matrix", "full", "full_like", "gather", "gather_nd",
    "gather_tree", "gaussian_random", "gaussian_random_batch_size_like", "gelu", "generate_mask_labels",
    "generate_proposal_labels", "generate_proposals", "get_tensor_from_selected_rows", "greater_equal",
    "greater_than", "grid_sampler", "group_norm", "gru_unit", "hard_shrink", "hard_sigmoid", "hard_swish", "has_inf",
    "has_nan", "hash", "hsigmoid", "huber_loss", "im2sequence", "image_resize", "image_resize_short", "increment",
    "index_sample", "index_select", "inplace_abn", "instance_norm", "interpolate", "inverse_time_decay",
    "iou_similarity", "is_empty", "isfinite", "kldiv_loss", "kron", "l2_normalize", "label_smooth", "layer_norm",
    "leaky_relu", "less_equal", "less_than", "linear_chain_crf", "linear_lr_warmup", "linspace", "load",
    "locality_aware_nms", "lod_append", "lod_reset", "log", "log1p", "log_loss", "log_softmax", "logical_and",
    "logical_not", "logical_or", "logical_xor", "logsigmoid", "logsumexp", "lrn", "lstm", "lstm_unit",
    "margin_rank_loss", "matmul", "matrix_nms", "maxout", "mean", "mean_iou", "merge_selected_rows", "meshgrid",
    "mish", "mse_loss", "mul", "multi_box_head", "multiclass_nms", "multiplex", "natural_exp_decay", "nce",
    "noam_decay", "nonzero", "not_equal", "npair_loss", "one_hot", "ones", "ones_like", "pad", "pad2d",
    "pad_constant_like", "piecewise_decay", "pixel_shuffle", "polygon_box_transform", "polynomial_decay", "pool2d",
    "pool3d", "pow", "prelu", "prior_box", "prroi_pool", "psroi_pool", "py_func", "py_reader", "randint", "randn",
    "random_crop", "randperm", "range", "rank", "rank_loss", "read_file", "reciprocal", "reduce_all", "reduce_any",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "relu", "relu6",
    "reorder_lod_tensor_by_rank", "reshape", "resize_bilinear", "resize_nearest", "resize_trilinear",
    "retinanet_detection_output", "retinanet_target_assign", "reverse", "rnn", "roi_align",
    "roi_perspective_transform", "roi_pool", "roll", "round", "row_conv", "rpn_target_assign", "rsqrt",
    "sampled_softmax_with_cross_entropy", "sampling_id", "scale", "scatter", "scatter_nd", "scatter_nd_add", "selu",
    "sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
    "sequence_first_step", "sequence_last_step", "sequence_mask", "sequence_pad", "sequence_pool", "sequence_reshape",
    "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad", "shape",
    "shard_index", "shuffle_channel", "sigmoid", "sigmoid_cross_entropy_with_logits", "sigmoid_focal_loss", "sign",
    "similarity_focus", "sin", "size", "slice", "smooth_l1", "soft_relu", "softmax", "softmax_with_cross_entropy",
    "softplus", "softshrink", "softsign", "space_to_depth", "spectral_norm", "split", "sqrt", "square",
    "square_error_cost", "squeeze", "ssd_loss", "stack", "stanh", "strided_slice", "sum", "sums", "swish",
    "switch_case", "t", "tanh", "tanh_shrink", "target_assign", "teacher_student_sigmoid_loss", "temporal_shift",
    "tensor_array_to_tensor", "thresholded_relu", "topk", "trace", "transpose", "tril", "triu", "unfold",
    "uniform_random", "uniform_random_batch_size_like", "unique", "unique_with_counts", "unsqueeze", "unstack",
    "warpctc", "where", "while_loop", "yolo_box", "yolov3_loss", "zeros", "zeros_like",
]

_on_demand.give(__name__, {
    "._generated_activations":
        "brelu elu gelu hard_shrink hard_sigmoid hard_swish leaky_relu logsigmoid relu relu6 selu sigmoid soft_relu "
        "softplus softshrink softsign stanh tanh tanh_shrink thresholded_relu",
    "._generated_elementwise":
        "elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min elementwise_mod "
        "elementwise_mul elementwise_pow elementwise_sub equal expand_as greater_equal greater_than less_equal "
        "less_than logical_and logical_not logical_or logical_xor not_equal",
    "._generated_functions":
        "abs acos asin atan ceil cos erf exp floor log log1p reciprocal round rsqrt sin sqrt square",
    "._generated_images": "grid_sampler pixel_shuffle shuffle_channel space_to_depth temporal_shift",
    "._generated_losses": "bpr_loss kldiv_loss log_loss rank_loss sigmoid_cross_entropy_with_logits",
    "._generated_places":
        "gather gather_nd hash index_sample index_select pad pad_constant_like scatter shape size where",
    "._generated_products": "addmm bmm kron mul",
    "._generated_reductions":
        "cumsum has_inf has_nan isfinite mean reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod "
        "reduce_sum softmax",
    "._generated_sequences":
        "add_position_encoding gather_tree sequence_concat sequence_enumerate sequence_expand sequence_expand_as "
        "sequence_reshape sequence_reverse sequence_scatter sequence_softmax",
    ".activations": "maxout mish prelu sign swish",
    ".alignments": "ctc_greedy_decoder edit_distance warpctc",
    ".arrays": "array_length array_read array_write create_array tensor_array_to_tensor",
    ".beam_decoder": "BeamSearchDecoder",
    ".beams": "beam_search beam_search_decode",
    ".borders": "expand pad2d",
    ".boxes": "box_clip box_coder iou_similarity polygon_box_transform yolo_box",
    ".branches": "Switch case cond switch_case",
    ".callables": "Print py_func",
    ".cells": "GRUCell LSTMCell RNNCell rnn",
    ".chains": "chunk_eval crf_decoding linear_chain_crf",
    ".composed": "addcmul clamp full full_like logsumexp t",
    ".conv": "conv2d conv3d",
    ".conv_transpose": "conv2d_transpose conv3d_transpose",
    ".copies": "assign cast sums",
    ".create": "autoincreased_step_counter create_global_var create_parameter create_tensor",
    ".crops": "affine_grid crop crop_tensor",
    ".ctr": "continuous_value_model data_norm filter_by_instag",
    ".decode_helpers": "BasicDecoder DecodeHelper GreedyEmbeddingHelper SampleEmbeddingHelper TrainingHelper",
    ".decoding": "Decoder dynamic_decode",
    ".deformable": "deformable_conv deformable_roi_pooling",
    ".dense": "dropout fc label_smooth log_softmax",
    ".diagonals": "allclose cross diag_embed dist trace tril triu",
    ".distributions": "Categorical MultivariateNormalDiag Normal Uniform",
    ".dynamic_rnn": "DynamicRNN",
    ".feature_maps": "fsp_matrix",
    ".feeders": "create_py_reader_by_data double_buffer py_reader read_file",
    ".fill": "diag eye fill_constant fill_constant_batch_size_like linspace ones ones_like range zeros zeros_like",
    ".flips": "flip meshgrid roll",
    ".focus": "random_crop similarity_focus",
    ".index": "multiplex reverse scatter_nd scatter_nd_add shard_index",
    ".inputs": "data",
    ".joins": "concat split stack unstack",
    ".learning_rate_scheduler":
        "cosine_decay exponential_decay inverse_time_decay linear_lr_warmup natural_exp_decay noam_decay "
        "piecewise_decay polynomial_decay",
    ".loads": "load",
    ".lod": "lod_append lod_reset sequence_mask sequence_pad sequence_unpad",
    ".loops": "While while_loop",
    ".matching": "bipartite_match detection_output multiclass_nms target_assign",
    ".math": "clip clip_by_norm cos_sim dot l2_normalize matmul pow scale sum",
    ".metric": "accuracy auc mean_iou",
    ".norm": "affine_channel batch_norm group_norm inplace_abn instance_norm layer_norm lrn",
    ".pool": "adaptive_pool2d adaptive_pool3d pool2d pool3d",
    ".priors": "anchor_generator density_prior_box prior_box",
    ".proposals": "box_decoder_and_assign collect_fpn_proposals distribute_fpn_proposals generate_proposals",
    ".query": "get_tensor_from_selected_rows increment is_empty merge_selected_rows rank",
    ".random": "gaussian_random gaussian_random_batch_size_like uniform_random uniform_random_batch_size_like",
    ".random_ints": "randint randperm sampling_id",
    ".rank_tables": "reorder_lod_tensor_by_rank",
    ".recurrent": "dynamic_gru dynamic_lstm dynamic_lstmp gru_unit lstm_unit",
    ".resize": "image_resize image_resize_short resize_bilinear resize_nearest resize_trilinear",
    ".rois": "prroi_pool psroi_pool roi_align roi_perspective_transform roi_pool",
    ".row_branches": "IfElse",
    ".sampled": "center_loss hsigmoid nce sampled_softmax_with_cross_entropy",
    ".scores": "bilinear_tensor_product sigmoid_focal_loss",
    ".search": "argmax argmin argsort topk",
    ".sequence": "row_conv sequence_conv sequence_first_step sequence_last_step sequence_pool",
    ".sequence_rows": "sequence_slice",
    ".shapes": "flatten reshape squeeze transpose unsqueeze",
    ".short_names": "arange elementwise_equal interpolate nonzero randn",
    ".slices": "slice strided_slice",
    ".spectral": "spectral_norm",
    ".ssd": "multi_box_head ssd_loss",
    ".stacked": "lstm",
    ".static_rnn": "StaticRNN",
    ".suppression": "detection_map locality_aware_nms matrix_nms retinanet_detection_output",
    ".tables": "embedding one_hot",
    ".targets": "generate_mask_labels generate_proposal_labels retinanet_target_assign rpn_target_assign",
    ".unfolding": "im2sequence unfold",
    ".values": "unique unique_with_counts",
    ".yolo_loss": "yolov3_loss",
    ".losses.classification": "cross_entropy softmax_with_cross_entropy teacher_student_sigmoid_loss",
    ".losses.ranking": "dice_loss margin_rank_loss npair_loss",
    ".losses.regression": "huber_loss mse_loss smooth_l1 square_error_cost",
})
