#include "ops/optim/rule_loops.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/optim/rule_loops.cc"
#include "hwy/foreach_target.h"
// foreach_target.h must come first: it includes this file once for every instruction set
#include "hwy/highway.h"
#include "sparse/rule_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace anabranch::optim::loops {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Updates vectors of d's width until less than a vector is left.
template <class D, class R, class... State>
HWY_INLINE int64_t whole_vectors(D d, int64_t i, int64_t n, const R& rule, const float* grad, State*... state) {
  using V = rules::HWY_NAMESPACE::Wide<D>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto store_all = [&](const auto&... v) HWY_ATTR { (hn::StoreU(v.v, d, state + i), ...); };
  for (; i + lanes <= n; i += lanes) {
    [&](auto... v) HWY_ATTR {
      rules::HWY_NAMESPACE::step(rule, V(hn::LoadU(d, grad + i)), v...);
      store_all(v...);
    }(V(hn::LoadU(d, state + i))...);
  }
  return i;
}

// The tail shorter than the machine's vectors uses ever shorter ones, with the same operations.
template <class R, size_t... S>
HWY_INLINE void run(const R& by, float* param, float* const* state, const float* grad, int64_t n,
                    std::index_sequence<S...>) {
  const R rule = by;  // a local copy, which the arrays cannot alias
  int64_t i = whole_vectors(hn::ScalableTag<float>(), 0, n, rule, grad, param, state[S]...);
  i = whole_vectors(hn::CappedTag<float, 4>(), i, n, rule, grad, param, state[S]...);
  whole_vectors(hn::CappedTag<float, 1>(), i, n, rule, grad, param, state[S]...);
}

#define AB_LOOP_OF(Rule)                                                                                       \
  void Rule(const rules::Rule<float>& rule, float* param, float* const* state, const float* grad, int64_t n) { \
    run(rule, param, state, grad, n, std::make_index_sequence<rules::Rule<float>::kStates>());                 \
  }
AB_EACH_RULE(AB_LOOP_OF)
#undef AB_LOOP_OF

}  // namespace HWY_NAMESPACE
}  // namespace anabranch::optim::loops
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace anabranch::optim::loops {

#define AB_EXPORT(Rule)                                                                                          \
  HWY_EXPORT(Rule);                                                                                              \
  void update(const rules::Rule<float>& rule, float* param, float* const* state, const float* grad, int64_t n) { \
    HWY_DYNAMIC_DISPATCH(Rule)(rule, param, state, grad, n);                                                     \
  }
AB_EACH_RULE(AB_EXPORT)
#undef AB_EXPORT

}  // namespace anabranch::optim::loops
#endif  // HWY_ONCE
