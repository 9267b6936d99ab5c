"""Programs of ProgramDesc's wire format (protobuf), decoded without protobuf."""
import struct

ATTR = ["INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS",
        "BLOCK", "LONG", "BLOCKS", "LONGS"]


def _varint(b, i):
    r = s = 0
    while True:
        c = b[i]
        i += 1
        r |= (c & 127) << s
        if c < 128:
            return r, i
        s += 7


def _fields(b):
    i = 0
    while i < len(b):
        key, i = _varint(b, i)
        num, wire = key >> 3, key & 7
        if wire == 0:
            v, i = _varint(b, i)
        elif wire == 1:
            v, i = b[i:i + 8], i + 8
        elif wire == 2:
            n, i = _varint(b, i)
            v, i = b[i:i + n], i + n
        elif wire == 5:
            v, i = b[i:i + 4], i + 4
        else:
            raise ValueError("wire type %d" % wire)
        yield num, wire, v


def _int(v, bits=64):
    return v - (1 << 64) if v >= 1 << 63 else v


def _many(dst, wire, v, conv, size=None):
    if wire == 2:
        if size:
            for k in range(0, len(v), size):
                dst.append(conv(v[k:k + size]))
        else:
            k = 0
            while k < len(v):
                x, k = _varint(v, k)
                dst.append(conv(x))
    else:
        dst.append(conv(v))


def _f32(v):
    return struct.unpack("<f", v)[0]


def _attr(b):
    name, kind, one, many = "", 0, None, []
    for num, wire, v in _fields(b):
        if num == 1:
            name = v.decode()
        elif num == 2:
            kind = v
        elif num in (3, 12, 13):
            one = _int(v)
        elif num == 4:
            one = _f32(v)
        elif num == 5:
            one = v.decode("latin-1")
        elif num == 10:
            one = bool(v)
        elif num in (6, 14, 15):
            _many(many, wire, v, _int)
        elif num == 7:
            _many(many, wire, v, _f32, 4)
        elif num == 8:
            many.append(v.decode("latin-1"))
        elif num == 11:
            _many(many, wire, v, bool)
    t = ATTR[kind]
    return name, {t: many if t.endswith("S") else one}


def decode_program(b):
    blocks = []
    for num, _, v in _fields(b):
        if num == 1:
            blk = {"idx": 0, "parent": -1, "vars": [], "ops": []}
            for n2, _, w in _fields(v):
                if n2 == 1:
                    blk["idx"] = _int(w)
                elif n2 == 2:
                    blk["parent"] = _int(w)
                elif n2 == 3:
                    for n3, _, x in _fields(w):
                        if n3 == 1:
                            blk["vars"].append(x.decode())
                elif n2 == 4:
                    op = {"type": "", "inputs": {}, "outputs": {}, "attrs": {}}
                    for n3, _, x in _fields(w):
                        if n3 == 3:
                            op["type"] = x.decode()
                        elif n3 in (1, 2):
                            slot, args = "", []
                            for n4, _, y in _fields(x):
                                if n4 == 1:
                                    slot = y.decode()
                                else:
                                    args.append(y.decode())
                            op["inputs" if n3 == 1 else "outputs"][slot] = args
                        elif n3 == 4:
                            k, a = _attr(x)
                            if k not in ("op_callstack", "op_device"):
                                op["attrs"][k] = a
                    blk["ops"].append(op)
            blocks.append(blk)
    return blocks


def op_types(b):
    return [[op["type"] for op in blk["ops"]] for blk in decode_program(b)]
