#include "ops/kernels/reduce.h"

namespace anabranch {
namespace reduce_detail {
namespace {

const void* element(const void* base, int64_t at, int64_t size) { return static_cast<const char*>(base) + at * size; }
void* element(void* base, int64_t at, int64_t size) { return static_cast<char*>(base) + at * size; }

void fold_rows(const KernelContext& c, const Axes& axes, const FoldLoops& fold, const void* in, void* out) {
  axes.kept.run(c, std::max<int64_t>(1, kCheapGrain / axes.folded.total()), [&](const auto& at, int64_t count) {
    const auto step = axes.kept.inner_strides();
    for (int64_t i = 0; i < count; ++i) {
      fold.row(axes.folded, element(in, at[1] + i * step[1], fold.size), element(out, at[0] + i * step[0], fold.size));
    }
  });
}

void fold_columns(const KernelContext& c, const Axes& axes, const FoldLoops& fold, const void* in, void* out) {
  const int64_t n = axes.kept.inner(), strips = (n + kStrip - 1) / kStrip;
  const auto step = axes.kept.inner_strides();
  const int64_t work = std::max<int64_t>(1, axes.folded.total() * std::min(n, kStrip));
  c.parallel_for(axes.kept.outer() * strips, std::max<int64_t>(1, kCheapGrain / work), [&](int64_t begin, int64_t end) {
    for (int64_t k = begin; k < end; ++k) {
      const int64_t from = k % strips * kStrip;
      axes.kept.each_run(k / strips, k / strips + 1, [&](const auto& at) {
        fold.strip(axes, element(in, at[1] + from * step[1], fold.size),
                   element(out, at[0] + from * step[0], fold.size), step[0], std::min(kStrip, n - from));
      });
    }
  });
}

}  // namespace

void fold_loop(const KernelContext& c, const NdLoop<2>& loop, const FoldLoops& fold, const void* in, void* out,
               int64_t out_numel) {
  if (loop.total() == 0) return fold.nothing(out, out_numel);
  const Axes axes(loop);
  if (axes.kept.total() == 1 && axes.folded.outer() == 1 && fold.whole) {
    fold.whole(c, in, axes.folded.inner(), out);
  } else if (axes.runs_folded) {
    fold_rows(c, axes, fold, in, out);
  } else {
    fold_columns(c, axes, fold, in, out);
  }
}

}  // namespace reduce_detail

template <class T> void sum_to(const KernelContext& c, const Shape& from, const Shape& to, const T* in, T* out) {
  const auto in_strides = dense_strides(from), out_strides = dense_strides(to);
  NdLoop<2> loop;
  for (int i = 0; i < from.rank(); ++i) loop.add_axis(from[i], {to[i] == 1 ? 0 : out_strides[i], in_strides[i]});
  fold_loop<FoldSum<T>>(c, loop, in, out, to.numel());
}

#define AB_INSTANTIATE(T) \
  template void sum_to(const KernelContext& c, const Shape& from, const Shape& to, const T* in, T* out)
AB_INSTANTIATE(float);
AB_INSTANTIATE(double);
AB_INSTANTIATE(int32_t);
AB_INSTANTIATE(int64_t);
#undef AB_INSTANTIATE

}  // namespace anabranch
