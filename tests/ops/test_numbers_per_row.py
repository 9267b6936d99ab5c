"""Inputs with one number per row are refused in other arrangements, in which the numbers belong to other rows."""
import glob
import importlib
import os

import numpy as np
import pytest
from op_case import CASES, Run, Seq, array_of, cast, out_counts

import anabranch.fluid as fluid

for path in sorted(glob.glob(os.path.join(os.path.dirname(__file__), "cases_*.py"))):
    importlib.import_module(os.path.basename(path)[:-3])

#: Operator -> slots. 1.8.5 refuses them, too, with other axes than these.
PER_ROW = {
    "auc": ("Label",), "center_loss": ("Label",), "hierarchical_sigmoid": ("Label",), "nce": ("SampleWeight",),
    "beam_search": ("pre_ids", "pre_scores"), "linear_chain_crf": ("Label",), "crf_decoding": ("Label",),
    "sequence_scatter": ("Ids", "Updates"), "sequence_slice": ("Offset", "Length"), "chunk_eval": ("SeqLength",),
    "sequence_unpad": ("Length",),
    "edit_distance": ("HypsLength", "RefsLength"), "warpctc": ("LogitsLength", "LabelLength"),
    "generate_mask_labels": ("IsCrowd", "LabelsInt32"), "generate_proposal_labels": ("GtClasses", "IsCrowd"),
    "rpn_target_assign": ("IsCrowd",), "retinanet_target_assign": ("IsCrowd", "GtLabels"),
}


def exchanged(value):
    """The numbers of [a, b, ...] as [b, a, ...], those of a vector as [1, a]; None if that changes nothing."""
    array = array_of(value)
    shape = (1, len(array)) if array.ndim == 1 else (array.shape[1], array.shape[0], *array.shape[2:])
    if shape == array.shape or array.size < 2:
        return None
    other = array.reshape(shape)
    fits = isinstance(value, Seq) and sum(value.lengths[-1]) == len(other)
    return Seq(other, value.lengths) if fits else other


def tried():
    for c in CASES:
        for slot in PER_ROW.get(c.op, ()):
            if slot in c.inputs and not isinstance(c.inputs[slot], list) and exchanged(c.inputs[slot]) is not None:
                yield pytest.param(c, slot, id="%s-%s" % (c.name, slot))


@pytest.mark.parametrize("c, slot", list(tried()))
def test_numbers_of_other_rows_are_refused(c, slot):
    inputs = {name: cast(value, c.dtypes[0]) for name, value in c.inputs.items()}
    outs = out_counts(c, inputs)
    inputs[slot] = exchanged(inputs[slot])
    with pytest.raises(fluid.core.EnforceNotMet, match=slot):
        Run(c, inputs, outs=outs)()


def test_each_slot_has_a_case():
    found = {(param.values[0].op, param.values[1]) for param in tried()}
    assert {(op, slot) for op, slots in PER_ROW.items() for slot in slots} == found


@pytest.mark.parametrize("near, counted", [(-0.4, 0), (0.9, 0), (1.7, 1)])
def test_detection_map_cuts_the_fractions_of_classes(near, counted):
    boxes = np.array([[near, 0.9, 0.1, 0.1, 0.5, 0.5]], "float32")
    truth = np.array([[counted, 0, 0.1, 0.1, 0.5, 0.5]], "float32")
    program = fluid.Program()
    block = program.global_block()
    for name in ("boxes", "truth"):
        block.create_var(name=name, shape=[-1, 6], dtype="float32", lod_level=1).is_data = True
    outs = {slot: [block.create_var(name=slot)] for slot in ("AccumPosCount", "AccumTruePos", "AccumFalsePos", "MAP")}
    block.append_op(type="detection_map", inputs={"DetectRes": ["boxes"], "Label": ["truth"]}, outputs=outs,
                    attrs={"class_num": 2, "background_label": -1})
    feed = {name: fluid.create_lod_tensor(array, [[1]], fluid.CPUPlace())
            for name, array in (("boxes", boxes), ("truth", truth))}
    assert fluid.Executor(fluid.CPUPlace()).run(program, feed=feed, fetch_list=["MAP"])[0][0] == 1
