"""Changes of a OneOp: each takes (random numbers, op) and says what it did; None: there was nothing to change."""

import numpy as np
import odd
from one_op import EMPTY, KINDS, Var
from op_case import Rows, Seq, array_of

from anabranch import _core


def _put(v, numbers):
    if isinstance(v.value, Seq):
        v.value = Seq(numbers, v.value.lengths)
    elif isinstance(v.value, Rows):
        v.value = Rows(v.value.ids, v.value.height, numbers)
    else:
        v.value = numbers


def _input(r, one):
    name = r.choice(one.valued() or [None])
    return name, one.vars.get(name)


def _place(r, slots):
    return r.choice([(slot, k) for slot, names in slots.items() for k in range(len(names))] or [None])


def without_slot(r, one):
    side = r.choice([one.ins, one.outs])
    if side:
        slot = r.choice(list(side))
        if r.random() < 0.5:
            del side[slot]
        else:
            side[slot] = []
        return "without " + slot


def empty_name(r, one):
    side = r.choice([one.ins, one.outs])
    at = _place(r, side)
    if at:
        side[at[0]][at[1]] = EMPTY
        return "%s[%d] is empty" % at


def dtype(r, one):
    name, v = _input(r, one)
    if v:
        with np.errstate(invalid="ignore"):
            _put(v, array_of(v.value).astype(r.choice(odd.DTYPES)))
        v.declares_dtype = r.random() < 0.7
        return "%s as %s" % (name, array_of(v.value).dtype)


def shape(r, one):
    name, v = _input(r, one)
    if not v:
        return None
    a = array_of(v.value)
    axis = r.randrange(max(a.ndim, 1))
    ways = [
        lambda: a[None],
        lambda: a[..., None],
        lambda: a.reshape(-1),
        lambda: a.T,
        lambda: odd.array(r, [r.choice([0, 1, 2, 3, 5, 7]) for _ in range(r.choice([1, 2, 3, 4, 5, 9]))], str(a.dtype)),
    ]
    if a.ndim:
        ways += [
            lambda: np.take(a, [], axis),
            lambda: np.take(a, range(min(1, a.shape[axis])), axis),
            lambda: np.concatenate([a, np.take(a, range(min(1, a.shape[axis])), axis)], axis),
        ]
    if a.ndim > 1 and len(a):
        ways.append(lambda: a[0])
    changed = r.choice(ways)()
    _put(v, np.ascontiguousarray(changed).reshape(changed.shape))
    v.declared = r.choice(["same", "old", "unknown"])
    return "%s has shape %s, declared %s" % (name, changed.shape, v.declared)


def numbers(r, one):
    name, v = _input(r, one)
    if v:
        a = array_of(v.value)
        _put(v, odd.array(r, a.shape, str(a.dtype)))
        return "%s has other numbers" % name


def one_number(r, one):
    name, v = _input(r, one)
    if not v or not array_of(v.value).size or array_of(v.value).dtype == bool:
        return None
    a = np.array(array_of(v.value))
    if a.dtype.kind in "iu":
        limits = np.iinfo(a.dtype)
        number = r.choice([limits.max, limits.min, -1 if limits.min else 0, min(10**6, limits.max)])
    else:
        number = r.choice([np.nan, np.inf, -np.inf, 1e38 if a.dtype != np.float16 else 6e4, -1e-40])
    a.ravel()[r.randrange(a.size)] = number
    _put(v, a)
    return "%s holds %s" % (name, number)


def sequences(r, one):
    name, v = _input(r, one)
    if v and not isinstance(v.value, Rows):
        a = array_of(v.value)
        made = odd.lengths(r, a.shape[0] if a.ndim else 1, r.random() < 0.7) if r.random() < 0.85 else []
        v.value, v.lod_level = Seq(a, made) if made else a, r.choice([len(made), 0, 1, 2])
        return "%s has sequences %s, declared %d levels" % (name, made, v.lod_level)


def alias(r, one):
    """An output, or another input, is an input; or two outputs are one."""
    source, target = r.choice([(one.ins, one.outs), (one.ins, one.ins), (one.outs, one.outs)])
    a, b = _place(r, source), _place(r, target)
    if a and b and a != b:
        target[b[0]][b[1]] = source[a[0]][a[1]]
        return "%s[%d] is %s[%d]" % (b + a)


def no_value(r, one):
    name, v = _input(r, one)
    if v:
        v.value, v.persistable = None, r.random() < 0.7
        return "%s has no value" % name


def attribute(r, one):
    known = {a["name"]: a["type"] for a in _core.op_info(one.op)["attrs"]}
    if known:
        name = r.choice(list(known))
        one.attrs[name] = odd.attribute(r, one.attrs.get(name), known[name])
        return "attribute %s = %.80r" % (name, one.attrs[name])


def odd_attribute(r, one):
    name = r.choice(
        [
            "unknown",
            "",
            "op_role",
            "op_role_var",
            "sub_block",
            "op_device",
            "op_namescope",
            "op_callstack",
            "is_test",
            "x" * 10000,
        ]
    )
    one.attrs[name] = r.choice(odd.NUMBERS)
    return "attribute %.20s = %r" % (name, one.attrs[name])


def odd_slot(r, one):
    slot = r.choice(["Nope", "", "X", "Out", "x" * 1000, "X@GRAD"])
    if one.vars:
        r.choice([one.ins, one.outs])[slot] = [r.choice(sorted(one.vars))]
        return "slot %.20s" % slot


def kind(r, one):
    """A tensor becomes sparse rows, or the other way round."""
    name, v = _input(r, one)
    if not v:
        return None
    if isinstance(v.value, Rows):
        v.value, v.kind = v.value.values, int(KINDS.LOD_TENSOR)
    else:
        a = array_of(v.value)
        rows = a.shape[0] if a.ndim else 1
        wild = [0, 1, 2, 3, rows, -1, 2**40] if r.random() < 0.2 else [0, 1, 2, 3]
        ids = [r.choice(wild) for _ in range(rows if r.random() < 0.8 else rows + 1)]
        v.value, v.kind = Rows(ids, r.choice([4, 10, rows, 0, 2**40, -1]), a), int(KINDS.SELECTED_ROWS)
    return "%s is of the other kind" % name


def rows(r, one):
    found = [n for n in one.valued() if isinstance(one.vars[n].value, Rows)]
    if found:
        v = one.vars[r.choice(found)]
        h = v.value.height
        ids = [r.choice([0, 1, -1, h, h - 1, 2**31, 2**63 - 1, -(2**63)]) for _ in v.value.ids]
        v.value = Rows(ids if r.random() < 0.7 else ids[:-1], r.choice([h, 0, -1, 2**40, 2**62]), v.value.values)
        return "rows %s of %d" % (ids, v.value.height)


def declaration(r, one):
    name, v = _input(r, one)
    if v:
        v.declared = r.choice(
            [
                [2**31],
                [2**40, 2],
                [-1, 2**31],
                [2**31 - 1, 2**31 - 1],
                [0],
                [-1] * 9,
                [1] * 10,
                [2**20, 2**20, 2**20],
                [-5, 3],
            ]
        )
        return "%s is declared %s" % (name, v.declared)


def kept_output(r, one):
    """An output is persistable, and something else lies under its name or in its declaration."""
    at = _place(r, one.outs)
    v = one.vars.get(one.outs[at[0]][at[1]]) if at else None
    if v:
        v.persistable = True
        what = r.randrange(4)
        if what == 0:
            v.preset = odd.array(r, [3, 2], r.choice(odd.DTYPES))
        elif what == 1:
            v.preset = Rows([0, 1], 5, np.ones((2, 2), "float32"))
        elif what == 2:
            v.declared = [2**31, 3]
        else:
            v.kind = int(
                r.choice(
                    [
                        KINDS.SELECTED_ROWS,
                        KINDS.LOD_TENSOR_ARRAY,
                        KINDS.RAW,
                        KINDS.READER,
                        KINDS.STEP_SCOPES,
                        KINDS.LOD_TENSOR,
                    ]
                )
            )
        return "output %s[%d] is kept, kind %d" % (at + (what,))


def kept_input(r, one):
    name, v = _input(r, one)
    if v:
        v.persistable = True
        return "%s lies in the scope" % name


def memory(r, one):
    name, v = _input(r, one)
    if v and isinstance(v.value, np.ndarray):
        v.fed_as = r.choice(odd.VIEWS)
        return "%s fed %s" % (name, v.fed_as)


def another_variable(r, one):
    """An argument that is neither written nor fed."""
    at = _place(r, one.ins)
    if at:
        one.ins[at[0]][at[1]] = "stranger"
        one.vars["stranger"] = Var(persistable=r.random() < 0.5)
        return "%s[%d] is a stranger" % at


OF_VALUES = (numbers, one_number, memory)  # the reference of a case knows what follows from these and from attributes
TWICE = (empty_name, dtype)
THREE_TIMES = (without_slot, shape, numbers, sequences, alias)
ONCE = (one_number, no_value, odd_attribute, odd_slot, kind, rows, declaration, kept_output, kept_input, memory)
MUTATIONS = ONCE + (another_variable,) + TWICE * 2 + THREE_TIMES * 3 + (attribute,) * 5
