// Declares binary arithmetic with broadcasting. A row defines Out from x and y, and the terms of X@GRAD and Y@GRAD,
// which are summed over the axes on which an operand was broadcast.
#pragma once
#include <span>
#include <type_traits>
#include <utility>

#include "opdef/op_def.h"
#include "ops/declare/second_order.h"
#include "ops/kernels/binary_run.h"

namespace anabranch::math {

struct Row {
  const char *type, *doc;
  BinaryLoop loop = nullptr;  // float32 only
  bool sparse = false;        // X may hold sparse rows: zero rows stay zero
  unsigned traits = 0;
  const char* division = nullptr;  // for integers: "integer_division/<division>" on devices
};

// ---- loops: one function per type, called for each run of a broadcasting loop, so that kernels are made in one place

struct GradRun {  // operands of a run of a gradient
  const void *x, *y, *out, *dout;
  int64_t x_step, y_step;
};
// to[i] = term(x[i], y[i], out[i], dout[i])
using TermRun = void (*)(const GradRun& a, void* to, int64_t n);

// The same loop for each dtype that has it.
template <class Run> struct RunOf {
  DType dtype;
  Run run;
};

template <class T, class Term> void term_run(const GradRun& a, void* terms, int64_t n) {
  const T *x = static_cast<const T*>(a.x), *y = static_cast<const T*>(a.y);
  const T *out = static_cast<const T*>(a.out), *dout = static_cast<const T*>(a.dout);
  T* to = static_cast<T*>(terms);
  if constexpr (std::is_integral_v<T>) {
    for (int64_t i = 0; i < n; ++i) to[i] = Term{}(x[i * a.x_step], y[i * a.y_step], out[i], dout[i]);
  } else {
    with_steps(a.x_step, a.y_step, [=](auto sx, auto sy) {
      in_vectors_of<T>(n, [=] {
        for (int64_t i = 0; i < n; ++i) to[i] = Term{}(x[i * sx], y[i * sy], out[i], dout[i]);
      });
    });
  }
}

// ---- forward

// "add" for elementwise_add and its gradient: the names of device kernels.
const char* function_of(const OpDef& def);
void forward_as_step(OpDef& def);  // as a step on devices
OpDef& declare_with_runs(const Row& row, std::span<const RunOf<PairRun>> runs);

template <class... Ts, class Fn> OpDef& declare_forward(const Row& row, Fn) {
  static constexpr RunOf<PairRun> kRuns[] = {{dtype_of<Ts>, &pair_run<Ts, Ts, Fn>}...};
  return declare_with_runs(row, kRuns);
}

TileOp forward_tile(const Row& row, PairRun run);

// ---- backward

// The term is Out@GRAD itself.
struct Same {
  template <class T> T operator()(T, T, T, T dout) const { return dout; }
};

// The terms of one operand's gradient; none: they are Out@GRAD itself.
using TermRuns = std::span<const RunOf<TermRun>>;

template <class Term> TermRuns term_runs(const Term&) {
  if constexpr (std::is_same_v<Term, Same>) {
    return {};
  } else {
    static constexpr RunOf<TermRun> kRuns[] = {{DType::kFloat32, &term_run<float, Term>},
                                               {DType::kFloat64, &term_run<double, Term>},
                                               {DType::kInt32, &term_run<int32_t, Term>},
                                               {DType::kInt64, &term_run<int64_t, Term>}};
    return kRuns;
  }
}

// With needs_out the gradient reads Out, too. divides: by Y, which must not be 0 for integers.
void declare_backward(OpDef& forward, bool needs_out, TermRuns dx, TermRuns dy, second_order::Maker second,
                      bool divides = false);

template <class DX, class DY>
void declare_backward(OpDef& forward, bool needs_out, DX dx_term, DY dy_term, second_order::Maker second,
                      bool divides = false) {
  declare_backward(forward, needs_out, term_runs(dx_term), term_runs(dy_term), std::move(second), divides);
}

}  // namespace anabranch::math
