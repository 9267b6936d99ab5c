#include "sparse/record_loops.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/record_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "sparse/rule_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::sparse {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class D> HWY_INLINE hn::Vec<D> gradient(D d, const RecordUpdate& u, int32_t place, int64_t j) {
  auto sum = hn::LoadU(d, u.grads + place * u.width + j);
  for (int32_t p = u.next[place]; p >= 0; p = u.next[p]) {
    sum = hn::Add(sum, hn::LoadU(d, u.grads + p * u.width + j));
  }
  return sum;
}

constexpr int64_t kAhead = 16, kLineFloats = 16;

HWY_INLINE void prefetch(const RecordUpdate& u, int64_t i, int64_t floats) {
  if (i >= u.count) return;
  const RecordGroup& g = u.groups[i];
  for (int64_t j = 0; j < floats; j += kLineFloats) __builtin_prefetch(g.record + j, 1);
  for (int64_t j = 0; j < u.width; j += kLineFloats) __builtin_prefetch(u.grads + g.first * u.width + j);
}

// step(d, gradient, row) for whole vectors of d from element j on; returns where they end.
template <class D, class Step>
HWY_INLINE int64_t whole_vectors(D d, const RecordUpdate& u, int64_t i, int64_t j, Step&& step) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const RecordGroup& g = u.groups[i];
  for (; j + lanes <= u.width; j += lanes) step(d, gradient(d, u, g.first, j), g.record + j);
  return j;
}

// The counts at the start of a row.
HWY_INLINE void add_counts(const RecordUpdate& u, const RecordGroup& g) {
  const hn::CappedTag<float, 1> d;
  for (int64_t j = 0; j < u.added; ++j) {
    hn::StoreU(hn::Add(hn::LoadU(d, g.record + j), gradient(d, u, g.first, j)), d, g.record + j);
  }
}

// step(d, gradient, row) for all vectors of record i, ever shorter ones at its end.
template <class Step> HWY_INLINE void each_vector(const RecordUpdate& u, int64_t i, const Step& step) {
  int64_t j = whole_vectors(hn::ScalableTag<float>(), u, i, u.added, step);
  j = whole_vectors(hn::CappedTag<float, 4>(), u, i, j, step);
  whole_vectors(hn::CappedTag<float, 1>(), u, i, j, step);
}

// fn(i) for all records, which are fetched ahead.
template <class Fn> HWY_INLINE void each_record(const RecordUpdate& u, int64_t floats, const Fn& fn) {
  for (int64_t i = 0; i < u.count && i < kAhead; ++i) prefetch(u, i, floats);
  for (int64_t i = 0; i < u.count; ++i) {
    prefetch(u, i + kAhead, floats);
    add_counts(u, u.groups[i]);
    fn(i);
  }
}

// Regularizes a part of a row and its gradient.
template <class V> HWY_INLINE void decay(const RecordUpdate& u, V& g, V& p) {
  const V zero = 0.0f;
  p = p - p * u.shrink;
  g = g + p * u.l2_decay;
  const V sign = pick(p > zero, V(1.0f), pick(p < zero, V(-1.0f), zero));
  g = g + sign * u.l1_decay;
}

// The moments follow the row.
template <bool kDecays, class R, size_t... S>
HWY_INLINE void update_by(const RecordUpdate& u, const R& rule, std::index_sequence<S...>) {
  [[maybe_unused]] const auto width = static_cast<size_t>(u.width);
  const auto step = [&, rule, width](auto d, auto grad, float* row) HWY_ATTR {
    using V = rules::HWY_NAMESPACE::Wide<decltype(d)>;
    V p = hn::LoadU(d, row), g = grad;
    if constexpr (kDecays) decay(u, g, p);
    [&](auto... state) HWY_ATTR {
      rules::HWY_NAMESPACE::step(rule, g, p, state...);
      (hn::StoreU(state.v, d, row + (S + 1) * width), ...);
    }(V(hn::LoadU(d, row + (S + 1) * width))...);
    hn::StoreU(p.v, d, row);
  };
  each_record(u, u.width * static_cast<int64_t>(1 + sizeof...(S)),
              [&](int64_t i) HWY_ATTR { each_vector(u, i, step); });
}

// moment = moment + the mean of g^2 over the row; p = p - rate g / (sqrt(moment) + epsilon). The squares are added up
// in an order that does not depend on the width of vectors.
template <bool kDecays> HWY_INLINE void update_by_rows(const RecordUpdate& u) {
  const hn::CappedTag<float, 1> one;
  using One = rules::HWY_NAMESPACE::Wide<decltype(one)>;
  each_record(u, u.width + 1, [&](int64_t i) HWY_ATTR {
    const RecordGroup& group = u.groups[i];
    float sums[4] = {};
    for (int64_t j = u.added; j < u.width; ++j) {
      One p = hn::LoadU(one, group.record + j), g = gradient(one, u, group.first, j);
      if constexpr (kDecays) decay(u, g, p);
      sums[(j - u.added) % 4] += hn::GetLane((g * g).v);
    }
    float& moment = group.record[u.width];
    moment += (sums[0] + sums[1] + (sums[2] + sums[3])) / static_cast<float>(u.width - u.added);
    const float root = std::sqrt(moment) + u.epsilon;
    each_vector(u, i, [&](auto d, auto grad, float* row) HWY_ATTR {
      using V = rules::HWY_NAMESPACE::Wide<decltype(d)>;
      V p = hn::LoadU(d, row), g = grad;
      if constexpr (kDecays) decay(u, g, p);
      hn::StoreU((p - u.rate * g / V(root)).v, d, row);
    });
  });
}

void Update(const RecordUpdate& u) {
  if (u.rule == RowRule::kRowAdagrad) return u.decays() ? update_by_rows<true>(u) : update_by_rows<false>(u);
  u.with_rule([&](const auto& rule) HWY_ATTR {
    const auto states = std::make_index_sequence<std::remove_cvref_t<decltype(rule)>::kStates>();
    u.decays() ? update_by<true>(u, rule, states) : update_by<false>(u, rule, states);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sparse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sparse {
HWY_EXPORT(Update);
void update_records(const RecordUpdate& u) { HWY_DYNAMIC_DISPATCH(Update)(u); }

RowRule row_rule(const std::string& name) {
  const auto of_name = [&](const rules::RowRuleInfo& info) { return name == info.name; };
  const auto* const found = std::find_if(rules::kRowRules.begin(), rules::kRowRules.end(), of_name);
  AB_CHECK(found != rules::kRowRules.end(), InvalidArgument,
           "rule must be sgd, adagrad, adam, momentum, ftrl or row_adagrad, got \"{}\"", name);
  return static_cast<RowRule>(found - rules::kRowRules.begin());
}
}  // namespace anabranch::sparse
#endif  // HWY_ONCE
