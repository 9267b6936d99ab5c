#include "sparse/record_loops.h"

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

template <class Step> HWY_INLINE void each_record(const RecordUpdate& u, Step&& step) {
  const int64_t floats = u.width * (1 + static_cast<int64_t>(u.rule));
  for (int64_t i = 0; i < u.count && i < kAhead; ++i) prefetch(u, i, floats);
  for (int64_t i = 0; i < u.count; ++i) {
    prefetch(u, i + kAhead, floats);
    for (int64_t j = 0; j < u.added; ++j) {
      const hn::CappedTag<float, 1> d;
      float* const count = u.groups[i].record + j;
      hn::StoreU(hn::Add(hn::LoadU(d, count), gradient(d, u, u.groups[i].first, j)), d, count);
    }
    int64_t j = whole_vectors(hn::ScalableTag<float>(), u, i, u.added, step);
    j = whole_vectors(hn::CappedTag<float, 4>(), u, i, j, step);
    whole_vectors(hn::CappedTag<float, 1>(), u, i, j, step);
  }
}

// The moments follow the row.
template <class R, size_t... S>
HWY_INLINE void update_by(const RecordUpdate& u, const R& rule, std::index_sequence<S...>) {
  [[maybe_unused]] const auto width = static_cast<size_t>(u.width);
  each_record(u, [=](auto d, auto g, float* row) HWY_ATTR {
    using V = rules::HWY_NAMESPACE::Wide<decltype(d)>;
    V p = hn::LoadU(d, row);
    [&](auto... state) HWY_ATTR {
      rules::HWY_NAMESPACE::step(rule, V(g), p, state...);
      (hn::StoreU(state.v, d, row + (S + 1) * width), ...);
    }(V(hn::LoadU(d, row + (S + 1) * width))...);
    hn::StoreU(p.v, d, row);
  });
}

void Update(const RecordUpdate& u) {
  u.with_rule([&](const auto& rule) HWY_ATTR {
    update_by(u, rule, std::make_index_sequence<std::remove_cvref_t<decltype(rule)>::kStates>());
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
  if (name == "sgd") return RowRule::kSgd;
  if (name == "adagrad") return RowRule::kAdagrad;
  AB_CHECK(name == "adam", InvalidArgument, "rule must be sgd, adagrad or adam, got \"{}\"", name);
  return RowRule::kAdam;
}
}  // namespace anabranch::sparse
#endif  // HWY_ONCE
