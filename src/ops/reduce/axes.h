// The axes that an op of reduce.cc folds.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "ops/declare/declare.h"
#include "ops/kernels/reduce.h"
#include "ops/reduce/as_dtype.h"

namespace anabranch::reduce {

struct Attrs {
  std::vector<int32_t> dim;
  bool keep_dim, reduce_all;
  explicit Attrs(const ir::Op& op)
      : dim(op.attr<std::vector<int32_t>>("dim")),
        keep_dim(op.attr<bool>("keep_dim")),
        reduce_all(op.attr<bool>("reduce_all")) {}

  // The shape of X with extent 1 on the folded axes.
  Shape folded(const Shape& x) const {
    Shape s = x;
    if (reduce_all || dim.empty()) {
      for (int i = 0; i < s.rank(); ++i) s.set(i, 1);
    }
    for (int32_t d : dim) s.set(normal_axis(d, x.rank(), "dim"), 1);
    return s;
  }

  void check(const Shape& x) const {
    std::array<bool, kMaxRank> seen{};
    for (int32_t d : dim) {
      bool& here = seen[normal_axis(d, x.rank(), "dim")];
      AB_CHECK(!here || reduce_all, InvalidArgument, "dim must not name axis {} twice", d);
      here = true;
    }
  }

  // Axis 0 is kept: rows of Out are rows of X, even if X has only one.
  bool keeps_rows(const Shape& x) const {
    if (reduce_all || dim.empty()) return false;
    return std::none_of(dim.begin(), dim.end(), [&](int32_t d) { return normal_axis(d, x.rank(), "dim") == 0; });
  }

  Shape out_shape(const Shape& x) const {
    if (keep_dim) return folded(x);
    std::array<bool, kMaxRank> gone{};
    for (int32_t d : dim) gone[normal_axis(d, x.rank(), "dim")] = true;
    Shape out;
    for (int i = 0; i < x.rank(); ++i) {
      if (!reduce_all && !dim.empty() && !gone[i]) out.push_back(x[i]);
    }
    return out.rank() ? out : scalar_shape();
  }
};

inline void infer_reduce(InferContext& c) {
  const Attrs attrs(c.op());
  const Meta& x = c.in("X");
  attrs.check(x.shape);
  c.set_out("Out", attrs.out_shape(x.shape), result_dtype(c.op(), x.dtype));
  if (attrs.keeps_rows(x.shape)) c.share_lod("Out", "X");
}

template <class Fold, class T>
void fold_axes(const KernelContext& c, const Shape& x, const Shape& folded, const T* in, T* out) {
  const auto from = dense_strides(x), to = dense_strides(folded);
  NdLoop<2> loop;
  for (int i = 0; i < x.rank(); ++i) loop.add_axis(x[i], {folded[i] == 1 ? 0 : to[i], from[i]});
  fold_loop<Fold>(c, loop, in, out, folded.numel());
}

}  // namespace anabranch::reduce
