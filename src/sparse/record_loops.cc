#include "sparse/record_loops.h"

#include <cstddef>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sparse/record_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h stands first: it includes this file once for every instruction set
#include "hwy/highway.h"

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

// step(d, gradient, row, moments...) for whole vectors of d from element j on; returns where they end.
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
    int64_t j = whole_vectors(hn::ScalableTag<float>(), u, i, 0, step);
    j = whole_vectors(hn::CappedTag<float, 4>(), u, i, j, step);
    whole_vectors(hn::CappedTag<float, 1>(), u, i, j, step);
  }
}

template <class D> HWY_INLINE void move(D d, float* at, hn::Vec<D> by) {
  hn::StoreU(hn::Sub(hn::LoadU(d, at), by), d, at);
}

void Update(const RecordUpdate& u) {
  const float rate = u.rate, epsilon = u.epsilon, keep1 = u.beta1, keep2 = u.beta2, add1 = 1 - keep1, add2 = 1 - keep2;
  const int64_t width = u.width;
  if (u.rule == RecordRule::kSgd) {
    each_record(u, [=](auto d, auto g, float* w) HWY_ATTR { move(d, w, hn::Mul(hn::Set(d, rate), g)); });
  } else if (u.rule == RecordRule::kAdagrad) {
    each_record(u, [=](auto d, auto g, float* w) HWY_ATTR {
      const auto moment = hn::Add(hn::LoadU(d, w + width), hn::Mul(g, g));
      hn::StoreU(moment, d, w + width);
      move(d, w, hn::Div(hn::Mul(hn::Set(d, rate), g), hn::Add(hn::Sqrt(moment), hn::Set(d, epsilon))));
    });
  } else {
    each_record(u, [=](auto d, auto g, float* w) HWY_ATTR {
      const auto average = [&](float* at, float keep, auto value, float add) HWY_ATTR {
        const auto now = hn::Add(hn::Mul(hn::Set(d, keep), hn::LoadU(d, at)), hn::Mul(hn::Set(d, add), value));
        hn::StoreU(now, d, at);
        return now;
      };
      const auto first = average(w + width, keep1, g, add1),
                 second = average(w + 2 * width, keep2, hn::Mul(g, g), add2);
      move(d, w, hn::Mul(hn::Set(d, rate), hn::Div(first, hn::Add(hn::Sqrt(second), hn::Set(d, epsilon)))));
    });
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::sparse
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::sparse {
HWY_EXPORT(Update);
void update_records(const RecordUpdate& u) { HWY_DYNAMIC_DISPATCH(Update)(u); }
}  // namespace anabranch::sparse
#endif  // HWY_ONCE
