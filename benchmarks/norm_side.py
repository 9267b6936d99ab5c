"""One engine of the table of batch norms (norms.py): builds batch norms of one shape, and runs them when asked.

    norm_side.py --engine anabranch.fluid | paddle.fluid | torch [--core 0]

Requests and answers are those of op_side.py. A job is {"shape", "layout", "pass": "forward" or "backward", "act":
"" or "relu", "apart": whether the value between the two ops stays in memory, "count"}. Every one of the `count` batch
norms has its own inputs and results, so that they come from the cache that a net of that size would use. Python 3.7 is
the oldest interpreter that must read this file.
"""
import argparse
import importlib
import json
import os
import sys
import time

import numpy as np

EPSILON, MOMENTUM = 1e-5, 0.9


def channels_of(job):
    return job["shape"][-1] if job["layout"] == "NHWC" or len(job["shape"]) == 2 else job["shape"][1]


class Fluid:
    """Programs of [batch_norm, relu] or [relu_grad, batch_norm_grad], whose inputs and results lie in a scope."""

    def __init__(self, module, job):
        self.fluid, self.original, self.job = importlib.import_module(module), module.startswith("paddle"), job
        self.program, self.scope = self.fluid.Program(), self.fluid.Scope()
        self.block = self.program.global_block()
        self.executor = self.fluid.Executor(self.fluid.CPUPlace())
        draw = np.random.RandomState(1)
        for number in range(job["count"]):
            getattr(self, job["pass"])(number, draw)

    def var(self, name, number, array=None, kept=True):
        name = "{}.{}".format(name, number)
        if array is None:
            return self.block.create_var(name=name, persistable=kept)
        self.scope.var(name).get_tensor().set(array.astype("float32"), self.fluid.CPUPlace())
        return self.block.create_var(name=name, shape=list(array.shape), dtype="float32", persistable=True)

    def image(self, name, number, draw):
        return self.var(name, number, draw.normal(0.2, 1, self.job["shape"]))

    def row(self, name, number, draw):
        return self.var(name, number, draw.uniform(0.5, 1.5, channels_of(self.job)))

    def attrs(self):
        return dict(data_layout=self.job["layout"], epsilon=EPSILON, momentum=MOMENTUM, is_test=False, use_mkldnn=False,
                    fuse_with_relu=False, use_global_stats=False, trainable_statistics=False)

    def append(self, op, inputs, outputs, attrs):
        if not self.original or not op.endswith("_grad"):
            return self.block.append_op(type=op, inputs=inputs, outputs=outputs, attrs=attrs)
        desc = self.block.desc.append_op()
        desc.copy_from(self.gradient(op[:-len("_grad")], attrs))
        for slot, var in inputs.items():
            if slot in desc.input_names():
                desc.set_input(slot, [var.name])
        for slot, var in outputs.items():
            desc.set_output(slot, [var.name])

    def gradient(self, op, attrs):
        """The description of a gradient, which Fluid 1.8.5 derives from its forward operator only."""
        fluid, block = self.fluid, self.fluid.Program().global_block()
        proto = fluid.framework.OpProtoHolder.instance().get_op_proto(op)

        def made(slots):
            shapes = {slot.name: self.job["shape"] if slot.name in ("X", "Y", "Out") else [channels_of(self.job)]
                      for slot in slots if not slot.dispensable}
            return {name: block.create_var(name={"MeanOut": "Mean", "VarianceOut": "Variance"}.get(name, name), shape=shape,
                                           dtype="float32") for name, shape in shapes.items()}
        made = block.append_op(type=op, inputs=made(proto.inputs), outputs=made(proto.outputs), attrs=attrs)
        return fluid.core.get_grad_op_desc(made.desc, set(), [])[0][0]

    def forward(self, number, draw):
        act, mean, variance = self.job["act"], self.row("mean", number, draw), self.row("variance", number, draw)
        y = self.var("y", number, kept=not act or self.job["apart"])
        inputs = dict(X=self.image("x", number, draw), Mean=mean, Variance=variance, Scale=self.row("scale", number, draw),
                      Bias=self.row("bias", number, draw))
        outputs = dict(Y=y, MeanOut=mean, VarianceOut=variance, SavedMean=self.var("m", number),
                       SavedVariance=self.var("v", number))
        self.append("batch_norm", inputs, outputs, self.attrs())
        if act:
            self.append(act, dict(X=y), dict(Out=self.var("out", number)), {})

    def backward(self, number, draw):
        act, dy = self.job["act"], self.image("dout", number, draw)
        inputs = dict(X=self.image("x", number, draw), Scale=self.row("scale", number, draw),
                      Bias=self.row("bias", number, draw), SavedMean=self.row("m", number, draw),
                      SavedVariance=self.row("v", number, draw))
        if act:
            made = self.var("dy", number, kept=self.job["apart"])
            grads = {"Out": self.image("out", number, draw), "Out@GRAD": dy}
            self.append(act + "_grad", grads, {"X@GRAD": made}, dict(use_mkldnn=False))
            dy = made
        outputs = {slot: self.var(slot, number) for slot in ("X@GRAD", "Scale@GRAD", "Bias@GRAD")}
        self.append("batch_norm_grad", dict(inputs, **{"Y@GRAD": dy}), outputs, self.attrs())

    def run(self):
        self.executor.run(self.program, feed={}, fetch_list=[], scope=self.scope, use_program_cache=True)


class Torch:
    """The same calls of PyTorch's library; `triad`, x + 2 y, shows the bandwidth that arrays of this size reach."""

    def __init__(self, job, threads):
        import torch
        torch.set_num_threads(threads)
        self.calls = []
        for _ in range(job["count"]):
            self.calls.append(getattr(self, job["pass"])(torch, job))

    def image(self, torch, job):
        shape = job["shape"]
        if job["layout"] == "NHWC" and len(shape) == 4:
            n, h, w, c = shape
            return torch.randn(n, c, h, w).contiguous(memory_format=torch.channels_last)
        return torch.randn(*shape)

    def triad(self, torch, job):
        a, b, c = (self.image(torch, job) for _ in range(3))
        return lambda: torch.add(a, b, alpha=2, out=c)

    def forward(self, torch, job):
        x, c = self.image(torch, job), channels_of(job)
        scale, bias, mean, variance = (torch.rand(c) + 0.5 for _ in range(4))

        def run():
            y = torch.native_batch_norm(x, scale, bias, mean, variance, True, 1 - MOMENTUM, EPSILON)[0]
            return torch.relu_(y) if job["act"] else y
        return run

    def backward(self, torch, job):
        x, dy, out, c = self.image(torch, job), self.image(torch, job), self.image(torch, job), channels_of(job)
        scale, mean, inverse, m, v = (torch.rand(c) + 0.5 for _ in range(5))

        def run():
            g = torch.ops.aten.threshold_backward(dy, out, 0) if job["act"] else dy
            return torch.ops.aten.native_batch_norm_backward(g, x, scale, mean, inverse, m, v, True, EPSILON,
                                                             [True, True, True])
        return run

    def run(self):
        for call in self.calls:
            call()


def timed(work, clock, runs=1):
    begin = clock()
    for _ in range(runs):
        work.run()
    return (clock() - begin) / runs


def answer(args, request, work, clock):
    if "job" not in request:
        return work, dict(seconds=timed(work, clock, request["runs"]))
    job = request["job"]
    work = Torch(job, 1 if args.core is not None else 2) if args.engine == "torch" else Fluid(args.engine, job)
    timed(work, clock, 2)
    return work, dict(seconds=timed(work, clock))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", required=True, help="torch, or a module with Fluid's API")
    parser.add_argument("--core", type=int, help="measures CPU time on this core")
    args = parser.parse_args()
    clock = time.perf_counter
    if args.core is not None:
        os.sched_setaffinity(0, {args.core})
        clock = time.process_time
    work = None
    print("answer {}", flush=True)
    for line in sys.stdin:
        try:
            work, said = answer(args, json.loads(line), work, clock)
        except Exception as error:
            work, said = None, dict(error="{}: {}".format(type(error).__name__, str(error).strip()[-300:]))
        print("answer " + json.dumps(said), flush=True)


if __name__ == "__main__":
    main()
