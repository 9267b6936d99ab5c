"""Products of matrices and vectors."""
import numpy as np
from op_case import big, case, integers, real


def cosine(i, a):
    x, y = (v.reshape(len(v), -1) for v in (i["X"], i["Y"]))
    x_norm, y_norm = (np.sqrt((v * v).sum(1, keepdims=True)) for v in (x, y))
    return {"Out": (x * y).sum(1, keepdims=True) / x_norm / y_norm, "XNorm": x_norm, "YNorm": y_norm}


def cosine_to_the_first(i, a):
    found = cosine({"X": i["X"], "Y": i["Y"][:1]}, a)
    return dict(found, YNorm=np.pad(found["YNorm"], ((0, len(i["Y"]) - 1), (0, 0))))


case("cos_sim", {"X": real(5, 4), "Y": real(5, 4)}, {}, cosine, large={"X": real(900, 70), "Y": real(900, 70)}, rtol=5e-6)
case("cos_sim", {"X": real(5, 4), "Y": real(1, 4)}, {}, cosine, name="one", rtol=5e-6)
case("cos_sim", {"X": real(5, 4), "Y": real(3, 4)}, {}, cosine_to_the_first, name="first", rtol=5e-6)
case("cos_sim", {"X": real(1, 4), "Y": real(3, 4)}, {}, cosine_to_the_first, name="fewer", rtol=5e-6)
case("cos_sim", {"X": real(3, 2, 2), "Y": real(3, 2, 2)}, {}, cosine, name="axes", rtol=5e-6)
case("cos_sim", {"X": np.zeros((2, 3)), "Y": real(2, 3)}, {}, lambda i, a: {"Out": np.zeros((2, 1))}, name="zero", grad=(),
     hostile=False)  # the reference is zero for any inputs

# ---- products


def flat_product(i, a):
    x, y, n, m = i["X"], i["Y"], a.get("x_num_col_dims", 1), a.get("y_num_col_dims", 1)
    flat = x.reshape(int(np.prod(x.shape[:n])), -1) @ y.reshape(int(np.prod(y.shape[:m])), -1)
    return flat.reshape(x.shape[:n] + y.shape[m:])


case("mul", {"X": real(4, 6), "Y": real(6, 5)}, ref=flat_product, large_rtol=2e-5, large={"X": real(257, 300), "Y": real(300, 129)})
case("mul", {"X": real(2, 3, 4), "Y": real(4, 5)}, {"x_num_col_dims": 2}, ref=flat_product)
case("mul", {"X": real(2, 3, 4), "Y": real(3, 4, 2, 2)}, {"y_num_col_dims": 2}, ref=flat_product)
case("mul", {"X": real(33, 65), "Y": real(65, 17)}, ref=flat_product, grad=(), rtol=2e-5, name="library", hostile=False)


def product(i, a):
    x, y = i["X"], i["Y"]
    x = x[None] if x.ndim == 1 else x  # a row, which the transpose makes a column
    y = y[:, None] if y.ndim == 1 else y
    x = x.swapaxes(-1, -2) if a.get("transpose_X") else x
    y = y.swapaxes(-1, -2) if a.get("transpose_Y") else y
    out = np.asarray(np.matmul(x, y) * np.asarray(a.get("alpha", 1.0), x.dtype))
    out = out.squeeze(-2) if i["X"].ndim == 1 and out.shape[-2] == 1 else out
    out = out.squeeze(-1) if i["Y"].ndim == 1 and out.shape[-1] == 1 else out
    return out.reshape(out.shape or (1,))


for xs, ys, attrs in [((3, 4), (4, 5), {}), ((3, 4), (5, 4), {"transpose_Y": True}), ((4, 3), (4, 5), {"transpose_X": True}),
                      ((4, 3), (5, 4), {"transpose_X": True, "transpose_Y": True}), ((3, 4), (4, 5), {"alpha": 0.5}),
                      ((2, 3, 4), (2, 4, 5), {}), ((2, 2, 3, 4), (2, 2, 5, 4), {"transpose_Y": True}),
                      ((2, 4, 3), (2, 5, 4), {"transpose_X": True, "transpose_Y": True}), ((2, 3, 4), (4, 5), {}),
                      ((2, 4, 3), (4, 5), {"transpose_X": True}), ((2, 3, 4), (5, 4), {"transpose_Y": True}),
                      ((3, 4), (2, 4, 5), {}), ((4, 3), (2, 5, 4), {"transpose_X": True, "transpose_Y": True, "alpha": 2.0}),
                      ((4,), (4,), {}), ((3, 4), (4,), {}), ((2, 3, 4), (4,), {}), ((4,), (4, 3), {}), ((4,), (2, 4, 3), {})]:
    case("matmul", {"X": real(*xs), "Y": real(*ys)}, attrs, ref=product, rtol=5e-6)
for xs, ys, attrs, name in [((4,), (3,), {"transpose_X": True, "transpose_Y": True}, "outer"),
                            ((1,), (3,), {"transpose_Y": True}, "row"), ((3,), (1, 4), {"transpose_X": True}, "column"),
                            ((3,), (4, 3), {"transpose_Y": True}, "turned"), ((3, 2), (3,), {"transpose_X": True}, "tall")]:
    case("matmul", {"X": real(*xs), "Y": real(*ys)}, attrs, ref=product, rtol=5e-6, name="vector_" + name)
case("matmul", {"X": real(3, 20, 31), "Y": real(3, 31, 33)}, ref=product, grad=(), rtol=2e-5, name="library", hostile=False,
     large={"X": real(8, 120, 31), "Y": real(8, 31, 133)})
case("bmm", {"X": real(2, 3, 4), "Y": real(2, 4, 5)}, ref=product, rtol=5e-6)
case("dot", {"X": real(3, 4), "Y": real(3, 4)}, ref=lambda i, a: np.sum(i["X"] * i["Y"], -1, keepdims=True), rtol=5e-6)
case("dot", {"X": real(4), "Y": real(4)}, ref=lambda i, a: np.sum(i["X"] * i["Y"], -1, keepdims=True), rtol=5e-6)


def addmm(i, a):
    return a.get("Alpha", 1.0) * i["X"] @ i["Y"] + a.get("Beta", 1.0) * i["Input"]


FACTORS = {"Alpha": 2.0, "Beta": 0.5}
case("addmm", {"Input": real(3, 2), "X": real(3, 4), "Y": real(4, 2)}, FACTORS, addmm, rtol=5e-6)
case("addmm", {"Input": real(1, 2), "X": real(3, 4), "Y": real(4, 2)}, {}, addmm, rtol=5e-6, name="row")
case("addmm", {"Input": real(3, 1), "X": real(3, 4), "Y": real(4, 2)}, FACTORS, addmm, rtol=5e-6, name="column")
case("kron", {"X": real(2, 3), "Y": real(4, 2)}, {}, lambda i, a: np.kron(i["X"], i["Y"]))
case("kron", {"X": real(2, 2, 3), "Y": real(2)}, {}, lambda i, a: np.kron(i["X"], i["Y"]), name="ranks")


def bilinear(i, a):
    return np.einsum("np,kpq,nq->nk", i["X"], i["Weight"], i["Y"]) + i.get("Bias", 0)


FACTORS = {"X": real(3, 4), "Y": real(3, 5), "Weight": real(2, 4, 5)}
case("bilinear_tensor_product", FACTORS, {}, bilinear, rtol=1e-5)
case("bilinear_tensor_product", dict(FACTORS, Bias=real(1, 2)), {}, bilinear, name="bias", rtol=1e-5, hostile=False,
     large={"X": big(301, 40), "Y": big(301, 50), "Weight": big(3, 40, 50), "Bias": big(1, 3)}, large_rtol=1e-4)
for dtype in ("int32", "int64"):
    case("dot", {"X": integers(3, 4, dtype=dtype), "Y": integers(3, 4, dtype=dtype)}, name="of_" + dtype,
         ref=lambda i, a: np.sum(i["X"] * i["Y"], -1, keepdims=True, dtype=i["X"].dtype))
