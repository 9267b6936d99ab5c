// Gradients of folds over axes on devices: "fold_axes_grad/<fold>".
#include "ops/device/args_fold.h"
#include "ops/device/kernels.h"
#include "ops/device/walk.h"
#include "ops/reduce/fold_functions.h"

namespace anabranch::device {

template <class Term> struct FoldAxesGrad {
  using Args = FoldAxesGradArgs;
  template <class T> struct Body {
    Walk<2> walk;
    const T *x, *out, *dout;
    T* dx;
    Compute<T> count;
    AB_HD void operator()(int64_t i) const {
      int64_t at[2];
      walk.at(i, at);
      const Compute<T> d = load(dout[at[1]]);
      store(dx + at[0], Term::of(x ? load(x[at[0]]) : d, out ? load(out[at[1]]) : d, d, count));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Walk<2> walk(a.axes);
    return each(
        launch, walk.count(),
        Body<T>{walk, a.x.get<T>(), a.out.get<T>(), a.dout.get<T>(), a.dx.get<T>(), static_cast<Compute<T>>(a.p[0])});
  }
};

AB_KERNEL("fold_axes_grad/sum", FoldAxesGrad<reduce::SumTerm>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes_grad/mean", FoldAxesGrad<reduce::MeanTerm>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes_grad/prod", FoldAxesGrad<reduce::ProductTerm>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes_grad/extreme", FoldAxesGrad<reduce::ExtremeTerm>, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("fold_axes_grad/length", FoldAxesGrad<reduce::LengthTerm>, float, double, half, bfloat16);
AB_KERNEL("fold_axes_grad/squares", FoldAxesGrad<reduce::SquaresTerm>, float, double, half, bfloat16);
AB_KERNEL("fold_axes_grad/sizes", FoldAxesGrad<reduce::SizesTerm>, float, double, half, bfloat16);

}  // namespace anabranch::device
