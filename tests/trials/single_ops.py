"""Trials of single ops: programs from the cases of tests/ops or from the schema, with some mutations."""

import functools
import random

import numpy as np
from built import OFF, build, run, same
from mutations import MUTATIONS, OF_VALUES, attribute
from one_op import from_cases, from_schema
from op_case import Rows, Seq, array_of, expected
from verdicts import judge

from anabranch import _core

COUNT = 400
# Ops that may draw, and the gradients that draw again: two runs may differ.
RANDOM = {op for op in _core.op_types() if "random" in _core.op_info(op)["effects"]}
RANDOM |= {"dropout_grad", "nce_grad", "sample_logits_grad", "skip_gram", "skip_gram_grad"}
OUT_OF_MEMORY = "typed ResourceExhausted"
MODERATE = 1e6  # NaN is not smaller
OTHER_NUMBERS = {"auc", "linspace"}  # negative counts; a reference of one input
# Where these give the shape, the attribute `shape` is what the original takes it for while the program is built.
BY_VALUE = {"Shape", "ShapeTensor", "ShapeTensorList"}
NOTHING = {"multiclass_nms": (1, 1), "locality_aware_nms": (1, 1)}  # the shape that says that nothing was found
# Declared with the most rows that there may be, or with buffers that stay empty, as in Fluid 1.8.5.
FEWER = {"collect_fpn_proposals", "roi_perspective_transform"}
# These wait for other processes: tests/python/cluster/test_parameter_server.py.
TALKING = {"send", "recv", "send_barrier", "fetch_barrier", "listen_and_serv", "distributed_lookup_table",
           "trainer_weight", "ring_sum", "ring_weight"}


def names():
    return [op for op in _core.op_types() if op not in TALKING]


cases = functools.lru_cache(maxsize=4)(from_cases)


def drawn(name, number):
    """The mutated op of this trial, and the random numbers that go on."""
    r = random.Random("single_ops/%s/%d" % (name, number))
    known = cases(name)
    one = r.choice(known).copy() if known and r.random() < 0.93 else from_schema(r, name)
    made = []
    for _ in range(r.choice([0, 1, 1, 1, 1, 2, 2, 3, 4])):
        mutation = r.choice(MUTATIONS)
        said = mutation(r, one)
        if said:
            one.changes.append(said)
            made.append(mutation)
    if set(made) - set(OF_VALUES) - {attribute}:
        one.case = None
    return one, r


def trial(name, number):
    one, r = drawn(name, number)
    how, followed, state = r.choice(["append"] * 8 + ["raw", "bytes"]), r.random() < 0.25, r.getrandbits(32)
    one.changes.append(how + (" followed" if followed else ""))

    def attempt(threads, passes):
        return judge(lambda: build(one, how, followed, random.Random(state)), lambda made: run(made, threads, passes))

    first = attempt(1, "")
    said = "; ".join(one.changes)
    if first.verdict.isupper() or name in RANDOM:
        return first.verdict, "%s | %s" % (said, first.text)
    second = attempt(7, OFF)
    if OUT_OF_MEMORY in (first.verdict, second.verdict):  # what else is held at the moment decides
        return OUT_OF_MEMORY, ""
    if first.made and not first.made[3]:  # an op whose result is not read is left out by the passes
        return first.verdict, ""
    if second.verdict != first.verdict or first.made and not same(first.got, second.got):
        third = attempt(1, OFF)
        by = (
            "THREADS" if third.verdict == first.verdict and (not first.made or same(first.got, third.got)) else "PASSES"
        )
        return by, "%s | %s %s | %s %s" % (said, first.verdict, first.shown(), second.verdict, second.shown())
    if first.made and how == "append" and not followed:
        wrong = against_declared(one, first) or against_reference(one, first)
        if wrong:
            return "WRONG", "%s | %s" % (said, wrong)
    return first.verdict, ""


def against_declared(one, first):
    """Extents that a declaration knows must come out."""
    honest = all(v.declared == "same" and v.declares_dtype and v.preset is None for v in one.vars.values())
    if not honest or one.inputs() & one.outputs() or any(one.ins.get(slot) for slot in BY_VALUE) or one.op in FEWER:
        return None
    if any(slot["doc"] == "raw" for slot in _core.op_info(one.op)["outputs"]):  # such a value declares no extents
        return None
    for name, (arrays, _) in zip(first.made[3], first.got):
        shape = list(first.made[0].global_block().desc._find_var(name).shape)
        for a in arrays[:1]:
            if a.shape == NOTHING.get(one.op):
                continue
            if len(shape) != a.ndim or any(0 <= s != e for s, e in zip(shape, a.shape)):
                return "%s is declared %s and has shape %s" % (name, shape, a.shape)
    return None


class Watched(dict):
    """Attributes that know which of them were read."""

    def __init__(self, attrs):
        super().__init__(attrs)
        self.read = set()

    def __getitem__(self, name):
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name, default=None):
        self.read.add(name)
        return super().get(name, default)


def against_reference(one, first):
    """The case's reference counts where it knows the variant: it takes any numbers, reads the attribute that was
    changed, and meets nothing that NumPy reckons otherwise (NaN, the ends of float32 and int32).
    """
    if one.case is None or not one.case.ref or not one.case.hostile or one.op in OTHER_NUMBERS:
        return None
    numbers = [array_of(one.vars[n].value) for n in one.valued()]
    numbers += [np.array(v) for v in one.attrs.values() if isinstance(v, float)]
    if not all(_moderate(a) for a in numbers):
        return None
    inputs = {slot: [one.vars[n].value for n in one.ins[slot]] for slot in one.case.inputs}
    inputs = {slot: v if isinstance(one.case.inputs[slot], list) else v[0] for slot, v in inputs.items()}
    attrs = Watched(one.attrs)
    case = type(one.case)(**{**one.case.__dict__, "attrs": attrs})
    try:
        with np.errstate(all="ignore"):
            reference = expected(case, inputs)
    except Exception:  # the reference does not know this variant
        return None
    if any(c.split()[1] not in attrs.read for c in one.changes if c.startswith("attribute ")):
        return None
    got = dict(zip(first.made[3], first.got))
    for slot, values in reference.items():
        for name, value in zip(one.outs.get(slot, []), values):
            if name in got and not isinstance(value, Rows) and got[name][0]:
                wrong = _unlike(got[name][0][0], np.asarray(value.array if isinstance(value, Seq) else array_of(value)))
                if wrong:
                    return "%s: %s" % (name, wrong)
    return None


def _moderate(a):
    return a.dtype.kind == "b" or bool(np.all(np.abs(np.asarray(a, "float64")) < MODERATE))


def _unlike(got, reference):
    if got.shape != reference.shape or not np.all(np.isfinite(reference)):
        return None
    scale = float(np.max(np.abs(reference), initial=1.0))
    if np.allclose(got, reference, rtol=1e-4, atol=1e-4 * scale if got.dtype.kind == "f" else 0):
        return None
    return "%s, the reference gives %s" % (got.ravel()[:5], reference.ravel()[:5])
