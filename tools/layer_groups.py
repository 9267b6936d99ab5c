"""The pages of the layers: a small group each, by the modules that define them.

tests/python/project/test_reference.py holds that each module of layers is in exactly one group.
"""
from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Group:
    """One page: its file name, its title, what its layers are for, the modules that define them, and related pages."""

    page: str
    title: str
    purpose: str
    modules: tuple[str, ...]
    related: tuple[str, ...] = ()


def _group(page: str, title: str, purpose: str, modules: str, related: str = "") -> Group:
    return Group(page, title, purpose, tuple(modules.split()), tuple(related.split()))


GROUPS = (
    _group("inputs", "Inputs and variables", "Declare the variables that a program is fed, keeps or loads.",
           "inputs create loads", "reading constants"),
    _group("dense", "Dense layers", "Fully connected layers, dropout, label smoothing and log-softmax.",
           "dense", "activations normalization products"),
    _group("activations", "Activations", "Nonlinear functions of single elements.",
           "_generated_activations activations", "elements dense"),
    _group("normalization", "Normalization", "Batch, layer, group, instance and spectral normalization.",
           "norm spectral", "dense convolution"),
    _group("convolution", "Convolution", "Convolutions and transposed convolutions of images and volumes.",
           "conv conv_transpose deformable unfolding", "pooling normalization images"),
    _group("pooling", "Pooling", "Maxima and averages over the windows of images and volumes.", "pool", "convolution"),
    _group("images", "Images", "Resize, crop, pad and rearrange images.",
           "resize crops focus borders _generated_images feature_maps", "convolution detection"),
    _group("embeddings", "Embeddings and CTR", "Embedding tables, hashed ids and the layers of CTR models.",
           "tables ctr", "sequences sampled_losses"),
    _group("losses", "Losses", "Losses for classification, regression and ranking.",
           "_generated_losses losses.classification losses.ranking losses.regression scores",
           "sampled_losses metrics reductions"),
    _group("sampled_losses", "Losses over many classes", "Sampled losses and the hierarchical softmax.", "sampled",
           "losses embeddings"),
    _group("metrics", "Metrics", "Metrics that the program itself computes.", "metric", "losses"),
    _group("elements", "Functions of elements", "Mathematical functions of one tensor, element by element.",
           "_generated_functions", "activations arithmetic"),
    _group("arithmetic", "Arithmetic and comparisons",
           "Functions of two tensors with broadcasting, comparisons and logic.", "_generated_elementwise",
           "elements reductions"),
    _group("products", "Products of matrices", "Matrix products, powers, limits, norms and diagonals.",
           "_generated_products math diagonals", "dense arithmetic"),
    _group("reductions", "Reductions and order", "Sums, means, extremes, sorting and searching along axes.",
           "_generated_reductions search values", "arithmetic metrics"),
    _group("constants", "Constants and random tensors", "Tensors of constants, regular numbers and random numbers.",
           "fill random random_ints", "inputs distributions"),
    _group("distributions", "Distributions", "Probability distributions with parameters of the program.",
           "distributions", "constants losses"),
    _group("shapes", "Shapes and joins", "Reshape, transpose, join, split, cast and copy tensors.",
           "shapes joins copies query flips", "slices"),
    _group("slices", "Slices, gathers and scatters", "Read, change and pick elements by position.",
           "slices _generated_places index", "shapes"),
    _group("sequences", "Sequences", "Layers over sequences of different lengths: tensors with LoD.",
           "sequence sequence_rows _generated_sequences lod", "recurrent sequence_labels"),
    _group("recurrent", "Recurrent layers", "LSTM and GRU layers, cells, and blocks that run once per time step.",
           "recurrent stacked cells static_rnn dynamic_rnn", "sequences control_flow decoding"),
    _group("sequence_labels", "Sequence labels", "Conditional random fields, CTC and edit distance.",
           "alignments chains", "sequences losses"),
    _group("decoding", "Decoding", "Beam search and decoders that write a sequence token by token.",
           "beams beam_decoder decoding decode_helpers", "recurrent"),
    _group("control_flow", "Control flow", "Branches, loops, tensor arrays and Python functions in a program.",
           "branches loops row_branches arrays rank_tables callables", "recurrent"),
    _group("detection", "Detection", "Boxes, priors, matching and suppression for object detectors.",
           "boxes priors matching suppression", "detection_training images"),
    _group("detection_training", "Training of detectors", "Proposals, regions of interest, targets, SSD and YOLO.",
           "proposals rois targets ssd yolo_loss", "detection losses"),
    _group("learning_rates", "Learning rates", "Learning rates that change with the number of steps.",
           "learning_rate_scheduler"),
    _group("short_forms", "Short forms", "Layers under the names that other frameworks use.",
           "composed short_names", "constants shapes"),
    _group("reading", "Readers", "Readers that are part of the program; `DataLoader` replaced them.", "feeders",
           "inputs"),
)
