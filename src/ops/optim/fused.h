// Update rules over many parameters as one loop: `fused_<rule>` has the slots of the rule as lists, one entry per
// parameter, and the same attributes. Elements are numbered through all parameters and the loop is split by that
// number, so that small parameters share tasks and large ones are divided. Dense gradients, updated in place. Inserted
// by the pass fuse_optimizers, not by layers.
// On devices gradients of float32 parameters may also be 16-bit floats that are not yet divided by the loss scale; the
// pass raw_gradients sets `scale_of` for them.
#pragma once
#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include "ops/optim/elementwise.h"

namespace anabranch::optim {

// The fused form of a rule: slots, attributes and shape function follow from `single`, without optional slots. State is
// like its parameter, except the slots `numbers`, which hold one number.
std::function<void(OpDef&)> fused_form_of(const OpDef& single, std::set<std::string> numbers = {});

// Unsupported for unscaled gradients: the CPU has no kernels for them.
void check_plain_gradients(const KernelArgs& op);

// rule: as in elementwise.h. rate_of(c, k): the rate of parameter k. finish(c, k): once, after the update.
template <class T, size_t N, class Rule, class RateOf, class Finish>
Kernel fused_update(const KernelArgs& op, const StateTable<N>& table, Rule rule, RateOf rate_of, Finish finish) {
  check_plain_gradients(op);
  const In grad = op.in("Grad");
  const Out param = op.out("ParamOut");
  std::array<Out, N> state;
  for (size_t s = 0; s < N; ++s) state[s] = op.out(table[s].out);
  std::vector<T> rates(param.count);
  std::vector<int64_t> ends(param.count);  // running total of elements after each parameter
  return [=](KernelContext& c) mutable {
    int64_t total = 0;
    for (int k = 0; k < param.count; ++k) {
      rates[k] = rate_of(c, k);
      ends[k] = total += c.at(param, k).numel();
    }
    c.parallel_for(total, kGrain, [&](int64_t begin, int64_t end) {
      auto k = static_cast<int>(std::upper_bound(ends.begin(), ends.end(), begin) - ends.begin());
      for (; begin < end; ++k) {
        const int64_t at = begin - (k > 0 ? ends[k - 1] : 0), n = std::min(end, ends[k]) - begin;
        std::array<T*, N> from;
        for (size_t s = 0; s < N; ++s) from[s] = c.at(state[s], k).template mutable_data<T>() + at;
        rule.step(c.at(param, k).mutable_data<T>() + at, from, c.at(grad, k).data<T>() + at, rates[k], n);
        begin += n;
      }
    });
    for (int k = 0; k < param.count; ++k) finish(c, k);
  };
}

// The rate is the input LearningRate, and there is no finish step.
template <class T, size_t N, class Rule>
Kernel fused_update(const KernelArgs& op, const StateTable<N>& table, Rule rule) {
  return fused_update<T, N>(
      op, table, rule, [rate = op.in("LearningRate")](KernelContext& c, int k) { return scalar<T>(c.at(rate, k)); },
      [](KernelContext&, int) {});
}

}  // namespace anabranch::optim
