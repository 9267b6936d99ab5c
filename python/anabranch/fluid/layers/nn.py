"""Names of Fluid's ``fluid.layers.nn`` that are available here. Written by tools/generate_modules.py."""
from typing import TYPE_CHECKING as _TYPE_CHECKING

from ... import _on_demand

if _TYPE_CHECKING:
    from ._generated_activations import (
        brelu,
        elu,
        hard_sigmoid,
        hard_swish,
        leaky_relu,
        relu,
        relu6,
        selu,
        soft_relu,
        stanh,
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
        expand_as,
        logical_and,
        logical_not,
        logical_or,
        logical_xor,
    )
    from ._generated_functions import log, log1p
    from ._generated_images import grid_sampler, pixel_shuffle, shuffle_channel, space_to_depth, temporal_shift
    from ._generated_losses import log_loss
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
    from ._generated_products import addmm, bmm, mul
    from ._generated_reductions import (
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
    from ._generated_sequences import add_position_encoding, gather_tree
    from .activations import maxout, mish, prelu, sign, swish
    from .alignments import ctc_greedy_decoder
    from .borders import expand, pad2d
    from .callables import py_func
    from .chains import chunk_eval, crf_decoding, linear_chain_crf
    from .composed import addcmul, clamp, logsumexp, t
    from .conv import conv2d, conv3d
    from .conv_transpose import conv2d_transpose, conv3d_transpose
    from .create import autoincreased_step_counter
    from .crops import affine_grid, crop, crop_tensor
    from .ctr import _pull_box_sparse as _pull_box_sparse
    from .ctr import continuous_value_model, data_norm, filter_by_instag
    from .deformable import deformable_conv, deformable_roi_pooling
    from .dense import dropout, fc, label_smooth, log_softmax
    from .diagonals import allclose, cross, diag_embed, dist
    from .feature_maps import fsp_matrix
    from .flips import flip, meshgrid, roll
    from .focus import random_crop, similarity_focus
    from .index import multiplex, scatter_nd, scatter_nd_add, shard_index
    from .joins import split, stack, unstack
    from .lod import lod_append, lod_reset
    from .losses.ranking import dice_loss
    from .losses.regression import smooth_l1
    from .math import clip, clip_by_norm, cos_sim, dot, l2_normalize, matmul, pow, scale, sum
    from .metric import mean_iou
    from .norm import affine_channel, batch_norm, group_norm, inplace_abn, instance_norm, layer_norm, lrn
    from .pool import adaptive_pool2d, adaptive_pool3d, pool2d, pool3d
    from .query import get_tensor_from_selected_rows, merge_selected_rows, rank
    from .random import gaussian_random, gaussian_random_batch_size_like, uniform_random, uniform_random_batch_size_like
    from .random_ints import randint, randperm, sampling_id
    from .resize import image_resize, image_resize_short, resize_bilinear, resize_nearest, resize_trilinear
    from .rois import prroi_pool, psroi_pool, roi_align, roi_pool
    from .scores import bilinear_tensor_product
    from .search import topk
    from .sequence import row_conv
    from .shapes import flatten, reshape, squeeze, transpose, unsqueeze
    from .short_names import elementwise_equal, interpolate, nonzero, randn
    from .slices import slice, strided_slice
    from .spectral import spectral_norm
    from .tables import embedding, one_hot
    from .unfolding import im2sequence, unfold
    from .values import unique, unique_with_counts

__all__ = [
    "adaptive_pool2d", "adaptive_pool3d", "add_position_encoding", "addcmul", "addmm", "affine_channel",
    "affine_grid", "allclose", "autoincreased_step_counter", "batch_norm", "bilinear_tensor_product", "bmm", "brelu",
    "chunk_eval", "clamp", "clip", "clip_by_norm", "continuous_value_model", "conv2d", "conv2d_transpose", "conv3d",
    "conv3d_transpose", "cos_sim", "crf_decoding", "crop", "crop_tensor", "cross", "ctc_greedy_decoder", "data_norm",
    "deformable_conv", "deformable_roi_pooling", "diag_embed", "dice_loss", "dist", "dot", "dropout",
    "elementwise_add", "elementwise_div", "elementwise_equal", "elementwise_floordiv", "elementwise_max",
    "elementwise_min", "elementwise_mod", "elementwise_mul", "elementwise_pow", "elementwise_sub", "elu", "embedding",
    "expand", "expand_as", "fc", "filter_by_instag", "flatten", "flip", "fsp_matrix", "gather", "gather_nd",
    "gather_tree", "gaussian_random", "gaussian_random_batch_size_like", "get_tensor_from_selected_rows",
    "grid_sampler", "group_norm", "hard_sigmoid", "hard_swish", "hash", "im2sequence", "image_resize",
    "image_resize_short", "index_sample", "index_select", "inplace_abn", "instance_norm", "interpolate",
    "l2_normalize", "label_smooth", "layer_norm", "leaky_relu", "linear_chain_crf", "lod_append", "lod_reset", "log",
    "log1p", "log_loss", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logsumexp", "lrn",
    "matmul", "maxout", "mean", "mean_iou", "merge_selected_rows", "meshgrid", "mish", "mul", "multiplex", "nonzero",
    "one_hot", "pad", "pad2d", "pad_constant_like", "pixel_shuffle", "pool2d", "pool3d", "pow", "prelu", "prroi_pool",
    "psroi_pool", "py_func", "randint", "randn", "random_crop", "randperm", "rank", "reduce_all", "reduce_any",
    "reduce_max", "reduce_mean", "reduce_min", "reduce_prod", "reduce_sum", "relu", "relu6", "reshape",
    "resize_bilinear", "resize_nearest", "resize_trilinear", "roi_align", "roi_pool", "roll", "row_conv",
    "sampling_id", "scale", "scatter", "scatter_nd", "scatter_nd_add", "selu", "shape", "shard_index",
    "shuffle_channel", "sign", "similarity_focus", "size", "slice", "smooth_l1", "soft_relu", "softmax",
    "space_to_depth", "spectral_norm", "split", "squeeze", "stack", "stanh", "strided_slice", "sum", "swish", "t",
    "temporal_shift", "topk", "transpose", "unfold", "uniform_random", "uniform_random_batch_size_like", "unique",
    "unique_with_counts", "unsqueeze", "unstack", "where",
]

_on_demand.give(__name__, {
    "._generated_activations": "brelu elu hard_sigmoid hard_swish leaky_relu relu relu6 selu soft_relu stanh",
    "._generated_elementwise":
        "elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min elementwise_mod "
        "elementwise_mul elementwise_pow elementwise_sub expand_as logical_and logical_not logical_or logical_xor",
    "._generated_functions": "log log1p",
    "._generated_images": "grid_sampler pixel_shuffle shuffle_channel space_to_depth temporal_shift",
    "._generated_losses": "log_loss",
    "._generated_places":
        "gather gather_nd hash index_sample index_select pad pad_constant_like scatter shape size where",
    "._generated_products": "addmm bmm mul",
    "._generated_reductions":
        "mean reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum softmax",
    "._generated_sequences": "add_position_encoding gather_tree",
    ".activations": "maxout mish prelu sign swish",
    ".alignments": "ctc_greedy_decoder",
    ".borders": "expand pad2d",
    ".callables": "py_func",
    ".chains": "chunk_eval crf_decoding linear_chain_crf",
    ".composed": "addcmul clamp logsumexp t",
    ".conv": "conv2d conv3d",
    ".conv_transpose": "conv2d_transpose conv3d_transpose",
    ".create": "autoincreased_step_counter",
    ".crops": "affine_grid crop crop_tensor",
    ".ctr": "_pull_box_sparse continuous_value_model data_norm filter_by_instag",
    ".deformable": "deformable_conv deformable_roi_pooling",
    ".dense": "dropout fc label_smooth log_softmax",
    ".diagonals": "allclose cross diag_embed dist",
    ".feature_maps": "fsp_matrix",
    ".flips": "flip meshgrid roll",
    ".focus": "random_crop similarity_focus",
    ".index": "multiplex scatter_nd scatter_nd_add shard_index",
    ".joins": "split stack unstack",
    ".lod": "lod_append lod_reset",
    ".losses.ranking": "dice_loss",
    ".losses.regression": "smooth_l1",
    ".math": "clip clip_by_norm cos_sim dot l2_normalize matmul pow scale sum",
    ".metric": "mean_iou",
    ".norm": "affine_channel batch_norm group_norm inplace_abn instance_norm layer_norm lrn",
    ".pool": "adaptive_pool2d adaptive_pool3d pool2d pool3d",
    ".query": "get_tensor_from_selected_rows merge_selected_rows rank",
    ".random": "gaussian_random gaussian_random_batch_size_like uniform_random uniform_random_batch_size_like",
    ".random_ints": "randint randperm sampling_id",
    ".resize": "image_resize image_resize_short resize_bilinear resize_nearest resize_trilinear",
    ".rois": "prroi_pool psroi_pool roi_align roi_pool",
    ".scores": "bilinear_tensor_product",
    ".search": "topk",
    ".sequence": "row_conv",
    ".shapes": "flatten reshape squeeze transpose unsqueeze",
    ".short_names": "elementwise_equal interpolate nonzero randn",
    ".slices": "slice strided_slice",
    ".spectral": "spectral_norm",
    ".tables": "embedding one_hot",
    ".unfolding": "im2sequence unfold",
    ".values": "unique unique_with_counts",
})
