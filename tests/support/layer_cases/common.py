"""Shared by the cases: the table, fed variables of floats (X) and of ids (I), images, volumes, sequences."""
CASES = {}


def X(f, *s, **k):
    return f.data(k.get('n', 'x'), list(s) or [None, 4], k.get('d', 'float32'), lod_level=k.get('lod', 0))


def I(f, *s, **k):
    return f.data(k.get('n', 'ids'), list(s) or [None, 1], 'int64', lod_level=k.get('lod', 0))


def case(name, fn):
    """Registers fn(fluid, layers), which builds a program and returns what is compared by name."""
    if name in CASES:
        raise ValueError("two cases have the name %r" % name)
    CASES[name] = fn


im = lambda f: X(f, None, 3, 8, 8, n='im')
vol = lambda f: X(f, None, 3, 5, 6, 8, n='vol')
S = lambda f, *s, **k: X(f, *s, lod=k.pop('lod', 1), **k)
