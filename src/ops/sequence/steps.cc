#include "ops/sequence/steps.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/kernels/simd.h"

namespace anabranch::sequence {

Act act_named(const std::string& name) {
  if (name == "sigmoid") return Act::kSigmoid;
  if (name == "tanh") return Act::kTanh;
  if (name == "relu") return Act::kRelu;
  if (name == "identity") return Act::kIdentity;
  AB_THROW(InvalidArgument, "activation must be sigmoid, tanh, relu or identity, got {}", name);
}

template <> void activate(Act act, float* x, int64_t n) {
  switch (act) {
    case Act::kSigmoid: return simd::sigmoid(x, x, n);
    case Act::kTanh: return simd::tanh(x, x, n);
    case Act::kRelu: return simd::relu(x, x, n);
    case Act::kIdentity: return;
  }
}

template <> void activate(Act act, double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    switch (act) {
      case Act::kSigmoid: x[i] = 1 / (1 + std::exp(-x[i])); break;
      case Act::kTanh: x[i] = std::tanh(x[i]); break;
      case Act::kRelu: x[i] = std::max(x[i], 0.0); break;
      case Act::kIdentity: break;
    }
  }
}

template <class T> void act_grad(Act act, const T* y, T* g, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    switch (act) {
      case Act::kSigmoid: g[i] *= y[i] * (1 - y[i]); break;
      case Act::kTanh: g[i] *= 1 - y[i] * y[i]; break;
      case Act::kRelu: g[i] = y[i] > 0 ? g[i] : T{0}; break;
      case Act::kIdentity: break;
    }
  }
}
template void act_grad(Act, const float*, float*, int64_t);
template void act_grad(Act, const double*, double*, int64_t);

OpDef& act_attr(OpDef& def, const char* name, const char* preset, const char* what) {
  return def.attr<std::string>(name, preset, what, [](const std::string& v) { act_named(v); });
}

OpDef& gru_attrs(OpDef& def) {
  act_attr(def, "activation", "tanh", "activation of the candidate");
  act_attr(def, "gate_activation", "sigmoid", "activation of the gates");
  return def.attr<bool>("origin_mode", false, "the update gate weights the old state instead of the candidate");
}

GruOptions gru_options(const ir::Op& op) {
  return {act_named(op.attr<std::string>("gate_activation")), act_named(op.attr<std::string>("activation")),
          op.attr<bool>("origin_mode")};
}

void Steps::cut(const Offsets& o, bool reverse) {
  const auto length = [&](int64_t s) { return o[static_cast<size_t>(s) + 1] - o[static_cast<size_t>(s)]; };
  sequences_.clear();
  for (int64_t s = 0; s < sequence::count(o); ++s) {
    if (length(s) > 0) sequences_.push_back(s);
  }
  std::sort(sequences_.begin(), sequences_.end(),
            [&](int64_t a, int64_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
  rows_.clear();
  begin_.assign(1, 0);
  auto active = static_cast<int64_t>(sequences_.size());
  for (int64_t t = 0; active > 0; ++t) {
    while (active > 0 && length(sequences_[static_cast<size_t>(active) - 1]) <= t) --active;
    if (active == 0) break;
    for (int64_t k = 0; k < active; ++k) {
      const auto s = static_cast<size_t>(sequences_[static_cast<size_t>(k)]);
      rows_.push_back(reverse ? o[s + 1] - 1 - t : o[s] + t);
    }
    begin_.push_back(static_cast<int64_t>(rows_.size()));
  }
}

void Steps::cut_dense(int64_t steps, int64_t batch) {
  if (count() == steps && widest() == batch) return;
  rows_.resize(static_cast<size_t>(steps * batch));
  std::iota(rows_.begin(), rows_.end(), int64_t{0});
  sequences_.resize(static_cast<size_t>(batch));
  std::iota(sequences_.begin(), sequences_.end(), int64_t{0});
  begin_.clear();
  for (int64_t t = 0; t <= steps; ++t) begin_.push_back(t * batch);
}

void check_bias(const InferContext& c) {
  if (!c.has_in("Bias")) return;
  check_same_dtype(c, "Bias", "Input");
  check_numel(c, "Bias", c.in("Input").shape[1]);
}

void check_first(const InferContext& c, const char* slot, const char* input, int64_t width) {
  if (!c.has_in(slot)) return;
  check_rank(c, slot, 2, 2);
  check_same_dtype(c, slot, input);
  // One row per sequence.
  const Shape needed{c.runtime() ? sequence::count(lod_of(c, input).back()) : kUnknown, width};
  check_shape(c, slot, needed);
}

}  // namespace anabranch::sequence
