// Kernels of the gradients of binary arithmetic, by structs as those of arithmetic_functions.h. Functions that take
// them get the numbers of the launch last. Where an operand was repeated, its terms are added up. dy is made first: dx
// may lie in the memory of dout.
#pragma once
#include "ops/device/args_math.h"
#include "ops/device/fold_rows.h"
#include "ops/device/walk.h"
#include "ops/kernels/folds.h"
#include "ops/math/arithmetic_functions.h"

namespace anabranch::device {

// The terms of one operand's gradient. Integers divided by 0 are reported and count as 0.
template <class F, class T, bool kOfX, bool kDivides> struct Term {
  const T *x, *y, *out, *dout;
  FaultReport report;
  double p[kMaxNumbers];
  AB_HD Compute<T> at(const int64_t (&place)[3]) const {
    const Compute<T> a = load(x[place[1]]), b = load(y[place[2]]), d = load(dout[place[0]]);
    const Compute<T> o = out ? load(out[place[0]]) : Compute<T>(0);
    if constexpr (kDivides && std::is_integral_v<T>) {
      if (b == 0) {
        report(1, place[0]);
        return T(0);
      }
    }
    return slope(a, b, o, d);
  }

 private:
  AB_HD Compute<T> slope(Compute<T> a, Compute<T> b, Compute<T> o, Compute<T> d) const {
    if constexpr (requires { F::dx(a, b, o, d, p); })
      return kOfX ? F::dx(a, b, o, d, p) : F::dy(a, b, o, d, p);
    else
      return kOfX ? F::dx(a, b, o, d) : F::dy(a, b, o, d);
  }
};

template <class T, class Term, int kSelf> struct PlainTerms {
  Walk<3> walk;
  Term term;
  T* to;
  AB_HD void operator()(int64_t i) const {
    int64_t place[3];
    walk.at(i, place);
    store(to + place[kSelf], term.at(place));
  }
};

template <class T, class Term, int kSelf> struct FoldedTerms {
  using Fold = FoldSum<Compute<T>>;
  using Wide = typename Fold::Wide;
  Walk<3> kept, folded;
  Term term;
  T* to;
  AB_HD static Wide start() { return Wide(0); }
  AB_HD static Wide join(Wide a, Wide b) { return Fold::join(a, b); }
  AB_HD Wide at(int64_t row, int64_t i) const {
    int64_t place[3], inside[3];
    kept.at(row, place);
    folded.at(i, inside);
    for (int k = 0; k < 3; ++k) place[k] += inside[k];
    return static_cast<Wide>(term.at(place));
  }
  AB_HD void put(int64_t row, Wide total) const {
    int64_t place[3];
    kept.at(row, place);
    store(to + place[kSelf], static_cast<Compute<T>>(total));
  }
};

struct GradParts {  // of one operand
  Walk<3> kept, folded;
  Neighbours neighbours;
  GradParts(const Axes<3>& axes, int own)
      : kept(axes_where(axes, own, false)), folded(axes_where(axes, own, true)), neighbours(Neighbours::kElements) {
    // Where the innermost axis is kept, neighbours in memory belong to different results.
    if (axes.rank && axes.stride[own][axes.rank - 1] != 0) neighbours = Neighbours::kRows;
  }
};

template <class F, bool kDivides = false> struct BinaryGradOf {
  template <class T> using Wide = typename FoldSum<Compute<T>>::Wide;
  template <class T> static size_t room(const BinaryGradArgs& a) {
    size_t most = 0;
    for (int own : {1, 2}) {
      if (own == 1 ? !a.dx.there() : !a.dy.there()) continue;
      const GradParts parts(a.axes, own);
      const size_t room = fold_room<Wide<T>>(parts.kept.count(), parts.folded.count(), parts.neighbours);
      if (room > most) most = room;
    }
    return most;
  }
  template <class T, bool kOfX> static int one(const Launch& launch, const BinaryGradArgs& a, const FaultSink& fault) {
    constexpr int kSelf = kOfX ? 1 : 2;
    using Terms = Term<F, T, kOfX, kDivides>;
    Terms term{a.x.get<T>(), a.y.get<T>(), a.out.get<T>(), a.dout.get<T>(), FaultReport(fault), {}};
    for (int k = 0; k < kMaxNumbers; ++k) term.p[k] = a.p[k];
    T* to = (kOfX ? a.dx : a.dy).template get<T>();
    const GradParts parts(a.axes, kSelf);
    if (parts.folded.count() == 1) {
      const Walk<3> walk(a.axes);
      return each(launch, walk.count(), PlainTerms<T, Terms, kSelf>{walk, term, to});
    }
    return fold_rows(launch, parts.kept.count(), parts.folded.count(), parts.neighbours,
                     FoldedTerms<T, Terms, kSelf>{parts.kept, parts.folded, term, to}, launch.workspace.get<Wide<T>>());
  }
  template <class T> static int both(const Launch& launch, const BinaryGradArgs& a, const FaultSink& fault) {
    if (a.dy.there()) {
      if (const int failed = one<T, false>(launch, a, fault)) return failed;
    }
    return a.dx.there() ? one<T, true>(launch, a, fault) : 0;
  }
};

template <class F> struct BinaryGrad {
  using Args = BinaryGradArgs;
  template <class T> static size_t room(const Args& a) { return BinaryGradOf<F>::template room<T>(a); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    return BinaryGradOf<F>::template both<T>(launch, a, FaultSink{});
  }
};

template <class F> struct IntegerDivisionGrad {
  using Args = CheckedBinaryGradArgs;
  template <class T> static size_t room(const Args& a) { return BinaryGradOf<F, true>::template room<T>(a.binary); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    return BinaryGradOf<F, true>::template both<T>(launch, a.binary, a.fault);
  }
};

}  // namespace anabranch::device
