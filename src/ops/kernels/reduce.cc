#include "ops/kernels/reduce.h"

namespace anabranch {
namespace reduce_detail {
namespace {

const void* element(const void* base, int64_t at, int64_t size) { return static_cast<const char*>(base) + at * size; }
void* element(void* base, int64_t at, int64_t size) { return static_cast<char*>(base) + at * size; }

void run_rows(const KernelContext& c, const Axes& axes, const FoldLoops& fold, const void* in, void* out) {
  axes.kept.run(c, std::max<int64_t>(1, kCheapGrain / axes.folded.total()), [&](const auto& at, int64_t count) {
    fold.rows(axes.folded, element(in, at[1], fold.size), element(out, at[0], fold.size), axes.kept.inner_strides(),
              count);
  });
}

void run_strips(const KernelContext& c, const Axes& axes, const FoldLoops& fold, const void* in, void* out) {
  const int64_t work = std::max<int64_t>(1, axes.folded.total() * std::min(axes.kept.inner(), kStrip));
  c.parallel_for(axes.kept.outer() * strips_of(axes), std::max<int64_t>(1, kCheapGrain / work),
                 [&](int64_t begin, int64_t end) { fold.strips(axes, in, out, begin, end); });
}

}  // namespace

void fold_loop(const KernelContext& c, const NdLoop<2>& loop, const FoldLoops& fold, const void* in, void* out,
               int64_t out_numel) {
  if (loop.total() == 0) return fold.nothing(out, out_numel);
  const Axes axes(loop);
  if (axes.kept.total() == 1 && axes.folded.outer() == 1 && fold.whole) {
    fold.whole(c, in, axes.folded.inner(), out);
  } else if (axes.runs_folded) {
    run_rows(c, axes, fold, in, out);
  } else {
    run_strips(c, axes, fold, in, out);
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
