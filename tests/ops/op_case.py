"""One declaration of an operator case; many tests follow from it (test_ops.py, test_hostile.py).

    import numpy as np
    from op_case import apart, big, case, real

    case("leaky_relu", {"X": apart(3, 4)}, {"alpha": 0.1},
         ref=lambda i, a: np.where(i["X"] > 0, i["X"], a["alpha"] * i["X"]), large={"X": big()})

``inputs``: slot -> array, ``Seq(array, lengths)`` (a tensor with sequences), ``Rows(ids, height, values)`` (sparse
rows), or a list of arrays for a list slot. Write numbers as float64: float64 arrays are cast to each of ``dtypes``, all
other arrays are fed as they are.
``ref(i, a)``: NumPy reference. ``i`` holds the inputs (plain arrays; a Seq or Rows as given), ``a`` the attributes
given. It returns the output, for an operator with one, or a dict slot -> array, list of arrays, Seq or Rows; slots left
out are not compared. ``ref=None``: only the properties that need no reference are tested.

Tests of a case: output against ``ref`` for each dtype; gradient in float64 against central differences, in float32
against float64; in-place on and off give the same bits, and where the operator declares ``may_share`` the memory is
one; 1 and 7 threads give the same bits, those of ``ref`` (inputs ``large``, where given); hostile inputs (zeroed
extents, other ranks and dtypes, missing and uninitialized inputs, wild attributes and indices) give a typed error or
what ``ref`` says, never a crash.

``grad``: input slots whose gradient is checked; default: all float64 inputs when the operator has a gradient;
``()``: none.
``grad_outs``: output slots that the gradient starts from; default: the first one.
``outs``: number of variables in output slots that are lists. ``dtypes``: default float32 and float64.
``rtol``: of outputs in float32, default 2e-6; ``large_rtol``: of those of ``large``, default ``rtol``.
``speed``: inputs of the speed mode (``./dev bench --ops``); default: the case's own, grown (benchmarks/op_jobs.py).
``hostile=False`` compares no hostile variant with ``ref``, with a comment that says why.
``skip(op_type, reason)`` excuses an operator from having a case.
"""
import collections
import dataclasses
import linecache
import os
import re
import sys
import zlib

import numpy as np

import anabranch.fluid as fluid
from anabranch import _core

#: Where programs run. With ANABRANCH_TEST_PLACE=device on the last device, and ON_CPU tells of each op, run by run,
#: whether the CPU ran it all the same.
PLACE, ON_CPU = fluid.CPUPlace(), None
if os.environ.get("ANABRANCH_TEST_PLACE") == "device":
    PLACE, ON_CPU = fluid.CUDAPlace(fluid.core.get_cuda_device_count() - 1), {}
#: The last of RUNS runs is compared; those before it have other numbers. From the second on, devices run graphs.
RUNS = int(os.environ.get("ANABRANCH_TEST_RUNS", "1"))

CASES = []
SKIPPED = {}
#: Files in which an operator is named.
FILES = {}
#: Number of cases of each operator.
_cases = collections.Counter()


class Seq:
    """A tensor and the lengths of its sequences, outermost level first."""

    def __init__(self, array, lengths):
        self.array, self.lengths = array, lengths


class Rows:
    """Sparse rows of a table of ``height`` rows."""

    def __init__(self, ids, height, values):
        self.ids, self.height, self.values = list(ids), height, values


@dataclasses.dataclass
class Case:
    op: str
    inputs: dict
    attrs: dict
    ref: object
    grad: object
    grad_outs: object
    dtypes: tuple
    outs: dict
    later: object
    rtol: float
    large_rtol: float
    hostile: bool
    name: str
    speed: object = None

    @property
    def large(self):
        return now(self.later)


def case(op, inputs, attrs=None, ref=None, *, grad=None, grad_outs=None, dtypes=("float32", "float64"), outs=None,
         large=None, rtol=2e-6, large_rtol=None, hostile=True, speed=None, name=""):
    """Declares a case; see the top of this file."""
    name = f"{op}.{name or _cases[op]}"
    _cases[op] += 1
    FILES.setdefault(op, set()).add(os.path.basename(sys._getframe(1).f_code.co_filename))
    made = Case(op, inputs, attrs or {}, ref, grad, grad_outs, tuple(dtypes), outs or {}, large, rtol,
                large_rtol or rtol, hostile, name, speed)
    CASES.append(made)
    _drawn.clear()
    return made


def skip(op, reason):
    """Excuses an operator from having a case."""
    FILES.setdefault(op, set()).add(os.path.basename(sys._getframe(1).f_code.co_filename))
    SKIPPED[op] = reason


# ---- inputs

#: Draws of the next case, by what _seed knows of them.
_drawn = collections.Counter()


def seeded(seed):
    """A generator. ANABRANCH_CASE_SEED shifts the seeds of all of them."""
    return np.random.RandomState((seed + int(os.environ.get("ANABRANCH_CASE_SEED", "0"))) % 2**32)


def _seed(*args):
    """Follows from the arguments, the lines that call this module, and how often they have since the last case, so that
    a case keeps its inputs when others are added, moved or removed.
    """
    frame, lines = sys._getframe(2), []
    while frame:
        lines.append(linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip())
        frame = None if frame.f_code.co_name == "<module>" else frame.f_back
    key = repr((args, lines))
    _drawn[key] += 1
    return zlib.crc32(f"{key} {_drawn[key]}".encode())


class Later(np.lib.mixins.NDArrayOperatorsMixin):
    """An array that is computed when it is first read: few processes that import the cases read the large ones."""

    def __init__(self, compute):
        self._compute, self._array = compute, None

    def __array__(self, dtype=None, copy=None):
        if self._array is None:
            self._array = self._compute()
        return self._array if dtype is None else self._array.astype(dtype)

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        return Later(lambda: getattr(ufunc, method)(*[now(v) for v in inputs], **options))

    def round(self, decimals=0, out=None):
        return Later(lambda: self.__array__().round(decimals))

    def astype(self, dtype):
        return Later(lambda: self.__array__().astype(dtype))

    def __getattr__(self, name):
        return getattr(self.__array__(), name)


def now(value):
    """The value with arrays instead of every Later."""
    if isinstance(value, dict):
        return {slot: now(v) for slot, v in value.items()}
    if isinstance(value, list):
        return [now(v) for v in value]
    if isinstance(value, Seq):
        return Seq(now(value.array), value.lengths)
    if isinstance(value, Rows):
        return Rows(value.ids, value.height, now(value.values))
    return value.__array__() if isinstance(value, Later) else value


def real(*shape, lo=-1.0, hi=1.0):
    """Random numbers, other ones in each call of a case, the same in each run."""
    return seeded(_seed(shape, lo, hi)).uniform(lo, hi, shape)


def apart(*shape, step=0.13):
    """Numbers of both signs that differ by at least ``step`` and stay away from 0: safe for kinks and ties."""
    n = int(np.prod(shape))
    return seeded(n).permutation((np.arange(n) - n // 2 + 0.37) * step).reshape(shape)


def integers(*shape, lo=0, hi=10, dtype="int64"):
    """Random integers in [lo, hi)."""
    return seeded(_seed(shape, lo, hi)).randint(lo, hi, shape).astype(dtype)


def big(*shape):
    """An array large enough to be cut into chunks; default shape [301, 1033]. Its numbers from -1 to 1 differ by
    2 / size or more, and by a twentieth of that from 0, from halves, and from the negatives of other such arrays:
    test_large_gradient steps over no kink and no tie.
    """
    shape = shape or (301, 1033)
    n, seed = int(np.prod(shape)), _seed("big", shape)

    def compute():
        draw = seeded(seed)
        return ((draw.permutation(n) - n // 2 + draw.uniform(0.3, 0.45)) * (2 / n)).reshape(shape)
    return Later(compute)


# ---- running

def cast(value, dtype):
    """The value with its float64 arrays as ``dtype``."""
    if isinstance(value, list):
        return [cast(v, dtype) for v in value]
    if isinstance(value, Seq):
        return Seq(cast(value.array, dtype), value.lengths)
    if isinstance(value, Rows):
        return Rows(value.ids, value.height, cast(value.values, dtype))
    return value.astype(dtype) if value.dtype == np.float64 else value


def array_of(value):
    """The numbers of an input or output."""
    return value.array if isinstance(value, Seq) else value.values if isinstance(value, Rows) else value


def other_order(value):
    """Of floats the last element first."""
    floats = isinstance(value, np.ndarray) and value.dtype.kind == "f"
    return np.ascontiguousarray(value.ravel()[::-1].reshape(value.shape)) if floats else value


def expected(c, inputs):
    """Slot -> list of what the reference gives."""
    got = c.ref(inputs, c.attrs)
    if not isinstance(got, dict):
        got = {next(iter(_core.op_slots(c.op)[1])): got}
    return {slot: v if isinstance(v, list) else [v] for slot, v in got.items()}


class Run:
    """A program of one operator, between assignments when ``inner`` (so that in-place passes may act on it)."""

    def __init__(self, c, inputs, outs=None, inner=False, grad=(), grad_outs=None, unset=None):
        self.case, self.feed, self.rows, self.vars = c, {}, {}, {}
        self.program, self.scope = fluid.Program(), fluid.Scope()
        self.slots, self.unset = {}, unset
        with fluid.program_guard(self.program, fluid.Program()):
            block = self.program.global_block()
            ins = {slot: self._inputs(block, slot, v, inner) for slot, v in inputs.items()}
            self.outs = {}
            named_only = {slot["name"] for slot in _core.op_info(c.op)["outputs"] if slot["named_only"]}
            for slot, (is_list, _) in _core.op_slots(c.op)[1].items():
                if slot in named_only:  # no kernel writes it
                    continue
                n = (outs or c.outs).get(slot, 1) if is_list else 1
                self.outs[slot] = [block.create_var(name=f"{slot.lower()}.out{k}") for k in range(n)]
            block.append_op(type=c.op, inputs=ins, outputs=self.outs, attrs=dict(c.attrs))
            self._loosen(inner)
            self.grads = self._gradients(grad, grad_outs, inner) if grad else []

    def _inputs(self, block, slot, value, inner):
        made = []
        for k, v in enumerate(value if isinstance(value, list) else [value]):
            array, name = array_of(v), f"{slot.lower()}{k}"
            if isinstance(v, Rows):
                var = block.create_var(name=name, shape=[v.height, *array.shape[1:]], dtype=str(array.dtype),
                                       type=fluid.core.VarDesc.VarType.SELECTED_ROWS, persistable=True)
                self.rows[name] = v
            else:
                level = len(v.lengths) if isinstance(v, Seq) else 0
                var = block.create_var(name=name, shape=array.shape, dtype=str(array.dtype), lod_level=level,
                                       persistable=slot == self.unset)
                if slot != self.unset:
                    self.feed[name] = fluid.create_lod_tensor(array, v.lengths, fluid.CPUPlace()) if level else array
            var.stop_gradient = False
            self.vars[name], self.slots[name] = var, slot
            made.append(self._copied(block, var) if inner and not isinstance(v, Rows) else var)
        return made

    def _copied(self, block, var):
        made = block.create_var(name=var.name + ".copy")
        block.append_op(type="assign", inputs={"X": [var]}, outputs={"Out": [made]})
        return made

    def _loosen(self, inner):
        """Outputs that are sparse rows are read from the scope, so they must outlive the run."""
        kinds = fluid.core.VarDesc.VarType
        self.fetch = []
        for slot, variables in self.outs.items():
            for k, v in enumerate(variables):
                if v.type == kinds.SELECTED_ROWS:
                    v.persistable = True
                else:
                    self.fetch.append((slot, k, self._copied(v.block, v) if inner else v))

    def _gradients(self, grad, grad_outs, inner):
        slots = grad_outs or [next(iter(self.outs))]
        targets = [v for s in slots for v in self.outs[s]]
        weights = []
        for v in targets:
            w = self.program.global_block().create_var(name=v.name + ".weight", shape=v.shape, dtype=v.dtype)
            w.stop_gradient = True
            weights.append(w)
        self.weights = {w.name: v.name for w, v in zip(weights, targets)}
        with_gradient = [v for name, v in self.vars.items() if self.slots[name] in grad]
        self.with_gradient = [v.name for v in with_gradient]
        if inner:
            weights = [self._copied(w.block, w) for w in weights]
        return fluid.gradients(targets, with_gradient, target_gradients=weights)

    def __call__(self, feed=None, program=None, weights=None):
        """({(slot, k): array, Seq or Rows}, [gradient arrays])"""
        for name, r in self.rows.items():
            rows = self.scope.var(name).get_selected_rows()
            rows.set_rows(r.ids)
            rows.set_height(r.height)
            rows.get_tensor().set(r.values, fluid.CPUPlace())
        feed = dict(self.feed, **(feed or {}))
        feed.update(weights or {})
        fetch = [v for _, _, v in self.fetch] + [g for g in self.grads if g is not None]
        exe = fluid.Executor(PLACE)
        run = lambda feed: exe.run(program or self.program, feed=feed, fetch_list=fetch, scope=self.scope,
                                   return_numpy=False, use_program_cache=True)
        for _ in range(RUNS - 1):
            try:
                run({name: other_order(value) for name, value in feed.items()})
            except fluid.core.EnforceNotMet:  # they decide shapes
                run(feed)
        got = run(feed)
        out = {}
        for (slot, k, _), t in zip(self.fetch, got):
            out[slot, k] = Seq(np.array(t), t.recursive_sequence_lengths()) if t.lod() else np.array(t)
        for slot, variables in self.outs.items():
            for k, v in enumerate(variables):
                if (slot, k) not in out:
                    r = self.scope.find_var(v.name).get_selected_rows()
                    out[slot, k] = Rows(r.rows(), r.height(), np.array(r.get_tensor()))
        if ON_CPU is not None:
            self._note(next(iter(exe._bound.values())).bound.engine if program is None else program._engine)
        present = iter(got[len(self.fetch):])
        return out, [None if g is None else np.array(next(present)) for g in self.grads]

    def _note(self, engine):
        """Notes which of its ops the last run had on a device."""
        said = engine.explain()
        there = re.search(r"ops run on a device; on the CPU: (.*)", said)
        on_cpu = there.group(1).split(", ") if there else None
        for op in {op.type for op in self.program.global_block().ops}:
            ON_CPU.setdefault(op, []).append(on_cpu is None or op in on_cpu)

    def weight_feeds(self, out, dtype):
        """Fixed weights of the outputs, so that the gradient starts from a single number."""
        found = {}
        names = {v.name: (slot, k) for slot, vs in self.outs.items() for k, v in enumerate(vs)}
        for i, (weight, of) in enumerate(self.weights.items()):
            shape = array_of(out[names[of]]).shape
            found[weight] = seeded(i + 17).uniform(0.5, 1.5, shape).astype(dtype)
        return found


def default_grad(c):
    """Input slots whose gradient a case checks."""
    if c.grad is not None:
        return tuple(c.grad)
    if _core.op_slots(c.op) is None or not _core.op_info(c.op)["has_grad"]:
        return ()  # an operator that does not exist fails in its own tests, not for all
    floats = []
    for slot, v in c.inputs.items():
        first = v[0] if isinstance(v, list) else v
        if not isinstance(first, Rows) and array_of(first).dtype == np.float64:
            floats.append(slot)
    return tuple(floats)


def out_counts(c, inputs):
    """Lengths of list outputs: as declared, else as the reference gives them."""
    if c.outs or c.ref is None:
        return c.outs
    return {slot: len(v) for slot, v in expected(c, inputs).items()}
