// Cosines of the angles between rows.
#include <algorithm>
#include <cmath>

#include "ops/declare/declare.h"
#include "ops/device/launch_pair.h"
#include "ops/device/zeros.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/sums.h"

namespace anabranch::math::cos_sim_op {
namespace {

// Lower bound of the length of a row, so that the cosine of a row of zeros is 0 instead of 0 / 0.
constexpr double kShortest = 1e-4;

// Y has the rows of X; otherwise its first row is paired with each of them, as in Fluid 1.8.5.
void check_rows(const InferContext& c) {
  for (const char* slot : {"X", "Y"}) check_rank(c, slot, 2, kMaxRank);
  check_same_dtype(c, "X", "Y");
  const Shape &x = c.in("X").shape, &y = c.in("Y").shape;
  AB_CHECK(x.rank() == y.rank() && compatible(x.slice(1, x.rank()), y.slice(1, y.rank())), ShapeMismatch,
           "X and Y must agree in all extents except the first, got {} and {}", x.str(), y.str());
  AB_CHECK(y[0] != 0 || x[0] == 0 || x[0] == kUnknown, ShapeMismatch,
           "Y must have at least one row for the rows of X {}, got {}", x.str(), y.str());
}

template <class T> T length(const T* x, int64_t width) {
  const T sum = sum_of<T>(width, [=](int64_t k) { return x[k] * x[k]; });
  return std::max(std::sqrt(sum), static_cast<T>(kShortest));
}

template <class T> void lengths(const KernelContext& c, const Tensor& x, T* to) {
  const int64_t width = x.row_elems();
  c.parallel_each(x.rows(), kCheapGrain / std::max<int64_t>(1, width) + 1,
                  [&](int64_t r) { to[r] = length(x.data<T>() + r * width, width); });
}

constexpr auto forward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [x = op.in("X"), y = op.in("Y"), out = op.out("Out"), x_norm = op.out("XNorm"),
          y_norm = op.out("YNorm")](KernelContext& c) {
    const int64_t width = c[x].row_elems(), rows = c[x].rows(), step = c[y].rows() == c[x].rows() ? 1 : 0;
    const T *a = c[x].data<T>(), *b = c[y].data<T>();
    T *to = c[out].mutable_data<T>(), *na = c[x_norm].mutable_data<T>(), *nb = c[y_norm].mutable_data<T>();
    lengths(c, c[x], na);
    if (step) {
      lengths(c, c[y], nb);
    } else {
      std::fill_n(nb, c[y].rows(), T{0});
      nb[0] = length(b, width);
    }
    c.parallel_for(rows, kCheapGrain / std::max<int64_t>(1, width) + 1, [=](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        const T *p = a + r * width, *q = b + step * r * width;
        const T dot = sum_of<T>(width, [=](int64_t k) { return p[k] * q[k]; });
        to[r] = dot / na[r] / nb[step * r];
      }
    });
  };
};

// d cos / d x = y / (|x| |y|) - cos x / |x|^2, added to dx.
template <class T> void add_slope(const T* x, const T* y, T cosine, T x_norm, T y_norm, T dout, int64_t width, T* dx) {
  const T across = dout / (x_norm * y_norm), along = dout * cosine / (x_norm * x_norm);
  for (int64_t k = 0; k < width; ++k) dx[k] += across * y[k] - along * x[k];
}

template <class T> T* zeroed(KernelContext& c, Out out) {
  if (!c.needs(out)) return nullptr;
  T* to = c[out].mutable_data<T>();
  std::fill(to, to + c[out].numel(), T{0});
  return to;
}

constexpr auto backward = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  return [x = op.in("X"), y = op.in("Y"), out = op.in("Out"), x_norm = op.in("XNorm"), y_norm = op.in("YNorm"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](KernelContext& c) {
    const int64_t width = c[x].row_elems(), rows = c[x].rows(), step = c[y].rows() == c[x].rows() ? 1 : 0;
    const T *a = c[x].data<T>(), *b = c[y].data<T>(), *cosine = c[out].data<T>(), *na = c[x_norm].data<T>(),
            *nb = c[y_norm].data<T>(), *g = c[dout].data<T>();
    T *da = zeroed<T>(c, dx), *db = zeroed<T>(c, dy);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t s = step * r;
      const T *ar = a + r * width, *bs = b + s * width;
      if (da) add_slope(ar, bs, cosine[r], na[r], nb[s], g[r], width, da + r * width);
      if (db) add_slope(bs, ar, cosine[r], nb[s], na[r], g[r], width, db + s * width);
    }
  };
};

Kernel forward_there(ab_kernel kernel, const KernelArgs& op) {
  return [=, x = op.in("X"), y = op.in("Y"), out = op.out("Out"), x_norm = op.out("XNorm"),
          y_norm = op.out("YNorm")](const DeviceContext& c) {
    device::PairArgs a = device::pair_of_rows(c[x], c[y]);
    a.out = device::operand(c[out]);
    a.x_norm = device::operand(c[x_norm]);
    a.y_norm = device::operand(c[y_norm]);
    if (c[y].rows() != c[x].rows()) device::fill_zero(c, c[y_norm]);
    c.launch(kernel, a);
  };
}

Kernel backward_there(ab_kernel kernel, const KernelArgs& op) {
  return [=, x = op.in("X"), y = op.in("Y"), out = op.in("Out"), x_norm = op.in("XNorm"), y_norm = op.in("YNorm"),
          dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), dy = op.out("Y@GRAD")](const DeviceContext& c) {
    device::PairArgs a = device::pair_of_rows(c[x], c[y]);
    a.dout = device::operand(c[dout]);
    a.out_in = device::operand(c[out]);
    a.x_norm_in = device::operand(c[x_norm]);
    a.y_norm_in = device::operand(c[y_norm]);
    const bool first_only = c[y].rows() > 1 && c[y].rows() != c[x].rows();
    if (first_only && c.needs(dy)) device::fill_zero(c, c[dy]);
    if (c.needs(dx)) a.out = device::operand(c[dx]);
    if (c.needs(dy)) a.x_norm = device::operand(c[dy]);
    c.launch(kernel, a);
  };
}

AB_OP(cos_sim)
    .doc(
        "Out[i] = X[i] . Y[i] / (|X[i]| |Y[i]|); with another number of rows, the first row of Y is paired with every "
        "row of X.")
    .in("X", "[N, ...] float")
    .in("Y", "[N, ...] or [M, ...]")
    .out("Out", "[N, 1]; with the LoD of X")
    .out_intermediate("XNorm", "[N, 1]: lengths of the rows of X, at least 1e-4")
    .out_intermediate("YNorm", "[rows of Y, 1]; 0 for rows that are not paired")
    .infer([](InferContext& c) {
      check_rows(c);
      const Meta &x = c.in("X"), &y = c.in("Y");
      c.set_out("Out", Shape{x.shape[0], 1}, x.dtype);
      c.set_out("XNorm", Shape{x.shape[0], 1}, x.dtype);
      c.set_out("YNorm", Shape{y.shape[0], 1}, x.dtype);
      c.share_lod("Out", "X");
    })
    .grad([](GradContext& g) {
      g.op("cos_sim_grad")
          .in("X", g.in("X"))
          .in("Y", g.in("Y"))
          .in("XNorm", g.out("XNorm"))
          .in("YNorm", g.out("YNorm"))
          .in("Out", g.out("Out"))
          .in("Out@GRAD", g.dout("Out"))
          .out("X@GRAD", g.din("X"))
          .out("Y@GRAD", g.din("Y"));
    })
    .cpu<float, double>(forward)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return forward_there(device::kernel_of<T>("cos_sim"), op);
    });

AB_OP(cos_sim_grad)
    .doc("X@GRAD = Out@GRAD (Y / (|X| |Y|) - Out X / |X|^2) row by row, and likewise Y@GRAD.")
    .in("X", "as in cos_sim")
    .in("Y", "as in cos_sim")
    .in("XNorm", "from cos_sim")
    .in("YNorm", "from cos_sim")
    .in("Out", "from cos_sim")
    .in("Out@GRAD", "like Out")
    .out_optional("X@GRAD", "like X")
    .out_optional("Y@GRAD", "like Y")
    .infer([](InferContext& c) {
      check_rows(c);
      for (const char* slot : {"XNorm", "Out", "Out@GRAD"}) {
        check_numel(c, slot, c.in("X").shape[0]);
        check_same_dtype(c, slot, "X");
      }
      check_numel(c, "YNorm", c.in("Y").shape[0]);
      check_same_dtype(c, "YNorm", "X");
      grad_as(c, "X@GRAD", "X");
      grad_as(c, "Y@GRAD", "Y");
    })
    .no_grad(kNoSecondOrder)
    .cpu<float, double>(backward)
    .device<float, double, float16, bfloat16>([]<class T>(TypeTag<T>, const KernelArgs& op) {
      return backward_there(device::kernel_of<T>("cos_sim_grad"), op);
    });

}  // namespace
}  // namespace anabranch::math::cos_sim_op
