"""The mode `build`: a program that is built and not trained, recorded and checked."""
import json
import os
import shutil
import sys

from golden_compare import DEFAULT_RTOL, load_npz, save_npz
from golden_run import build_fresh, last_line, modes_of, name_of, with_scope
from golden_wire import decode_program, op_types


def record_init(fluid, mod, variant, ctx, data):
    import numpy as np
    meta = {"version": implementation_version(fluid), "fluid": fluid.__name__,
            "about": getattr(mod, "ABOUT", ""), "variant": variant,
            "modes": modes_of(mod, variant), "steps": getattr(mod, "STEPS", 6),
            "rtol": getattr(mod, "RTOL", DEFAULT_RTOL), "numpy": np.__version__}
    if hasattr(mod, "build"):
        def go(exe):
            build_fresh(fluid, mod, variant, ctx)
            exe.run(ctx.startup)
            if os.path.isdir(os.path.join(data, "init")):
                shutil.rmtree(os.path.join(data, "init"))
            fluid.io.save_persistables(exe, os.path.join(data, "init"), ctx.main)
            p = ctx.persistables()
            save_npz(os.path.join(data, "init.npz"), p)
            main = ctx.main.desc.serialize_to_string()
            start_ = ctx.startup.desc.serialize_to_string()
            for n, b in (("main.pb", main), ("startup.pb", start_)):
                with open(os.path.join(data, n), "wb") as f:
                    f.write(b)
            for k, prog in sorted(ctx.built.get("programs", {}).items()):
                with open(os.path.join(data, "main.%s.pb" % k), "wb") as f:
                    f.write(prog.desc.serialize_to_string())
            with open(os.path.join(data, "ops.json"), "w") as f:
                blocks = [{"idx": b["idx"], "parent": b["parent"], "ops": b["ops"]}
                          for b in decode_program(main)]
                f.write("[\n" + ",\n".join(
                    '{"idx": %d, "parent": %d, "ops": [\n%s]}' % (
                        b["idx"], b["parent"],
                        ",\n".join(json.dumps(o, sort_keys=True) for o in b["ops"]))
                    for b in blocks) + "\n]\n")
            const = []
            for o in decode_program(start_)[0]["ops"]:
                if o["type"] == "fill_constant":
                    const += o["outputs"]["Out"]
            params = []
            for prog in ctx.programs():
                for v in prog.all_parameters():
                    if v.name not in [q["name"] for q in params]:
                        params.append({"name": v.name, "shape": [int(s) for s in v.shape],
                                       "trainable": bool(getattr(v, "trainable", True))})
            meta.update({
                "feed": ctx.built.get("feed", []),
                "fetch": [name_of(v) for v in ctx.built.get("fetch", [])],
                "loss": name_of(ctx.built["loss"]) if "loss" in ctx.built else None,
                "parameters": params,
                "persistables": dict((k, [list(v.shape), str(v.dtype)]) for k, v in p.items()),
                "constant_init": sorted(set(const) & set(p)),
            })
        with_scope(fluid, ctx, go)
    with open(os.path.join(data, "meta.json"), "w") as f:
        json.dump(meta, f, indent=1, sort_keys=True)
        f.write("\n")


def implementation_version(fluid):
    top = sys.modules.get(fluid.__name__.split(".")[0])
    return getattr(top, "__version__", getattr(fluid, "__version__", "?"))


def check_init(fluid, mod, variant, ctx, data):
    """Names and shapes, constant initial values, loading and saving of the wire format."""
    import numpy as np
    with open(os.path.join(data, "meta.json")) as f:
        meta = json.load(f)
    init = load_npz(os.path.join(data, "init.npz"))
    box = {}

    def go(exe):
        build_fresh(fluid, mod, variant, ctx)
        names = [name_of(v) for v in ctx.built.get("fetch", [])]
        bad = []
        have = set(ctx.persistable_names())
        expected = set(meta["persistables"])
        if have != expected:
            bad.append("persistables missing %s, extra %s" % (
                sorted(expected - have)[:4], sorted(have - expected)[:4]))
        if names != meta["fetch"]:
            d = [(a, b) for a, b in zip(names, meta["fetch"]) if a != b]
            bad.append("fetch names differ %s" % d[:2])
        exe.run(ctx.startup)
        p = ctx.persistables()
        for k, (shape, dtype) in sorted(meta["persistables"].items()):
            if k in p and (list(p[k].shape) != shape or str(p[k].dtype) != dtype):
                bad.append("%s is %s %s, expected %s %s" % (
                    k, list(p[k].shape), p[k].dtype, shape, dtype))
        for k in meta["constant_init"]:
            if k in p and not (p[k] == init[k]).all():
                bad.append("%s: initial value %s, expected %s" % (
                    k, p[k].reshape(-1)[:1], init[k].reshape(-1)[:1]))
        for k in p:
            if k in init:
                ctx.set(k, np.zeros_like(p[k]))
        fluid.io.load_persistables(exe, os.path.join(data, "init"), ctx.main)
        p = ctx.persistables()
        files = os.listdir(os.path.join(data, "init"))
        for k in files:
            if k in p and not np.array_equal(p[k], init[k], ):
                if not (np.isnan(init[k]).any()):
                    bad.append("%s: load_persistables gives other values" % k)
        out = os.path.join(ctx.tmp, "saved")
        fluid.io.save_persistables(exe, out, ctx.main)
        if sorted(os.listdir(out)) != sorted(files):
            bad.append("save_persistables wrote other files: %s" % sorted(
                set(os.listdir(out)) ^ set(files))[:4])
        else:
            for k in sorted(files):
                with open(os.path.join(out, k), "rb") as f, \
                        open(os.path.join(data, "init", k), "rb") as g:
                    if f.read() != g.read():
                        bad.append("%s: saved file differs in bytes" % k)
                        break
        box["bad"] = bad
        note = ""
        try:
            mine = op_types(ctx.main.desc.serialize_to_string())
            with open(os.path.join(data, "main.pb"), "rb") as f:
                ref = op_types(f.read())
            if mine == ref:
                note = "same op list"
            else:
                n = sum(len(x) for x in ref)
                for bi, (x, y) in enumerate(zip(mine, ref)):
                    if x != y:
                        i = next((i for i, (u, v) in enumerate(zip(x, y)) if u != v),
                                 min(len(x), len(y)))
                        note = "op list differs (%d ops, reference %d; first at block %d op %d: %s, reference %s)" % (
                            sum(len(q) for q in mine), n, bi, i,
                            x[i] if i < len(x) else "-", y[i] if i < len(y) else "-")
                        break
                else:
                    note = "op list differs (%d blocks, reference %d)" % (len(mine), len(ref))
        except Exception as e:
            note = "program not decodable (%s)" % last_line(e)
        box["note"] = note

    with_scope(fluid, ctx, go)
    if box["bad"]:
        return False, "; ".join(box["bad"][:3])
    return True, box["note"]
