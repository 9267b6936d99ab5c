"""Rules of listed.py for the default mode: rows of docs/differences.md that FLAGS_fluid_exact switches off."""

import listed_when as when
from listed import DIFFERS, GRADIENT, RAISES, Rule
from when_nets import some

CELL = "gradient of a loss on the second result, `cell`, of `dynamic_lstm` and `dynamic_lstmp`"
WIDE = "gradient through the cell of `dynamic_lstm` and `dynamic_lstmp`, if the width is a multiple of 8"
IGNORED = "`softmax_with_cross_entropy` with ignored labels"
SPECTRAL = "gradient of `spectral_norm`"
SCALED = "gradient of `group_norm` without a scale (the default)"
NO_SCALE = "gradients of `group_norm`, in channels with a scale of 0"
PADDED = "the row of `padding_idx` in a sparse `embedding`"
UNITS = "the activations of `gru_unit`, `LSTMCell`, `BasicLSTMUnit`, `basic_lstm`"
PROJECTED = "`lstmp` with a cell activation other than `proj_activation`"
CURVE = '`auc` and `metrics.Auc` with `curve="PR"`'
LABELS = "`cross_entropy` with labels of a float dtype, while the program is built"

RULES = [
    *[Rule(GRADIENT, row, ("lstm", "lstmp")) for row in (CELL, WIDE)],
    Rule(DIFFERS, PROJECTED, ("lstmp",)),
    *[Rule(kind, IGNORED, ("softmax_with_cross_entropy",)) for kind in (DIFFERS, GRADIENT)],
    Rule(GRADIENT, SPECTRAL, ("spectral_norm",)),
    Rule(GRADIENT, SCALED, ("group_norm",), when=when.without("Scale")),
    Rule(GRADIENT, NO_SCALE, ("group_norm",), when=some("Scale", lambda s: (s == 0).any())),
    Rule(GRADIENT, PADDED, ("lookup_table", "lookup_table_v2"), when=when.has(lambda a: a.get("is_sparse"))),
    Rule(GRADIENT, "gradient of `hard_swish`", ("hard_swish",)),
    *[Rule(kind, "`beta` of `swish`", ("swish",)) for kind in (DIFFERS, GRADIENT)],
    *[Rule(kind, UNITS, ("gru_unit",)) for kind in (DIFFERS, GRADIENT)],
    Rule(DIFFERS, "`l2` of `Ftrl`", ("ftrl",)),
    Rule(DIFFERS, "`dropout` with a seed", ("dropout",)),
    Rule(DIFFERS, CURVE, ("auc",), when=when.has(lambda a: a.get("curve") == "PR")),
    Rule(
        DIFFERS,
        "a sparse gradient without rows in `Adam`, `Momentum`, `Lamb`",
        ("adam", "momentum", "lamb"),
        why="param|beta|moment",
        when=lambda case, theirs, ours: when.rows(case, theirs, ours) and not len(when.value(case, "Grad")),
    ),
    Rule(RAISES, LABELS, ("cross_entropy", "cross_entropy2"), ours="Label"),
]
