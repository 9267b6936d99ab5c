"""Shared by the programs model_*.py: weights that differ, and a training that knows how far rounding carries it."""
import numpy

STEPS = 50
FINAL_RTOL = 1e-5  # as of the losses: what Adam makes of rounding is in the deviation of the reference from itself


class Weights(object):
    """Attributes of parameters with a seed each: with a seed of the program alone, equal shapes would start equal."""

    def __init__(self, fluid):
        self.fluid, self.made = fluid, 0

    def __call__(self, scale, **kwargs):
        self.made += 1
        start = self.fluid.initializer.Uniform(-scale, scale, seed=self.made)
        return self.fluid.ParamAttr(initializer=start, **kwargs)


def moved(value):
    """`value`, one part in 1e7 larger: about one unit in the last place of float32."""
    return (numpy.asarray(value, "float64") * (1 + 1e-7)).astype(value.dtype)


def parts_of(ctx):
    """(program, feeds, fetches of each step, gradients fetched at the first): the main one, then `built["then"]`."""
    built = ctx.built
    parts = [dict(built, program=ctx.main)] + [dict(p, program=built["programs"][p["name"]]) for p in built.get("then", ())]
    return [(p["program"], p["feed"], [v.name for v in p["fetch"]], sorted(g.name for _, g in p["pairs"])) for p in parts]


def run_steps(exe, ctx, shift):
    """Arrays by name: fetches of all steps, gradients, as the optimizers take them, of the first."""
    rows, first = {}, {}
    for i, batch in enumerate(ctx.batches()):
        if shift and ctx.built["moved"] in batch:
            batch = dict(batch, **{ctx.built["moved"]: moved(batch[ctx.built["moved"]])})
        for program, feeds, steps, gradients in parts_of(ctx):
            names = steps + (gradients if i == 0 else [])
            feed = ctx.feed(dict((k, batch[k]) for k in feeds))
            for name, value in zip(names, exe.run(program, feed=feed, fetch_list=names)):
                if name in steps:
                    rows.setdefault(name, []).append(value)
                else:
                    first["first:" + name] = value
    return dict(first, **dict((n, numpy.stack(v)) for n, v in rows.items()))


def restart(ctx, shift):
    for name, value in ctx.init.items():
        ctx.set(name, moved(value) if shift and name == ctx.built["moved"] else value)


def mode_train(fluid, exe, ctx):
    """Fifty steps; the recorder also takes them with one input, or one parameter, moved by 1e-7."""
    both = {}
    if ctx.recording:
        restart(ctx, True)
        away = run_steps(exe, ctx, True)
        both = dict(("moved:" + n, v) for n, v in away.items() if not n.startswith("first:"))
        ctx.moved = dict(("moved:" + n, v) for n, v in ctx.persistables().items())
        restart(ctx, False)
    both.update(run_steps(exe, ctx, False))
    return both


def mode_look(fluid, exe, ctx):
    """The results of the model at the start: fetches of its test program, with their sequences."""
    built = ctx.built
    batch = ctx.batches()[0]
    names = [v.name for v in built["test_fetch"]]
    rows = exe.run(built["test"], feed=ctx.feed(dict((k, batch[k]) for k in built["test_feed"])), fetch_list=names,
                   return_numpy=False)
    out = {}
    for name, value in zip(names, rows):
        out[name] = numpy.array(value)
        out[name + "#lod"] = numpy.array(str([list(map(int, x)) for x in value.recursive_sequence_lengths()]))
    return out
