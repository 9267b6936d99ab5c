// One step of gated recurrent units for some rows: for each step of gru's sequences, and for gru_unit. A row of gates
// is [3 D]: update gate, reset gate, candidate. Weight holds [D, 2 D] for the gates, then [D, D] for the candidate.
#pragma once
#include <algorithm>
#include <memory>

#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {

template <class T> class GruStep {
 public:
  explicit GruStep(const GruOptions& with) : with_(with) {}

  // gates: x with its bias, replaced by the gates and the candidate. before: the previous states; null: zeros.
  void forward(KernelContext& c, int64_t n, int64_t d, const T* weight, const T* before, T* gates, T* reset,
               T* state) const {
    T* part = sized<T>(part_, n, 2 * d);
    if (before) by_gates_->run(c, {.m = n, .n = 2 * d, .k = d}, before, weight, part);
    each_row(c, n, 2 * d, [&](int64_t k) {
      T* g = gates + k * 3 * d;
      if (before) add_to(part + k * 2 * d, 2 * d, g);
      activate(with_.gate, g, 2 * d);
      for (int64_t j = 0; j < d; ++j) reset[k * d + j] = before ? g[d + j] * before[k * d + j] : T{0};
    });
    if (before) by_candidate_->run(c, {.m = n, .n = d, .k = d}, reset, weight + 2 * d * d, part);
    each_row(c, n, d, [&](int64_t k) {
      T *g = gates + k * 3 * d, *candidate = g + 2 * d;
      if (before) add_to(part + k * d, d, candidate);
      activate(with_.candidate, candidate, d);
      for (int64_t j = 0; j < d; ++j) {
        const T old = before ? before[k * d + j] : T{0}, u = with_.origin ? 1 - g[j] : g[j];
        state[k * d + j] = old - u * old + u * candidate[j];
      }
    });
  }

  // Sets dgates, the gradient of x; adds to dbefore.
  void backward(KernelContext& c, int64_t n, int64_t d, const T* weight, const T* before, const T* gates,
                const T* dstate, T* dgates, T* dbefore) const {
    each_row(c, n, d, [&](int64_t k) {
      const T *g = gates + k * 3 * d, *up = dstate + k * d;
      T* to = dgates + k * 3 * d;
      for (int64_t j = 0; j < d; ++j) {
        const T old = before ? before[k * d + j] : T{0}, u = with_.origin ? 1 - g[j] : g[j];
        const T du = up[j] * (g[2 * d + j] - old);
        to[j] = with_.origin ? -du : du;
        to[2 * d + j] = up[j] * u;
        dbefore[k * d + j] += up[j] - up[j] * u;
      }
      act_grad(with_.gate, g, to, d);
      act_grad(with_.candidate, g + 2 * d, to + 2 * d, d);
    });
    if (!before) {
      each_row(c, n, d, [&](int64_t k) { std::fill_n(dgates + k * 3 * d + d, d, T{0}); });
      return;
    }
    T* part = sized<T>(part_, n, d);
    by_candidate_->run(c, {.m = n, .n = d, .k = d, .trans_b = true, .ld_a = 3 * d}, dgates + 2 * d, weight + 2 * d * d,
                       part);
    each_row(c, n, d, [&](int64_t k) {
      const T* r = gates + k * 3 * d + d;
      T* to = dgates + k * 3 * d + d;
      for (int64_t j = 0; j < d; ++j) {
        to[j] = part[k * d + j] * before[k * d + j];
        dbefore[k * d + j] += part[k * d + j] * r[j];
      }
      act_grad(with_.gate, r, to, d);
    });
    by_gates_->run(c, {.m = n, .n = d, .k = 2 * d, .trans_b = true, .ld_a = 3 * d}, dgates, weight, part);
    add_to(part, n * d, dbefore);
  }

  // The gradient of Weight, from all rows at once.
  void backward_weight(KernelContext& c, int64_t rows, int64_t d, const T* before, const T* reset, const T* dgates,
                       T* to) const {
    to_gates_->run(c, {.m = d, .n = 2 * d, .k = rows, .trans_a = true, .ld_b = 3 * d}, before, dgates, to);
    to_candidate_->run(c, {.m = d, .n = d, .k = rows, .trans_a = true, .ld_b = 3 * d}, reset, dgates + 2 * d,
                       to + 2 * d * d);
  }

 private:
  GruOptions with_;
  std::shared_ptr<Tensor> part_ = std::make_shared<Tensor>();
  std::shared_ptr<Gemm<T>> by_gates_ = std::make_shared<Gemm<T>>(), by_candidate_ = std::make_shared<Gemm<T>>(),
                           to_gates_ = std::make_shared<Gemm<T>>(), to_candidate_ = std::make_shared<Gemm<T>>();
};

}  // namespace anabranch::sequence
