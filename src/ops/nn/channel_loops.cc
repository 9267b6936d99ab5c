#include "ops/nn/channel_loops.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/nn/channel_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::nn::channel_loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

constexpr int64_t kParts = 16, kBlock = 2048, kTile = 8;

template <class D> constexpr int64_t lanes() { return static_cast<int64_t>(hn::MaxLanes(D())); }

// fn(d, i) until [from, n) is covered, in narrower vectors at the end.
template <class D, class Fn> HWY_INLINE void each_vector(D d, int64_t from, int64_t n, const Fn& fn) {
  using T = hn::TFromD<D>;
  int64_t i = from;
  for (; i + lanes<D>() <= n; i += lanes<D>()) fn(d, i);
  if (lanes<D>() > 4) {
    for (; i + 4 <= n; i += 4) fn(hn::CappedTag<T, 4>(), i);
  }
  if (lanes<D>() > 1) {
    for (; i < n; ++i) fn(hn::CappedTag<T, 1>(), i);
  }
}

// An operand per channel: that of a run, or one for each element of a row.
template <class T, bool kLast> struct PerChannel {
  const T* all;
  T one;
  explicit PerChannel(const T* from) : all(from), one(kLast ? T{} : *from) {}
  template <class D> HWY_INLINE hn::Vec<D> operator()(D d, int64_t i) const {
    if constexpr (kLast) return hn::LoadU(d, all + i);
    return hn::Set(d, one);
  }
};

template <class T, bool kMasked> struct Masked {
  Gradient<T> from;
  // A product, so that a NaN in the gradient propagates.
  template <class D> HWY_INLINE hn::Vec<D> operator()(D d, int64_t at) const {
    const auto g = hn::LoadU(d, from.dy + at);
    if constexpr (!kMasked) return g;
    const auto positive = hn::Gt(hn::LoadU(d, from.y + at), hn::Zero(d));
    return hn::Mul(g, hn::IfThenElseZero(positive, hn::Set(d, T{1})));
  }
};

// ---- elements

// fn_of(channel)(d, at, i): elements of the tensor at `at`, of `channel`, or of the channels from i if they are last.
template <class T, bool kLast, class FnOf> HWY_INLINE void each_element(const Part& part, const FnOf& fn_of) {
  const hn::CappedTag<T, kParts> widest;
  for (int64_t r = 0; r < part.count; ++r) {
    const int64_t row = r * part.stride;
    for (int64_t ch = 0; ch < (kLast ? 1 : part.channels); ++ch) {
      const auto fn = fn_of(ch);
      const int64_t begin = row + ch * part.width;
      each_vector(widest, 0, kLast ? part.channels : part.width,
                  [&](auto d, int64_t i) HWY_ATTR { fn(d, begin + i, i); });
    }
  }
}

template <class T, bool kLast, bool kRelu>
void affine_of(const Part& part, const T* x, const T* factor, const T* offset, T* y) {
  each_element<T, kLast>(part, [=](int64_t ch) HWY_ATTR {
    const PerChannel<T, kLast> f(factor + ch), o(offset + ch);
    return [=](auto d, int64_t at, int64_t i) HWY_ATTR {
      const auto v = hn::Add(hn::Mul(hn::LoadU(d, x + at), f(d, i)), o(d, i));
      // A NaN is not below 0 and is kept.
      hn::StoreU(kRelu ? hn::IfThenZeroElse(hn::Lt(v, hn::Zero(d)), v) : v, d, y + at);
    };
  });
}

template <class T, bool kLast, bool kMasked>
void combine_of(const Part& part, Gradient<T> gradient, const T* x, const Slopes<T>& by, T* dx) {
  const Masked<T, kMasked> g{gradient};
  each_element<T, kLast>(part, [=](int64_t ch) HWY_ATTR {
    const PerChannel<T, kLast> factor(by.factor + ch), mean_g(by.mean_g + ch), slope(by.slope + ch),
        center(by.center + ch);
    return [=](auto d, int64_t at, int64_t i) HWY_ATTR {
      const auto along = hn::Mul(hn::Sub(hn::LoadU(d, x + at), center(d, i)), slope(d, i));
      hn::StoreU(hn::Mul(factor(d, i), hn::Sub(hn::Sub(g(d, at), mean_g(d, i)), along)), d, dx + at);
    };
  });
}

// ---- sums. terms_of(channel)(d, at, i, add): calls add(s, v) with the elements of term s.

template <class T, int kSums> struct Partial {
  using D = hn::CappedTag<T, kParts>;
  static constexpr int64_t kLanes = lanes<D>(), kVectors = kParts / kLanes;
  hn::Vec<D> part[kSums][kVectors];

  HWY_INLINE Partial() {
    for (auto& vectors : part) {
      for (auto& v : vectors) v = hn::Zero(D());
    }
  }

  // Elements [from, to) of the run from element `begin` on.
  template <class Terms> HWY_INLINE void add(int64_t begin, int64_t from, int64_t to, const Terms& terms) {
    int64_t i = from;
    for (; i + kParts <= to; i += kParts) {
      for (int64_t k = 0; k < kVectors; ++k) {
        terms(D(), i + k * kLanes, 0, [&](int s, hn::Vec<D> v) HWY_ATTR { part[s][k] = hn::Add(part[s][k], v); });
      }
    }
    if (i == to) return;
    if (to - begin < kLanes) return add_rest(i, to, terms);
    for (int64_t k = 0; k < kVectors; ++k) {
      const int64_t end = std::min(i + kLanes, to);
      if (i < to) add_end(end - i, end, k, terms);
      i = end;
    }
  }

  // The `count` elements before `end`, which are shifted to the first lanes.
  template <class Terms> HWY_INLINE void add_end(int64_t count, int64_t end, int64_t k, const Terms& terms) {
    if constexpr (kLanes > 1) {
      const D d;
      const hn::RebindToSigned<D> di;
      using I = hn::TFromD<decltype(di)>;
      const auto lane = hn::Add(hn::Iota(di, 0), hn::Set(di, static_cast<I>(kLanes - count)));
      const auto from = hn::IndicesFromVec(d, hn::And(lane, hn::Set(di, static_cast<I>(kLanes - 1))));
      const auto valid = hn::FirstN(d, static_cast<size_t>(count));
      terms(d, end - kLanes, 0, [&](int s, hn::Vec<D> v) HWY_ATTR {
        part[s][k] = hn::Add(part[s][k], hn::IfThenElseZero(valid, hn::TableLookupLanes(v, from)));
      });
    }
  }

  template <class Terms> HWY_INLINE void add_rest(int64_t from, int64_t to, const Terms& terms) {
    HWY_ALIGN T sums[kSums][kParts];
    for (int s = 0; s < kSums; ++s) {
      for (int64_t k = 0; k < kVectors; ++k) hn::Store(part[s][k], D(), sums[s] + k * kLanes);
    }
    each_vector(D(), from, to, [&](auto d, int64_t i) HWY_ATTR {
      terms(d, i, 0, [&](int s, auto v) HWY_ATTR {
        T* sum = sums[s] + (i - from);
        hn::StoreU(hn::Add(hn::LoadU(d, sum), v), d, sum);
      });
    });
    for (int s = 0; s < kSums; ++s) {
      for (int64_t k = 0; k < kVectors; ++k) part[s][k] = hn::Load(D(), sums[s] + k * kLanes);
    }
  }

  // The partial sums of both halves are added up until one is left.
  template <class DV> static HWY_INLINE T folded(DV, hn::Vec<DV> v) {
    if constexpr (lanes<DV>() == 1) {
      return hn::GetLane(v);
    } else {
      const hn::Half<DV> half;
      return folded(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
    }
  }
  HWY_INLINE T total(int s) {
    for (int64_t half = kVectors / 2; half > 0; half /= 2) {
      for (int64_t k = 0; k < half; ++k) part[s][k] = hn::Add(part[s][k], part[s][k + half]);
    }
    return folded(D(), part[s][0]);
  }
};

template <class T, int kSums, class TermsOf>
HWY_INLINE void add_runs(const Part& part, const TermsOf& terms_of, double* const (&sums)[kSums]) {
  for (int64_t r = 0; r < part.count; ++r) {
    for (int64_t ch = 0; ch < part.channels; ++ch) {
      const auto terms = terms_of(ch);
      const int64_t begin = r * part.stride + ch * part.width, end = begin + part.width;
      double of_run[kSums] = {};
      for (int64_t from = begin; from < end; from += kBlock) {
        Partial<T, kSums> block;
        block.add(begin, from, end - from < kBlock ? end : from + kBlock, terms);
        for (int s = 0; s < kSums; ++s) of_run[s] += static_cast<double>(block.total(s));
      }
      for (int s = 0; s < kSums; ++s) sums[s][ch] += static_cast<double>(static_cast<T>(of_run[s]));
    }
  }
}

template <class D> HWY_INLINE hn::Vec<D> widened(D, hn::Vec<D> v) { return v; }
template <class D> HWY_INLINE hn::Vec<D> widened(D d, hn::Vec<hn::Rebind<float, D>> v) { return hn::PromoteTo(d, v); }

// A few rows at a time, so that sums stay in registers for some additions, and rows are read one after the other.
template <class T, int kSums, class Terms>
HWY_INLINE void add_rows(const Part& part, const Terms& terms, double* const (&sums)[kSums]) {
  for (int64_t from = 0; from < part.count; from += kTile) {
    const int64_t to = part.count - from < kTile ? part.count : from + kTile;
    each_vector(hn::CappedTag<double, kParts / 2>(), 0, part.channels, [&](auto d, int64_t i) HWY_ATTR {
      using D = decltype(d);
      hn::Vec<D> sum[kSums];
      for (int s = 0; s < kSums; ++s) sum[s] = hn::LoadU(d, sums[s] + i);
      for (int64_t r = from; r < to; ++r) {
        terms(hn::Rebind<T, D>(), r * part.stride + i, i,
              [&](int s, auto v) HWY_ATTR { sum[s] = hn::Add(sum[s], widened(d, v)); });
      }
      for (int s = 0; s < kSums; ++s) hn::StoreU(sum[s], d, sums[s] + i);
    });
  }
}

template <class T, bool kLast, int kSums, class TermsOf>
HWY_INLINE void add_terms(const Part& part, const TermsOf& terms_of, double* const (&sums)[kSums]) {
  if constexpr (kLast) {
    add_rows<T>(part, terms_of(0), sums);
  } else {
    add_runs<T>(part, terms_of, sums);
  }
}

template <class T, bool kLast> void add_elements_of(const Part& part, const T* x, double* sums) {
  add_terms<T, kLast, 1>(part,
                         [=](int64_t) HWY_ATTR {
                           return [=](auto d, int64_t at, int64_t, const auto& add)
                                      HWY_ATTR { add(0, hn::LoadU(d, x + at)); };
                         },
                         {sums});
}

template <class T, bool kLast> void add_squares_of(const Part& part, const T* x, const T* center, double* sums) {
  add_terms<T, kLast, 1>(part,
                         [=](int64_t ch) HWY_ATTR {
                           const PerChannel<T, kLast> middle(center + ch);
                           return [=](auto d, int64_t at, int64_t i, const auto& add) HWY_ATTR {
                             const auto v = hn::Sub(hn::LoadU(d, x + at), middle(d, i));
                             add(0, hn::Mul(v, v));
                           };
                         },
                         {sums});
}

template <class T, bool kLast, bool kMasked>
void add_products_of(const Part& part, Gradient<T> gradient, const T* x, const T* center, const T* inv, double* sum_g,
                     double* sum_gx) {
  const Masked<T, kMasked> g{gradient};
  add_terms<T, kLast, 2>(part,
                         [=](int64_t ch) HWY_ATTR {
                           const PerChannel<T, kLast> middle(center + ch), inverse(inv + ch);
                           return [=](auto d, int64_t at, int64_t i, const auto& add) HWY_ATTR {
                             const auto v = g(d, at);
                             add(0, v);
                             add(1, hn::Mul(v, hn::Mul(hn::Sub(hn::LoadU(d, x + at), middle(d, i)), inverse(d, i))));
                           };
                         },
                         {sum_g, sum_gx});
}

// ---- by layout and activation

template <class T> struct Named {
  static void add_elements(const Part& part, const T* x, double* sums) {
    (part.last() ? add_elements_of<T, true> : add_elements_of<T, false>)(part, x, sums);
  }
  static void add_squares(const Part& part, const T* x, const T* center, double* sums) {
    (part.last() ? add_squares_of<T, true> : add_squares_of<T, false>)(part, x, center, sums);
  }
  static void add_products(const Part& part, Gradient<T> g, const T* x, const T* center, const T* inv, double* sum_g,
                           double* sum_gx) {
    const auto of_channel = g.y ? add_products_of<T, false, true> : add_products_of<T, false, false>;
    const auto of_rows = g.y ? add_products_of<T, true, true> : add_products_of<T, true, false>;
    (part.last() ? of_rows : of_channel)(part, g, x, center, inv, sum_g, sum_gx);
  }
  static void affine(const Part& part, const T* x, const T* factor, const T* offset, bool relu, T* y) {
    const auto of_channel = relu ? affine_of<T, false, true> : affine_of<T, false, false>;
    const auto of_rows = relu ? affine_of<T, true, true> : affine_of<T, true, false>;
    (part.last() ? of_rows : of_channel)(part, x, factor, offset, y);
  }
  static void combine(const Part& part, Gradient<T> g, const T* x, const Slopes<T>& by, T* dx) {
    const auto of_channel = g.y ? combine_of<T, false, true> : combine_of<T, false, false>;
    const auto of_rows = g.y ? combine_of<T, true, true> : combine_of<T, true, false>;
    (part.last() ? of_rows : of_channel)(part, g, x, by, dx);
  }
  static constexpr Loops<T> kAll = {add_elements, add_squares, add_products, affine, combine};
};

const Loops<float>* Floats() { return &Named<float>::kAll; }
const Loops<double>* Doubles() { return &Named<double>::kAll; }

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::nn::channel_loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::nn::channel_loops {

HWY_EXPORT(Floats);
HWY_EXPORT(Doubles);
template <> const Loops<float>& loops<float>() { return *HWY_DYNAMIC_DISPATCH(Floats)(); }
template <> const Loops<double>& loops<double>() { return *HWY_DYNAMIC_DISPATCH(Doubles)(); }

}  // namespace anabranch::nn::channel_loops
#endif
