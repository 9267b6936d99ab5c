"""Runs cases (plain data, see cases.py) on one engine: engine.py MODULE, where MODULE has Fluid's names.

Reads pickled cases from its input and writes a pickled record for each. A child forked from a process that has imported
MODULE does the work, so that a case that kills it costs a fork and not an import. Runs on Python 3.7 and later.
"""

import importlib
import mmap
import os
import pickle
import resource
import shutil
import signal
import struct
import sys
import warnings

import numpy as np

MEMORY_BYTES = 6 << 30
TENSOR, ROWS, ARRAY = "tensor", "rows", "array"
#: Kinds of variables that hold no numbers.
OTHER = {"table": "LOD_RANK_TABLE", "scopes": "STEP_SCOPES", "bytes": "RAW"}


def packed(array):
    """An array as plain data: two versions of NumPy do not read each other's pickles."""
    return str(array.dtype), array.shape, np.ascontiguousarray(array).tobytes()


def unpacked(data):
    return np.frombuffer(data[2], data[0]).reshape(data[1]).copy()


def seeds_of(array):
    """Where the gradient starts: numbers of both signs that follow from their places."""
    return (((np.arange(array.size) * 7919 + 13) % 101 - 50.5) / 50).astype(array.dtype).reshape(array.shape)


class OneRun:
    """A case as a program of ``fluid`` in its own scope."""

    def __init__(self, fluid, case):
        self.fluid, self.case = fluid, case
        self.kinds = fluid.core.VarDesc.VarType
        self.scope, self.main = fluid.Scope(), fluid.Program()

    def build(self):
        case, block = self.case, self.main.global_block()
        self.vars, blocks = {}, [block]
        self._declare(block, 0)
        for op in case.get("before", ()):
            self._append(block, *op)
        for number, ops in enumerate(case.get("blocks", ()), 1):
            blocks.append(self.main._create_block(parent_idx=0))
            self._declare(blocks[-1], number)
            for op in ops:
                self._append(blocks[-1], *op)
            self.main._rollback()
        attrs = {k: blocks[v[1]] if k == "sub_block" else v for k, v in case["attrs"].items()}
        self._append(block, case["op"], case["ins"], case["outs"], attrs)
        for op in case.get("after", ()):
            self._append(block, *op)
        slots = dict(case["outs"], read=case.get("read", []))
        self.outs = {slot: [self.vars[n] for n in names] for slot, names in slots.items()}
        for name in written(case):
            self.vars[name].persistable = case["vars"][name]["kind"] not in OTHER

    def _declare(self, block, number):
        for name, v in self.case["vars"].items():
            if v.get("block", 0) == number:
                self.vars[name] = self._variable(block, name, v)
                self.vars[name].stop_gradient = False

    def _append(self, block, op, ins, outs, attrs):
        ins, outs = ({slot: [self.vars[n] for n in names] for slot, names in slots.items()} for slots in (ins, outs))
        block.append_op(type=op, inputs=ins, outputs=outs, attrs=dict(attrs))

    def _variable(self, block, name, v):
        name = v.get("name", name)
        options = {"name": name, "persistable": v.get("value") is not None}
        if v["kind"] == ROWS:
            options["type"] = self.kinds.SELECTED_ROWS
        elif v["kind"] == ARRAY:
            options["type"] = self.kinds.LOD_TENSOR_ARRAY
        elif v["kind"] in OTHER:
            return block.create_var(name=name, type=getattr(self.kinds, OTHER[v["kind"]]))
        if v.get("shape") is not None:
            options["shape"] = list(v["shape"])
        if v.get("lod"):
            options["lod_level"] = len(v["lod"])
        return block.create_var(dtype=v["dtype"], **options)

    def differentiate(self, outs):
        """Appends the gradient of the outputs that the case names, by its inputs of numbers."""
        targets, starts = [], []
        for slot in self.case["grad"]:
            for v in self.outs.get(slot, []):
                value = outs.get(v.name)
                if value is None or value[0] != TENSOR or not value[1][0].startswith("float"):
                    continue
                start = self.main.global_block().create_var(
                    name=v.name + "/start", shape=v.shape, dtype=value[1][0], persistable=True
                )
                start.stop_gradient = True
                targets.append(v)
                starts.append(start)
                self._set_tensor(start.name, seeds_of(unpacked(value[1])), value[2])
        if not targets:
            return False
        wanted = [self.vars[n] for n in self.case["wanted"]]
        self.fluid.gradients(targets, wanted, target_gradients=starts)
        made = {n for op in self.main.global_block().ops[1:] for n in op.output_arg_names}
        self.grads = [n + "@GRAD" for n in self.case["wanted"] if n + "@GRAD" in made]
        for n in self.grads:
            self.main.global_block().var(n).persistable = True
        return True

    def run(self):
        for name, v in self.case["vars"].items():
            if v.get("value") is not None:
                self._set(name, v)
        self.fluid.Executor(self.fluid.CPUPlace()).run(self.main, scope=self.scope)

    def _set_tensor(self, name, array, lod=None, tensor=None):
        if tensor is None:
            tensor = self.scope.var(name).get_tensor()
        tensor.set(array, self.fluid.CPUPlace())
        if lod:
            tensor.set_lod(lod)

    def _set(self, name, v):
        if v["kind"] == ROWS:
            rows = self.scope.var(name).get_selected_rows()
            rows.set_rows(list(v["rows"]))
            rows.set_height(v["height"])
            rows.sync_index()
            self._set_tensor(name, unpacked(v["value"]), None, rows.get_tensor())
        else:
            self._set_tensor(name, unpacked(v["value"]), [_ends(level) for level in v.get("lod") or []])

    def value(self, name):
        """(kind, array, LoD or ids ...) of a variable after a run; None when nothing was written."""
        var = self.scope.find_var(name)
        if var is None:
            return None
        kind = self.main.global_block().var(name).type
        try:
            if kind == self.kinds.SELECTED_ROWS:
                rows = var.get_selected_rows()
                return ROWS, packed(np.array(rows.get_tensor())), list(rows.rows()), rows.height()
            if kind == self.kinds.LOD_TENSOR_ARRAY:
                return (ARRAY,) + tuple((packed(np.array(t)), t.lod()) for t in var.get_lod_tensor_array())
            tensor = var.get_tensor()
            if not tensor._is_initialized():
                return None
            return TENSOR, packed(np.array(tensor)), tensor.lod()
        except Exception:  # an unwritten variable has no array, in each engine by another error
            return None


def written(case):
    """The variables that are compared, or read by the gradient alone."""
    return [n for names in case["outs"].values() for n in names] + list(case.get("read", ()))


def _ends(lengths):
    ends = [0]
    for n in lengths:
        ends.append(ends[-1] + n)
    return ends


def attempt(fluid, case):
    """The record of a case: how far it came, and what it wrote."""
    record = {"outs": {}, "grads": None}
    stage = "build"
    try:
        one = OneRun(fluid, case)
        one.build()
        stage = "run"
        one.run()
        record["outs"] = {n: one.value(n) for n in written(case)}
        stage = "gradient build"
        if case["grad"] and case["wanted"]:
            again = OneRun(fluid, case)
            again.build()
            if again.differentiate(record["outs"]):
                stage = "gradient run"
                again.run()
                record["grads"] = {n: again.value(n) for n in again.grads}
        stage = "done"
    except Exception as e:
        record["error"] = "%s: %s" % (type(e).__name__, _last_lines(str(e)))
    record["stage"] = stage
    return record


def _last_lines(text):
    lines = [line.strip() for line in text.splitlines() if line.strip() and not line.startswith("-")]
    found = [n for n, line in enumerate(lines) if "Error" in line]
    said = " ".join(lines[found[-1] :] if found else lines)
    return said if len(said) < 700 else said[:300] + " ... " + said[-400:]


def read(fd):
    def exactly(n):
        data = b""
        while len(data) < n:
            got = os.read(fd, n - len(data))
            if not got:
                os._exit(0)
            data += got
        return data

    return pickle.loads(exactly(struct.unpack("<Q", exactly(8))[0]))  # noqa: S301  of the process that started this one


def write(fd, record):
    data = pickle.dumps(record, 4)
    data = memoryview(struct.pack("<Q", len(data)) + data)
    while data:
        data = data[os.write(fd, data) :]


def _forget_files():
    """Removes the files of earlier cases: a case must do the same after any other one."""
    for name in os.listdir("."):
        shutil.rmtree(name) if os.path.isdir(name) else os.remove(name)


def serve(fluid, into, answered):
    for number in (signal.SIGALRM, signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE, signal.SIGBUS, signal.SIGILL):
        signal.signal(number, signal.SIG_DFL)  # handlers of the engine print stacks, and some never end
    while True:
        case = read(0)
        _forget_files()
        answered[0] = 0
        signal.alarm(case["patience_s"])
        with fluid.unique_name.guard(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            record = attempt(fluid, case)
        signal.alarm(0)
        answered[0] = 1  # one that dies afterwards, of memory it has broken before, owes nothing
        write(into, record)


def main():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    answers = os.dup(1)
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, 1)  # what operators and stacks of dying children print
    os.dup2(nothing, 2)
    np.seterr(all="ignore")
    fluid = importlib.import_module(sys.argv[1])
    write(answers, {"stage": "ready"})
    answered = mmap.mmap(-1, 1)
    while True:
        answered[0] = 1
        child = os.fork()
        if child == 0:
            serve(fluid, answers, answered)
        status = os.waitpid(child, 0)[1]
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == 0:
            return
        if answered[0]:
            continue
        hung = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGALRM, signal.SIGKILL)
        write(answers, {"stage": "hangs" if hung else "dies", "error": "status %d" % status, "outs": {}, "grads": None})


if __name__ == "__main__":
    main()
