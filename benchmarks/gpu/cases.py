"""The rows G1-G4 on one GPU: sizes, and batches in host memory, which every engine copies to the GPU in each step."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import data

#: tiny: for a trial of the scripts on a machine that has no GPU.
CASES = {
    "G1": dict(what="ResNet-50, mixed precision", unit="images/s", batch=256, size=224, stages=4,
               tiny=dict(batch=2, size=32, stages=1)),
    "G1d": dict(what="ResNet-50, mixed precision, batches from a DataLoader", unit="images/s", batch=256, size=224,
                stages=4, loader=True, tiny=dict(batch=2, size=32, stages=1)),
    "G2": dict(what="CTR-DNN, 26 slots of one table", unit="samples/s", batch=16384, rows=10 ** 7, width=16,
               tiny=dict(batch=32, rows=1000)),
    "G3a": dict(what="MLP 784-200-200-10", unit="samples/s", batch=64, tiny=dict(batch=8)),
    "G3b": dict(what="a chain of 1,000 operators on one element", unit="operators/s", ops=1000, tiny=dict(ops=20)),
    "G4": dict(what="BERT-base, 128 positions, mixed precision", unit="sequences/s", batch=96, layers=12, width=768,
               heads=12, vocabulary=30522, tiny=dict(batch=1, layers=1, width=16, heads=2, vocabulary=100)),
}
CLASSES = 1000


def case_of(name, options):
    """`options.tiny` and `options.batch` change its extents."""
    case = dict(CASES[name], name=name)
    small = case.pop("tiny")
    if options.tiny:
        case.update(small)
    if options.batch and "batch" in case:
        case["batch"] = options.batch
    return case


def encoder(case):
    """The module of the encoder, of this case's extents."""
    import w07_encoder
    w07_encoder.LAYERS, w07_encoder.WIDTH, w07_encoder.HEADS = case["layers"], case["width"], case["heads"]
    w07_encoder.VOCABULARY = case["vocabulary"]
    return w07_encoder


def batches(case):
    """Tuples of arrays; the last one holds the classes, [batch, 1]."""
    n = case.get("batch")
    if case["name"] in ("G1", "G1d"):
        return data.batches(2, n, lambda rng, count: data.classes(rng, count, (3, case["size"], case["size"]), CLASSES))
    if case["name"] == "G2":
        return data.batches(8, n, lambda rng, count: data.clicks(rng, count, case["rows"]))
    if case["name"] == "G3a":
        return data.batches(16, n, lambda rng, count: data.classes(rng, count, (784,)))
    return data.batches(4, n, encoder(case).masked_batch)


def units(case):
    """Of what `unit` counts, in a step."""
    return case.get("ops") or case["batch"]
