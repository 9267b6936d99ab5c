"""Rules of listed.py for results that are rounded differently, or clipped by 1.8.5."""

import listed_when as when
from listed import DIFFERS, GRADIENT, Rule
from when_nets import cancels_on_paths, close, on_a_border, rounded_to_columns, steep_cells, steep_gates

STEEP = (
    "the sigmoid of numbers above 13 or below -40 in `lstm`, `lstmp`, `gru`, the tanh of numbers above 6.5 in "
    "`fused_elemwise_activation`, `fusion_seqexpand_concat_fc`, in float64"
)
ROUNDING = (
    "results that lose most of their digits to cancellation; recurrences over large inputs; "
    "`roi_perspective_transform` with regions that are almost lines, or with borders on pixels"
)
FUSED = ("fusion_gru", "fusion_lstm", "fused_embedding_fc_lstm")
OF_TANH = when.has(lambda a: "tanh" in a["functor_list"])
TANH_OF_FC = when.has(lambda a: a["fc_activation"] == "tanh")

RULES = [
    *[Rule(kind, STEEP, ("lstm", "lstmp"), when=steep_cells) for kind in (DIFFERS, GRADIENT)],
    *[Rule(kind, STEEP, ("gru",), when=steep_gates) for kind in (DIFFERS, GRADIENT)],
    Rule(DIFFERS, STEEP, ("fused_elemwise_activation",), when=when.both(OF_TANH, close("outs", 1e-5, 5e-6))),
    Rule(DIFFERS, STEEP, ("fusion_seqexpand_concat_fc",), when=when.both(TANH_OF_FC, close("outs", 1e-5, 5e-6))),
    Rule(GRADIENT, ROUNDING, ("grid_sampler", "sequence_softmax"), when=close("grads", 1e-5, 1e-7)),
    Rule(DIFFERS, ROUNDING, ("soft_relu",), when=close("outs", 1e-5, 1.2e-7)),  # log(1 + e^x) near 1
    Rule(GRADIENT, ROUNDING, ("cos_sim",), when=rounded_to_columns),
    Rule(GRADIENT, ROUNDING, ("tanh",), when=close("grads", 1e-5, 8e-7)),  # 1 - Out^2 near Out = 1
    Rule(GRADIENT, ROUNDING, ("stanh",), when=close("grads", 1e-5, 4e-6)),  # likewise, times scale_a and scale_b
    Rule(GRADIENT, ROUNDING, ("fused_elemwise_activation",), when=close("grads", 1e-5, 3e-6)),  # likewise
    Rule(GRADIENT, ROUNDING, ("layer_norm",), when=close("grads", 1e-5, 1e-6)),  # rows of two numbers: nearly 0
    Rule(DIFFERS, ROUNDING, ("linear_chain_crf",), when=cancels_on_paths),
    Rule(DIFFERS, ROUNDING, ("roi_perspective_transform",), when=close("outs", 1e-4)),
    Rule(DIFFERS, ROUNDING, ("roi_perspective_transform",), why="^mask", when=on_a_border),
    Rule(DIFFERS, ROUNDING, ("attention_lstm", *FUSED), when=close("outs", 1e-4)),
    Rule(GRADIENT, ROUNDING, ("lstm", "lstmp", "gru"), when=close("grads", 1e-4)),
    Rule(GRADIENT, ROUNDING, ("gru_unit",), when=close("grads", 1e-5, 1e-5)),  # tanh near 1
]
