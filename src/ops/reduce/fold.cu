// Folds over axes on devices: "fold_axes/<fold>".
#include "ops/device/args_fold.h"
#include "ops/device/fold_rows.h"
#include "ops/device/walk.h"
#include "ops/kernels/folds.h"

namespace anabranch::device {

// The final value of a fold. A mean without elements is NaN.
enum class Finish { kAsItIs, kMean, kRoot };

template <class T> AB_HD T finished(Finish finish, T total, int64_t count) {
  if (finish == Finish::kMean && !(std::is_integral_v<T> && count == 0))
    return static_cast<T>(total / static_cast<T>(count));
  if constexpr (std::is_floating_point_v<T>) {
    if (finish == Finish::kRoot) return std::sqrt(total);
  }
  return total;
}

template <class F, class T> using FoldWide = std::conditional_t<std::is_same_v<T, bool>, int32_t, typename F::Wide>;

template <class F, class T> struct FoldBody {  // one body for all folds that finish otherwise
  using Wide = FoldWide<F, T>;
  Walk<1> kept, folded;
  const T* x;
  T* y;
  Finish finish;
  AB_HD static Wide start() { return static_cast<Wide>(F::start); }
  AB_HD static Wide join(Wide a, Wide b) { return static_cast<Wide>(F::join(a, b)); }
  AB_HD Wide at(int64_t row, int64_t i) const {
    int64_t first[1], inside[1];
    kept.at(row, first);
    folded.at(i, inside);
    return static_cast<Wide>(lifted<F>(load(x[first[0] + inside[0]])));
  }
  AB_HD void put(int64_t row, Wide total) const {
    store(y + row, finished(finish, static_cast<Compute<T>>(total), folded.count()));
  }
};

template <template <class> class Fold, Finish kFinish = Finish::kAsItIs> struct FoldAxes {
  using Args = FoldAxesArgs;
  template <class T> using WideOf = FoldWide<Fold<Compute<T>>, T>;

  // Adjacent elements are folded together unless the innermost axis is kept.
  static Neighbors neighbors(const Args& a) {
    const auto step = [](const Axes<1>& axes) { return axes.rank ? axes.stride[0][axes.rank - 1] : INT64_MAX; };
    return step(a.kept) < step(a.folded) ? Neighbors::kRows : Neighbors::kElements;
  }
  template <class T> static size_t room(const Args& a) {
    return fold_room<WideOf<T>>(a.kept.count(), a.folded.count(), neighbors(a));
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    const FoldBody<Fold<Compute<T>>, T> body{Walk<1>(a.kept), Walk<1>(a.folded), a.x.get<T>(), a.y.get<T>(), kFinish};
    return fold_rows(launch, body.kept.count(), body.folded.count(), neighbors(a), body,
                     launch.workspace.get<WideOf<T>>());
  }
};

template <class> using All = FoldAll;
template <class> using Any = FoldAny;

using Sums = FoldAxes<FoldSum>;
using Means = FoldAxes<FoldSum, Finish::kMean>;
using Products = FoldAxes<FoldProd>;
using Largest = FoldAxes<FoldMax>;
using Smallest = FoldAxes<FoldMin>;
using Squares = FoldAxes<FoldSquares>;
using Lengths = FoldAxes<FoldSquares, Finish::kRoot>;
using Sizes = FoldAxes<FoldSizes>;

AB_KERNEL("fold_axes/sum", Sums, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes/mean", Means, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes/prod", Products, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes/max", Largest, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes/min", Smallest, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes/squares", Squares, float, double, half, bfloat16);
AB_KERNEL("fold_axes/length", Lengths, float, double, half, bfloat16);
AB_KERNEL("fold_axes/sizes", Sizes, float, double, half, bfloat16);
AB_KERNEL("fold_axes/all", FoldAxes<All>, bool);
AB_KERNEL("fold_axes/any", FoldAxes<Any>, bool);

}  // namespace anabranch::device
