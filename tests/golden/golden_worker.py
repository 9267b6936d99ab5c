"""The process of one program: builds it and runs its modes, records or checks them and prints a line each."""
from __future__ import print_function

import importlib
import json
import os
import sys
import time

from golden_compare import compare, load_npz, save_npz, tolerances
from golden_init import check_init, record_init
from golden_run import Ctx, build_fresh, last_line, name_of, run_mode, start, with_scope

RESULT = "@@golden@@ "


def load_program(path):
    import importlib.util
    name = os.path.basename(path)[:-3]
    spec = importlib.util.spec_from_file_location("golden_program_" + name, path)
    mod = importlib.util.module_from_spec(spec)
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    spec.loader.exec_module(mod)
    return mod


def emit(**kw):
    sys.stdout.flush()
    print(RESULT + json.dumps(kw))
    sys.stdout.flush()


def worker(args):
    import traceback as tb
    path = args.program
    mod = load_program(path)
    variant = args.variant or None
    recording = args.action == "record"
    data = args.data
    if recording:
        # creation call stacks would put this machine's paths into every saved program
        tb.extract_stack = lambda *a, **k: []
        tb.format_stack = lambda *a, **k: []
    os.environ.setdefault("CPU_NUM", "1")
    fluid = importlib.import_module(args.fluid)
    todo = args.modes.split(",")
    ctx = Ctx(fluid, mod, variant, data, recording)
    has_build = hasattr(mod, "build")

    def fail(mode, e, t0):
        if os.environ.get("GOLDEN_TRACE"):
            import traceback
            traceback.print_exc()
        emit(mode=mode, ok=False, err=None, where=last_line(e), sec=round(time.time() - t0, 2))

    if "build" in todo:
        emit(begin="build")
        t0 = time.time()
        todo.remove("build")
        try:
            if recording:
                record_init(fluid, mod, variant, ctx, data)
                emit(mode="build", ok=True, err=0, where="", sec=round(time.time() - t0, 2))
            elif has_build:
                ok, where = check_init(fluid, mod, variant, ctx, data)
                emit(mode="build", ok=ok, err=None, where=where, sec=round(time.time() - t0, 2))
            else:
                emit(mode="build", ok=True, err=0, where="no common graph", sec=0)
        except Exception as e:
            fail("build", e, t0)
            if recording:
                return
    init = load_npz(os.path.join(data, "init.npz")) if has_build else None
    ctx.init = init
    for mode in todo:
        emit(begin=mode)
        t0 = time.time()
        try:
            os.environ["CPU_NUM"] = "1"
            box = {}

            def go(exe):
                ctx.moved = {}
                build_fresh(fluid, mod, variant, ctx)
                start(ctx, exe, init)
                box["trace"] = run_mode(ctx, exe, mode)
                box["final"] = dict(ctx.persistables(), **ctx.moved) if has_build else {}

            with_scope(fluid, ctx, go)
            rtol, frtol, atol = ((args.looser or 1) * t for t in tolerances(mod, mode))
            tp = os.path.join(data, "trace_%s.npz" % mode)
            fp = os.path.join(data, "final_%s.npz" % mode)
            if recording:
                save_npz(tp, box["trace"])
                if has_build:
                    save_npz(fp, box["final"])
                note = loss_note(ctx, box["trace"])
                emit(mode=mode, ok=True, err=0, where=note, sec=round(time.time() - t0, 2))
                continue
            rtols = getattr(mod, "RTOLS", None)
            skip = tuple(getattr(mod, "SKIP", {}).get(mode, ()))
            arrays, finals = [], []
            ok, err, where = compare(box["trace"], load_npz(tp), rtol, atol, rtols, skip, True, arrays)
            if os.path.exists(fp):
                ok2, e2, w2 = compare(box["final"], load_npz(fp), frtol, atol,
                                     getattr(mod, "FINAL_RTOLS", None), skip, differing=finals)
                if ok and not ok2 or (ok == ok2 and e2 / frtol > err / rtol):
                    err, where = e2, "final " + w2
                ok = ok and ok2
            emit(mode=mode, ok=ok, err=err if err != float("inf") else None, where=where,
                 arrays=arrays + ["final " + name for name in finals], sec=round(time.time() - t0, 2))
        except Exception as e:
            fail(mode, e, t0)


def loss_note(ctx, trace):
    import numpy as np
    if not ctx.built or "loss" not in ctx.built:
        return ""
    n = name_of(ctx.built["loss"])
    if n in trace:
        a = trace[n]
        f = lambda x: " ".join("%.6g" % v for v in np.asarray(x).reshape(-1)[:4])
        return "loss %s -> %s" % (f(a[0]), f(a[-1]))
    ks = [k for k in trace if k.startswith(n + "#") and not k.endswith("lod")]
    return "loss (uneven shapes) %s" % " ".join(str(trace[k].reshape(-1)[:4]) for k in ks[:1] + ks[-1:])
