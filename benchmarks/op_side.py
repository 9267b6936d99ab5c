"""One engine of the operator table: builds programs of an operator and runs them when asked (ops.py).

    op_side.py --fluid anabranch.fluid [--core 0]

Each line of standard input is a request in JSON, each line "answer {...}" of standard output its answer:

    {"job": path, "count": n}    builds a program of n operators from job.json and job.npz at that path, and runs it twice
    {"runs": n}                  runs it n times: {"seconds": of one run}

Inputs and results are persistable and lie in a scope, so that nothing is fed, fetched or left out. Python 3.7 is the
oldest interpreter that must read this file. With --core the engine has that core only, and seconds are those for which
its process was at work: others may keep the machine busy.
"""
import argparse
import importlib
import json
import os
import sys
import time

import numpy as np


class Job:
    """A program of `count` operators: one after the other where results fit the input, else side by side."""

    def __init__(self, fluid, path, count):
        with open(path + ".json") as text:
            self.job = json.load(text)
        self.fluid, self.arrays = fluid, np.load(path + ".npz")
        self.program, self.scope = fluid.Program(), fluid.Scope()
        self.block, self.kinds = self.program.global_block(), fluid.core.VarDesc.VarType
        self.executor = fluid.Executor(fluid.CPUPlace())
        inputs = {slot: [self._input(v) for v in values] for slot, values in self.job["inputs"].items()}
        outputs, attrs = self._known(self.job["type"])
        for number in range(count):
            made = {}
            for slot, width in self.job["outputs"].items():
                if slot in outputs:
                    made[slot] = self._outputs(inputs, slot, width, number, count)
            self.block.append_op(type=self.job["type"], inputs=inputs, outputs=made,
                                 attrs={k: v for k, v in self.job["attrs"].items() if k in attrs})
            if self.job["chain"]:
                source, target = self.job["chain"]
                inputs = dict(inputs, **{source: made[target]})
        self.last = made

    def _known(self, op):
        """Outputs and attributes that this engine's operator has."""
        framework = sys.modules[self.fluid.__name__ + ".framework"]
        try:
            proto = framework.OpProtoHolder.instance().get_op_proto(op)
        except AttributeError:
            return set(self.job["outputs"]), set(self.job["attrs"])
        return {v.name for v in proto.outputs}, {a.name for a in proto.attrs}

    def _input(self, value):
        array, lengths = self.arrays[value["name"]], value["lengths"]
        held = self.scope.var(value["name"])
        if value["height"]:
            var = self.block.create_var(name=value["name"], shape=[value["height"]] + list(array.shape[1:]),
                                        dtype=str(array.dtype), type=self.kinds.SELECTED_ROWS, persistable=True)
            rows = held.get_selected_rows()
            rows.set_rows(value["ids"])
            rows.set_height(value["height"])
            rows.get_tensor().set(array, self.fluid.CPUPlace())
            return var
        var = self.block.create_var(name=value["name"], shape=list(array.shape), dtype=str(array.dtype),
                                    lod_level=len(lengths), persistable=True)
        tensor = held.get_tensor()
        tensor.set(array, self.fluid.CPUPlace())
        if lengths:
            tensor.set_recursive_sequence_lengths(lengths)
        return var

    def _outputs(self, inputs, slot, width, number, count):
        update = self.job["updates"].get(slot)
        if update:
            return inputs[update]
        chained = self.job["chain"] and slot == self.job["chain"][1] and number + 1 < count
        name = "{}.{}.{}".format(self.job["type"], number, slot)
        return [self.block.create_var(name="{}.{}".format(name, k), persistable=not chained) for k in range(width)]

    def run(self):
        self.executor.run(self.program, feed={}, fetch_list=[], scope=self.scope, use_program_cache=True)

    def tame(self):
        """Whether all results are numbers of ordinary size: others may take the processor longer, or nothing at all."""
        for variables in self.last.values():
            for v in variables:
                if v.type == self.kinds.LOD_TENSOR:
                    try:
                        array = np.array(self.scope.find_var(v.name).get_tensor())
                    except Exception:  # never written
                        continue
                    if array.dtype.kind == "f":
                        size = np.abs(array[array != 0])
                        if not np.isfinite(array).all() or (size.size and (size.min() < 1e-30 or size.max() > 1e30)):
                            return False
        return True

    def shapes(self):
        return {slot: [list(v.shape) for v in variables] for slot, variables in self.last.items()}


def answer(fluid, request, job, clock):
    if "job" in request:
        job = Job(fluid, request["job"], request["count"])
        job.run()
        begin = clock()
        job.run()
        taken = clock() - begin
        return job, dict(seconds=taken, tame=job.tame(), shapes=job.shapes())
    begin = clock()
    for _ in range(request["runs"]):
        job.run()
    return job, dict(seconds=(clock() - begin) / request["runs"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fluid", default="paddle.fluid", help="module with Fluid's API to measure")
    parser.add_argument("--core", type=int, help="measures CPU time on this core")
    args = parser.parse_args()
    clock = time.perf_counter
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
        clock = time.process_time
    fluid = importlib.import_module(args.fluid)
    job = None
    print("answer {}", flush=True)
    for line in sys.stdin:
        try:
            job, said = answer(fluid, json.loads(line), job, clock)
        except Exception as error:
            job, said = None, dict(error="{}: {}".format(type(error).__name__, str(error).strip()[-300:]))
        print("answer " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
