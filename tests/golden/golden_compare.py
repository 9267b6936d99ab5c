"""Compares arrays with recorded ones, and reads and writes such records."""

DEFAULT_RTOL = 1e-5
DEFAULT_ATOL = 1e-7
MOVED = "moved:"   # MOVED + NAME: what the reference computes of NAME when one input is moved by 1e-7
OWN_TIMES = 3      # so many times as far as it deviates from itself then, others may deviate from it


def own_deviation(b, away, stacked):
    """How far the reference is from itself, at the farthest so far: of each step where steps are stacked."""
    import numpy as np
    with np.errstate(invalid="ignore"):
        d = np.nan_to_num(np.abs(b - away), nan=0.0, posinf=0.0)
    if not stacked or not d.ndim:
        return d.max() if d.size else 0.0
    farthest = np.maximum.accumulate(d.reshape(len(d), -1).max(axis=1))
    return farthest.reshape((-1,) + (1,) * (d.ndim - 1))


def compare(got, expected, rtol, atol, rtols=None, skip=(), stacked=False, differing=None):
    """-> (ok, worst error, where). Error of an element: |a-b| / (max(|b|, rms(b)) + atol/rtol).

    The names of the arrays that differ are appended to the list `differing`, with a mark if they are not comparable or
    not finite: "NAME (missing)", "NAME (shape)", "NAME (dtype)" or "NAME (not finite)".
    Where the reference has recorded how far it deviates from itself, OWN_TIMES of that is allowed, too.
    """
    import numpy as np
    worst, where, ratio, bad, hard = 0.0, "", 0.0, [], []
    for k in sorted(expected):
        if k.startswith(MOVED):
            continue
        b = expected[k]
        base = k.split("#")[0]
        rt = (rtols or {}).get(base, rtol)
        if rt is None or any(base.startswith(p) for p in skip):
            continue
        if k not in got:
            hard.append((k + " (missing)", "%s: missing" % k))
            continue
        a = np.asarray(got[k])
        if a.shape != b.shape:
            hard.append((k + " (shape)", "%s: shape %s, expected %s" % (k, a.shape, b.shape)))
            continue
        if b.dtype.kind in "US":
            d = a.astype(str) != b.astype(str)
            if d.any():
                i = tuple(int(x) for x in np.argwhere(d)[0]) if d.ndim else ()
                hard.append((k, "%s%s: %r, expected %r" % (k, list(i), str(a[i])[:80], str(b[i])[:80])))
            continue
        if a.dtype != b.dtype:
            hard.append((k + " (dtype)", "%s: dtype %s, expected %s" % (k, a.dtype, b.dtype)))
            continue
        if b.size == 0:
            continue
        if b.dtype.kind in "biu":
            d = a != b
            if d.any():
                i = tuple(int(x) for x in np.argwhere(d)[0]) if d.ndim else ()
                hard.append((k, "%s%s: %s, expected %s (%d of %d values)" % (
                    k, list(i), a[i], b[i], int(d.sum()), d.size)))
            continue
        a, b = a.astype(np.float64), b.astype(np.float64)
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        with np.errstate(invalid="ignore"):
            fin = np.isfinite(b)
            rms = np.sqrt(np.mean(np.square(b[fin]))) if fin.any() else 0.0
            den = np.maximum(np.where(fin, np.abs(b), 0), rms) + atol / rt
            if MOVED + k in expected:
                moved = expected[MOVED + k].astype(np.float64)
                den = np.maximum(den, own_deviation(b, moved, stacked) * OWN_TIMES / rt)
            err = np.where(same, 0.0, np.abs(a - b) / den)
            err = np.where(np.isnan(err), np.inf, err)
        m = float(err.max())
        if m > rt:
            bad.append(k + " (not finite)" if (fin & ~np.isfinite(a)).any() else k)
        if m / rt > ratio:
            ratio, worst = m / rt, m
            i = np.unravel_index(int(err.argmax()), err.shape) if err.ndim else ()
            where = "%s%s: %.9g, expected %.9g" % (k, [int(x) for x in i], a[i], b[i])
    n = len(bad) + len(hard)
    if hard:
        worst, where = float("inf"), hard[0][1]
    if n:
        where += " (%d of %d arrays differ)" % (n, len(expected))
    if differing is not None:
        differing += bad + [name for name, _ in hard]
    return n == 0, worst, where


def tolerances(mod, mode):
    rtol = getattr(mod, "MODE_RTOL", {}).get(mode, getattr(mod, "RTOL", DEFAULT_RTOL))
    final = getattr(mod, "FINAL_RTOL", max(1e-4, 10 * rtol))
    if isinstance(final, dict):
        final = final.get(mode, max(1e-4, 10 * rtol))
    return rtol, final, getattr(mod, "ATOL", DEFAULT_ATOL)


def save_npz(path, d):
    import numpy as np
    np.savez_compressed(path, **d)


def load_npz(path):
    import numpy as np
    with np.load(path, allow_pickle=False) as z:
        return dict((k, z[k]) for k in z.files)
