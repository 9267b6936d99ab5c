// Kernels of the gradients of binary arithmetic, for structs like those of arithmetic_functions.h. Functions that take
// these structs get the numbers of the launch last. One kernel computes the terms of both operands. If an operand was
// broadcast, its terms are stored in the workspace and summed afterwards; if they are dout itself, it is summed
// directly. So only one kernel per type depends on the function, and the sums are shared by all (binary_grad_sums.cu).
#pragma once
#include "ops/device/args_math.h"
#include "ops/device/fold_rows.h"
#include "ops/device/pack.h"
#include "ops/device/walk.h"
#include "ops/kernels/folds.h"
#include "ops/math/arithmetic_functions.h"

namespace anabranch::device {

// The destination of the terms of one operand: its gradient, the workspace (in loop order), or none.
template <class T> struct TermsTo {
  T* gradient;
  Compute<T>* kept;
  AB_HD bool there() const { return gradient || kept; }
  AB_HD void put(int64_t i, int64_t place, Compute<T> term) const {
    if (kept) {
      kept[i] = term;
    } else {
      store(gradient + place, term);
    }
  }
};

// Integer divisions by 0 are reported and count as 0. Reads everything before writing anything: dx may alias dout.
template <class F, class T, bool kDivides> struct Terms {
  Walk<3> walk;
  const T *x, *y, *out, *dout;
  TermsTo<T> dx, dy;
  FaultReport report;
  double p[kMaxNumbers];

  AB_HD void operator()(int64_t i) const {
    int64_t place[3];
    walk.at(i, place);
    const Compute<T> a = load(x[place[1]]), b = load(y[place[2]]), d = load(dout[place[0]]);
    const Compute<T> o = out ? load(out[place[0]]) : Compute<T>(0);
    bool divides = true;
    if constexpr (kDivides && std::is_integral_v<T>) divides = b != 0;
    if (!divides) report(1, place[0]);
    if (dx.there()) dx.put(i, place[1], divides ? slope<true>(a, b, o, d) : Compute<T>(0));
    if (dy.there()) dy.put(i, place[2], divides ? slope<false>(a, b, o, d) : Compute<T>(0));
  }

 private:
  template <bool kOfX> AB_HD Compute<T> slope(Compute<T> a, Compute<T> b, Compute<T> o, Compute<T> d) const {
    if constexpr (requires { F::dx(a, b, o, d, p); })
      return kOfX ? F::dx(a, b, o, d, p) : F::dy(a, b, o, d, p);
    else
      return kOfX ? F::dx(a, b, o, d) : F::dy(a, b, o, d);
  }
};

// The reduction of one operand's terms.
struct GradParts {
  Walk<2> kept, folded;  // over the terms, and over the operand
  Neighbors neighbors;
  int64_t row = 0;  // distance of the rows of a matrix of terms whose columns are summed; 0: other layouts
  // `dense`: terms are in loop order; else in the layout of dout.
  GradParts(const Axes<3>& axes, int own, bool dense) : GradParts(terms_and(axes, own, dense)) {}
  bool sums() const { return folded.count() != 1; }
  template <class T> size_t room() const {
    return fold_room<typename FoldSum<Compute<T>>::Wide>(kept.count(), folded.count(), neighbors);
  }

 private:
  explicit GradParts(const Axes<2>& axes)
      : kept(axes_where(axes, 1, false)), folded(axes_where(axes, 1, true)), neighbors(Neighbors::kElements) {
    // If the innermost axis is kept, adjacent elements belong to different results.
    if (axes.rank && axes.stride[1][axes.rank - 1] != 0) neighbors = Neighbors::kRows;
    const bool matrix = axes.rank == 2 && axes.stride[1][0] == 0 && axes.stride[1][1] == 1 && axes.stride[0][1] == 1;
    if (matrix) row = axes.stride[0][0];
  }
  static Axes<2> terms_and(const Axes<3>& axes, int own, bool dense) {
    Axes<2> both = {};
    both.rank = axes.rank;
    int64_t step = 1;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      both.extent[axis] = axes.extent[axis];
      both.stride[0][axis] = dense ? step : axes.stride[0][axis];
      both.stride[1][axis] = axes.stride[own][axis];
      step *= axes.extent[axis];
    }
    return both;
  }
};

// to = the sums of terms, or their negatives. `room`: parts.room<T>() bytes. Instances are in binary_grad_sums.cu.
template <class Term, class T>
int sum_terms(const Launch& launch, const GradParts& parts, const Term* terms, bool negative, T* to, void* room);

// 1, -1: the terms are dout, or its negative, independent of x and y. 0: they must be computed.
template <class F, bool kOfX> constexpr int passes_on() {
  if constexpr (requires { F::dx_passes; }) return kOfX ? F::dx_passes : F::dy_passes;
  return 0;
}

template <class F, bool kDivides = false> struct BinaryGradOf {
  template <bool kOfX> static constexpr bool kDense = passes_on<F, kOfX>() == 0;

  // Whether a gradient equals dout, element by element in its order.
  template <bool kOfX> static bool is_dout(const Axes<3>& axes) {
    constexpr int kOperand = kOfX ? 1 : 2;
    if (passes_on<F, kOfX>() <= 0) return false;
    int64_t step = 1;
    for (int axis = axes.rank - 1; axis >= 0; --axis) {
      if (axes.stride[0][axis] != step || axes.stride[kOperand][axis] != step) return false;
      step *= axes.extent[axis];
    }
    return true;
  }
  template <class T> static int copy_dout(const Launch& launch, const T* dout, T* to, const Axes<3>& axes) {
    return to == dout ? 0 : copy_dense(launch, dout, to, axes.count());
  }

  // Bytes of an operand's terms in the workspace.
  template <class T, bool kOfX> static size_t kept(const BinaryGradArgs& a, const GradParts& parts) {
    if (!kDense<kOfX> || !(kOfX ? a.dx : a.dy).there() || !parts.sums()) return 0;
    return (static_cast<size_t>(a.axes.count()) * sizeof(Compute<T>) + 255) / 256 * 256;
  }

  template <class T> static size_t room(const BinaryGradArgs& a) {
    const GradParts of_x(a.axes, 1, kDense<true>), of_y(a.axes, 2, kDense<false>);
    const size_t x = a.dx.there() ? of_x.room<T>() : 0, y = a.dy.there() ? of_y.room<T>() : 0;
    return kept<T, true>(a, of_x) + kept<T, false>(a, of_y) + (x > y ? x : y);
  }

  template <class T> static int run(const Launch& launch, const BinaryGradArgs& a, const FaultSink& fault) {
    const GradParts of_x(a.axes, 1, kDense<true>), of_y(a.axes, 2, kDense<false>);
    const size_t x_bytes = kept<T, true>(a, of_x), y_bytes = kept<T, false>(a, of_y);
    char* room = launch.workspace.get<char>();
    auto* x_terms = x_bytes ? reinterpret_cast<Compute<T>*>(room) : nullptr;
    auto* y_terms = y_bytes ? reinterpret_cast<Compute<T>*>(room + x_bytes) : nullptr;
    void* rest = room + x_bytes + y_bytes;
    T *dx = a.dx.get<T>(), *dy = a.dy.get<T>();
    const T* dout = a.dout.get<T>();
    const bool x_passes = dx && !kDense<true> && of_x.sums(), y_passes = dy && !kDense<false> && of_y.sums();
    int failed = 0;
    // Readers of dout come first.
    if (y_passes) failed = sum_terms<T, T>(launch, of_y, dout, passes_on<F, false>() < 0, dy, rest);
    if (x_passes && !failed) failed = sum_terms<T, T>(launch, of_x, dout, passes_on<F, true>() < 0, dx, rest);
    const bool dy_left = dy && !y_passes;
    if (dx && !failed && is_dout<true>(a.axes) && (!dy_left || is_dout<false>(a.axes))) {
      if (dy_left) failed = copy_dout(launch, dout, dy, a.axes);
      return failed ? failed : copy_dout(launch, dout, dx, a.axes);
    }
    Terms<F, T, kDivides> terms{Walk<3>(a.axes),
                                a.x.get<T>(),
                                a.y.get<T>(),
                                a.out.get<T>(),
                                dout,
                                {x_passes || x_terms ? nullptr : dx, x_terms},
                                {y_passes || y_terms ? nullptr : dy, y_terms},
                                FaultReport(fault),
                                {}};
    for (int k = 0; k < kMaxNumbers; ++k) terms.p[k] = a.p[k];
    if (!failed && (terms.dx.there() || terms.dy.there())) failed = each(launch, a.axes.count(), terms);
    if (y_terms && !failed) failed = sum_terms<Compute<T>, T>(launch, of_y, y_terms, false, dy, rest);
    if (x_terms && !failed) failed = sum_terms<Compute<T>, T>(launch, of_x, x_terms, false, dx, rest);
    return failed;
  }
};

template <class F> struct BinaryGrad {
  using Args = BinaryGradArgs;
  template <class T> static size_t room(const Args& a) { return BinaryGradOf<F>::template room<T>(a); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    return BinaryGradOf<F>::template run<T>(launch, a, FaultSink{});
  }
};

template <class F> struct IntegerDivisionGrad {
  using Args = CheckedBinaryGradArgs;
  template <class T> static size_t room(const Args& a) { return BinaryGradOf<F, true>::template room<T>(a.binary); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    return BinaryGradOf<F, true>::template run<T>(launch, a.binary, a.fault);
  }
};

}  // namespace anabranch::device
