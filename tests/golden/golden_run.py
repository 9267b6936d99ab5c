"""Runs one program in one mode: what programs of the folder get as `ctx`, and their fetches as arrays."""
import inspect
import json
import os
import shutil
import tempfile

from golden_wire import decode_program, op_types

SEED = 90


def call(fn, *args):
    """Call fn with the first args, up to the number that it takes (build(fluid) or build(fluid, variant))."""
    params = [p for p in inspect.signature(fn).parameters.values()
              if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    return fn(*args[:len(params)])


def modes_of(mod, variant):
    modes = getattr(mod, "MODES", ["exe"])
    if isinstance(modes, dict):
        modes = modes.get(variant, modes.get("*", ["exe"]))
    return list(modes)


class Ctx(object):
    """The built programs and helpers that a custom mode gets."""

    def __init__(self, fluid, mod, variant, data, recording):
        self.fluid, self.mod, self.variant = fluid, mod, variant
        self.data, self.recording = data, recording
        self.place = fluid.CPUPlace()
        self.main = self.startup = self.built = self.scope = None
        self.tmp = None
        self.init = None
        self.moved = {}     # recording: persistables after steps with an input moved, under "moved:NAME"

    # feeds
    def batches(self, mode="exe"):
        out = []
        for d in call(self.mod.batches, mode, self.variant):
            out.append(d)
            if len(out) == getattr(self.mod, "STEPS", 6):
                break
        return out

    def feed(self, d):
        r = {}
        for k, v in d.items():
            if isinstance(v, tuple):
                r[k] = self.fluid.create_lod_tensor(v[0], [list(x) for x in v[1]], self.place)
            else:
                r[k] = v
        return r

    # variables
    def programs(self):
        ps = [self.main]
        extra = (self.built or {}).get("programs", {})
        for k in sorted(extra):
            ps.append(extra[k])
        return ps

    def persistable_names(self):
        names = []
        for p in self.programs():
            for v in p.list_vars():
                if v.persistable and v.name not in names and v.name not in ("feed", "fetch") \
                        and not _is_special(v):
                    names.append(v.name)
        return sorted(names)

    def get(self, name):
        return tensor_array(self.scope.find_var(name).get_tensor())

    def set(self, name, array):
        v = self.scope.find_var(name)
        if v is None:
            v = self.scope.var(name)
        v.get_tensor().set(array, self.place)

    def persistables(self):
        out = {}
        for n in self.persistable_names():
            v = self.scope.find_var(n)
            if v is None:
                continue
            a = tensor_array(v.get_tensor())
            if a is not None:
                out[n] = a
        return out

    def keep(self, path, name):
        """Keep a file (or folder) written by the reference as DATA/NAME/files/name."""
        if self.recording:
            dst = os.path.join(self.data, "files", name)
            if os.path.isdir(dst):
                shutil.rmtree(dst)
            if not os.path.isdir(os.path.dirname(dst)):
                os.makedirs(os.path.dirname(dst))
            (shutil.copytree if os.path.isdir(path) else shutil.copy)(path, dst)

    def kept(self, name):
        return os.path.join(self.data, "files", name)

    def decode(self, path):
        with open(path, "rb") as f:
            return decode_program(f.read())

    def op_types(self, path):
        """Operator types of a saved program file (every block)."""
        with open(path, "rb") as f:
            return ["%d:%s" % (i, t) for i, b in enumerate(op_types(f.read())) for t in b]


def _is_special(v):
    try:
        t = str(v.type)
    except Exception:
        return False
    return any(s in t for s in ("READER", "RAW", "FEED_MINIBATCH", "FETCH_LIST", "STEP_SCOPES"))


def tensor_array(t):
    import numpy as np
    try:
        if hasattr(t, "_is_initialized") and not t._is_initialized():
            return None
    except Exception:
        pass
    try:
        return np.array(t)
    except Exception:
        return None


def name_of(v):
    return v if isinstance(v, str) else v.name


def fetch_arrays(res):
    """LoDTensors (or arrays) of one run -> [(array, lod or None)]"""
    import numpy as np
    out = []
    for t in res:
        lod = None
        if isinstance(t, (list, tuple)):
            t = np.concatenate([np.array(x).reshape(-1) for x in t]) if len(t) else np.zeros(0)
        elif hasattr(t, "recursive_sequence_lengths"):
            l = t.recursive_sequence_lengths()
            lod = json.dumps([[int(i) for i in x] for x in l]) if l else None
        out.append((np.array(t), lod))
    return out


def pack(names, rows):
    """rows: per step a list of (array, lod). Stack over steps where shapes agree."""
    import numpy as np
    out = {}
    for k, n in enumerate(names):
        col = [r[k][0] for r in rows]
        lods = [r[k][1] for r in rows]
        if all(c.shape == col[0].shape and c.dtype == col[0].dtype for c in col):
            out[n] = np.stack(col)
        else:
            for i, c in enumerate(col):
                out["%s#%d" % (n, i)] = c
        if any(l is not None for l in lods):
            out[n + "#lod"] = np.array([l or "" for l in lods])
    return out


def build_fresh(fluid, mod, variant, ctx):
    """Fresh Programs (the names are fresh for the whole mode, see with_scope)."""
    main, startup = fluid.Program(), fluid.Program()
    main.random_seed = SEED
    startup.random_seed = SEED
    ctx.main, ctx.startup = main, startup
    if hasattr(mod, "build"):
        with fluid.program_guard(main, startup):
            ctx.built = call(mod.build, fluid, variant)
        ctx.main = ctx.built.get("main", main)
        ctx.startup = ctx.built.get("startup", startup)
    else:
        ctx.built = {}


def start(ctx, exe, init):
    if not hasattr(ctx.mod, "build"):
        return
    exe.run(ctx.startup)
    if init is not None:
        for k in init:
            ctx.set(k, init[k])


def parallel_kind(mode):
    for p in ("allreduce", "reduce", "pe"):
        if mode.startswith(p) and mode[len(p):].isdigit():
            return p, int(mode[len(p):])
    return None, 0


def run_mode(ctx, exe, mode):
    """-> dict of arrays"""
    fluid, built = ctx.fluid, ctx.built
    custom = getattr(ctx.mod, "mode_" + mode, None)
    if custom is not None:
        return custom(fluid, exe, ctx)
    fetch = built.get("fetch", [])
    names = [name_of(f) for f in fetch]
    feeds = ctx.batches(mode)
    kind, n = parallel_kind(mode)
    if kind:
        os.environ["CPU_NUM"] = str(n)
        bs = fluid.BuildStrategy()
        bs.reduce_strategy = (fluid.BuildStrategy.ReduceStrategy.Reduce if kind == "reduce"
                              else fluid.BuildStrategy.ReduceStrategy.AllReduce)
        loss = name_of(built["loss"])
        if kind == "pe":
            pe = fluid.ParallelExecutor(use_cuda=False, loss_name=loss, main_program=ctx.main,
                                        build_strategy=bs)

            def step(d):
                return pe.run(fetch_list=names, feed=ctx.feed(d), return_numpy=False)
        else:
            prog = fluid.CompiledProgram(ctx.main).with_data_parallel(
                loss_name=loss, build_strategy=bs)

            def step(d):
                return exe.run(prog, feed=ctx.feed(d), fetch_list=fetch, return_numpy=False)
        return pack(names, [fetch_arrays(step(d)) for d in feeds])
    if mode in ("exe", "infer"):
        rows = []
        for d in feeds:
            rows.append(fetch_arrays(exe.run(ctx.main, feed=ctx.feed(d), fetch_list=fetch,
                                             return_numpy=False)))
        if mode == "exe":
            return pack(names, rows)
        tf = built.get("test_fetch", fetch)
        rows = []
        for d in feeds:
            keep = built.get("test_feed")
            if keep:
                d = dict((k, d[k]) for k in keep)
            rows.append(fetch_arrays(exe.run(built["test"], feed=ctx.feed(d), fetch_list=tf,
                                             return_numpy=False)))
        return pack([name_of(f) for f in tf], rows)
    raise NotImplementedError("mode %s" % mode)


def last_line(e):
    s = [x for x in str(e).strip().splitlines() if x.strip()]
    if len(s) > 1:  # C++ errors put the summary after a header
        pick = [x for x in s if "Error:" in x or "Hint" in x]
        s = pick or s
    return ("%s: %s" % (type(e).__name__, s[-1].strip() if s else ""))[:300]


def scratch(ctx, fn):
    ctx.tmp = tempfile.mkdtemp(prefix="golden_")
    old = os.getcwd()
    os.chdir(ctx.tmp)  # some implementations leave files where they run
    try:
        return fn()
    finally:
        os.chdir(old)
        shutil.rmtree(ctx.tmp, ignore_errors=True)


def with_scope(fluid, ctx, fn):
    scope = fluid.Scope() if hasattr(fluid, "Scope") else fluid.core.Scope()
    ctx.scope = scope
    with fluid.scope_guard(scope), fluid.unique_name.guard():
        exe = fluid.Executor(ctx.place)
        return scratch(ctx, lambda: fn(exe))
