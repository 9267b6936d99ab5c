// The same columns of several matrices: concatenated (partial_concat), or summed (partial_sum).
#include <algorithm>

#include "ops/declare/declare.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/copy.h"
#include "ops/kernels/wrapping.h"

namespace anabranch::tensor::partial_op {
namespace {

// Columns begin to begin + count of each matrix.
struct Columns {
  int64_t begin, count;
};

// The differences of partial_concat and partial_sum.
struct Form {
  const char *type, *doc, *out;
  bool adds;  // else concatenates the columns
};

// In partial_concat a negative start counts from the end, and a negative length means: up to the end.
Columns columns_of(int64_t width, int64_t start, int64_t length, bool adds) {
  AB_CHECK(start < width && start >= (adds ? 0 : -width), InvalidArgument, "start_index must be in [{}, {}), got {}",
           adds ? 0 : -width, width, start);
  AB_CHECK(!adds || length >= -1, InvalidArgument, "length must be at least -1, got {}", length);
  const int64_t begin = start < 0 ? start + width : start, count = length < 0 ? width - begin : length;
  AB_CHECK(begin + count <= width, InvalidArgument, "length must not exceed the {} columns from start_index on, got {}",
           width - begin, length);
  return {begin, count};
}

void infer_partial(InferContext& c, bool adds) {
  const int n = c.n_in("X");
  AB_CHECK(n > 0, InvalidArgument, "X must list at least one tensor");
  const Meta& first = c.in("X");
  for (int i = 0; i < n; ++i) {
    const Meta& x = c.in("X", i);
    AB_CHECK(x.kind == VarKind::kLoDTensor && x.shape.rank() == 2, InvalidArgument, "X[{}] must be a matrix, got {}", i,
             x.shape.str());
    AB_CHECK(compatible(x.shape, first.shape), ShapeMismatch, "X[{}] must be {}, like X[0], got {}", i,
             first.shape.str(), x.shape.str());
    AB_CHECK(x.dtype == first.dtype, InvalidArgument, "X[{}] must hold {}, like X[0], got {}", i,
             dtype_name(first.dtype), dtype_name(x.dtype));
  }
  const int64_t length = c.attr<int32_t>("length"), width = first.shape[1];
  int64_t count = length < 0 ? kUnknown : length;
  if (width != kUnknown) count = columns_of(width, c.attr<int32_t>("start_index"), length, adds).count;
  c.set_out("Out", Shape{first.shape[0], count == kUnknown || adds ? count : count * n}, first.dtype);
  c.share_lod("Out", "X");
}

// Calls fn(first element in X[i], first element in Out) for the columns of each row.
template <class Fn> void each_row(const Shape& x, int i, int n, const Columns& at, bool adds, Fn&& fn) {
  const int64_t step = adds ? at.count : at.count * n, first = adds ? 0 : at.count * i;
  for (int64_t r = 0; r < x[0]; ++r) fn(r * x[1] + at.begin, r * step + first);
}

// to[k] = the sum over all X of number `offset` + k.
template <class T> void sum_row(const KernelContext& c, In xs, int64_t offset, int64_t n, T* to) {
  using Wide = Wrapping<T>;
  std::copy_n(c.at(xs, 0).data<T>() + offset, n, to);
  for (int i = 1; i < xs.count; ++i) {
    const T* from = c.at(xs, i).data<T>() + offset;
    in_wide_run(n, [=] {
      for (int64_t k = 0; k < n; ++k) to[k] = static_cast<T>(static_cast<Wide>(to[k]) + static_cast<Wide>(from[k]));
    });
  }
}

void declare_partial(const Form& form) {
  const bool adds = form.adds;
  OpDef& def = declare_op(form.type, __FILE__).doc(form.doc);
  def.in_list("X", "[N, C] numbers each, of one shape").out("Out", form.out);
  def.attr<int32_t>("start_index", 0, adds ? "first column" : "first column; negative: from the end");
  def.attr<int32_t>("length", -1, "number of columns; -1: all following ones");
  if (adds) def.ignores({"use_mkldnn"});
  def.infer([adds](InferContext& c) { infer_partial(c, adds); }).grad_reads({"X"});
  def.cpu<float, double, int32_t, int64_t>([adds]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return [adds, start = op.attr<int32_t>("start_index"), length = op.attr<int32_t>("length"), xs = op.in("X"),
            out = op.out("Out")](KernelContext& c) {
      const Columns at = columns_of(c.at(xs, 0).shape()[1], start, length, adds);
      T* to = c[out].mutable_data<T>();
      if (adds) {
        each_row(c.at(xs, 0).shape(), 0, 1, at, true,
                 [&](int64_t a, int64_t b) { sum_row(c, xs, a, at.count, to + b); });
        return;
      }
      for (int i = 0; i < xs.count; ++i) {
        const T* from = c.at(xs, i).data<T>();
        each_row(c.at(xs, i).shape(), i, xs.count, at, false,
                 [=](int64_t a, int64_t b) { copy_row(from + a, static_cast<size_t>(at.count) * sizeof(T), to + b); });
      }
    };
  });
  OpDef& back = declare_gradient(form.type, __FILE__).doc("X@GRAD[i] = Out@GRAD for the selected columns, else 0.");
  back.grad_lod("X@GRAD", "X");
  back.cpu<float, double, int32_t, int64_t>([adds]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return [adds, start = op.attr<int32_t>("start_index"), length = op.attr<int32_t>("length"),
            dout = op.in("Out@GRAD"), dxs = op.out("X@GRAD"), xs = op.in("X")](KernelContext& c) {
      const T* from = c[dout].data<T>();
      for (int i = 0; i < dxs.count; ++i) {
        if (!c.needs(dxs, i)) continue;
        const Shape& s = c.at(xs, i).shape();
        T* to = c.at(dxs, i).mutable_data<T>();
        std::fill(to, to + s.numel(), T{0});
        const Columns at = columns_of(s[1], start, length, adds);
        each_row(s, i, dxs.count, at, adds,
                 [=](int64_t a, int64_t b) { copy_row(from + b, static_cast<size_t>(at.count) * sizeof(T), to + a); });
      }
    };
  });
}

void declare_both() {
  declare_partial({.type = "partial_concat",
                   .doc = "Out = columns start_index to start_index + length of all X, concatenated.",
                   .out = "[N, length times the number of X]",
                   .adds = false});
  declare_partial({.type = "partial_sum",
                   .doc = "Out = columns start_index to start_index + length of all X, summed.",
                   .out = "[N, length]",
                   .adds = true});
}

AB_OPS(declare_both);

}  // namespace
}  // namespace anabranch::tensor::partial_op
