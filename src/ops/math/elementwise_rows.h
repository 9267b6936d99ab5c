// How binary arithmetic with broadcasting is declared. A row gives Out of x and y, and the terms of X@GRAD and Y@GRAD;
// where an operand was repeated, its terms are added up.
#pragma once
#include <memory>
#include <string>

#include "opdef/device_rows.h"
#include "opdef/device_steps.h"
#include "ops/declare/declare.h"
#include "ops/declare/second_order.h"
#include "ops/device/launch_division.h"
#include "ops/device/launch_math.h"
#include "ops/device/launch_rows.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/flat_loop.h"
#include "ops/kernels/reduce.h"
#include "ops/kernels/simd.h"
#include "ops/kernels/simd_functions.h"

namespace anabranch::math {

struct Row {
  const char *type, *doc;
  BinaryLoop loop = nullptr;  // float32 only
  bool sparse = false;        // X may hold sparse rows: zero rows stay zero
  unsigned traits = 0;
  const char* division = nullptr;  // of integers: "integer_division/<division>" of devices
};

void infer_out(InferContext& c);

// ---- forward

// loop: (out, x, y); out is dense.
template <class T, class Fn>
void binary(const KernelContext& c, const NdLoop<3>& loop, const T* x, const T* y, T* out, BinaryLoop fast, Fn fn) {
  constexpr int64_t kFastRun = 32;  // below this a call through a pointer costs more than it saves
  const auto step = loop.inner_strides();
  const bool use_fast = std::is_same_v<T, float> && fast && step[1] && step[2] && loop.inner() >= kFastRun;
  loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      if (use_fast) return fast(x + at[1], y + at[2], out + at[0], n);
    }
    binary_run(x + at[1], step[1], y + at[2], step[2], out + at[0], n, fn);
  });
}

// Sparse rows times or divided by one number: the same rows, other values.
template <class T, class Fn> void binary_rows(const SelectedRows& x, const Tensor& y, SelectedRows* out, Fn fn) {
  AB_CHECK(y.numel() == 1, ShapeMismatch, "X holds sparse rows, so Y must have one element, got {}", y.shape().str());
  const T factor = *y.data<T>();
  if (out != &x) {
    out->rows = x.rows;
    out->height = x.height;
    out->value.resize(x.value.shape(), x.value.dtype());
  }
  const T* from = x.value.data<T>();
  T* to = out->value.mutable_data<T>();
  for (int64_t i = 0; i < x.value.numel(); ++i) to[i] = fn(from[i], factor);
}

// "add" of elementwise_add and its gradient: what kernels of devices are called.
const char* function_of(const OpDef& def);
// Kernels of devices. division: of integers, as in Row.
DTypeFactory forward_there(const char* function, bool sparse, const char* division);
DTypeFactory backward_there(const char* function, bool divides);

template <class... Ts> void forward_on_device(OpDef& def, bool sparse, const char* division) {
  if (sparse) def.with(rows_on_devices);
  device::offer<Ts...>(def, forward_there(function_of(def), sparse, division));
  if (division) def.with(device::divided_by_zero);
}

template <class... Ts, class Fn> OpDef& declare_forward(const Row& row, Fn fn) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc).in("X", "[...] numbers, or sparse rows").in("Y", "a shape that meets X's, of X's dtype");
  def.out("Out", "the joint shape").may_share("X", "Out");
  if (row.sparse) def.takes("X", Holds::kTensorOrRows);
  def.attr<int32_t>("axis", -1, "axis of X at which Y begins; -1: aligned at the right end");
  def.ignores({"x_data_format", "y_data_format", "use_mkldnn"}).traits(kRowWise | row.traits).infer(infer_out);
  forward_on_device<Ts...>(def, row.sparse, row.division);
  return def.template cpu<Ts...>([row, fn](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const auto axis = op.attr<int32_t>("axis");
    return [=, x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
      if (const auto* rows = c.value(x).get<SelectedRows>(); rows && row.sparse) {
        return binary_rows<T>(*rows, c[y], &c.value(out).as<SelectedRows>(), fn);
      }
      const auto loop = broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis);
      binary(c, loop, c[x].data<T>(), c[y].data<T>(), c[out].mutable_data<T>(), row.loop, fn);
    };
  });
}

template <class Fn> TileOp forward_tile(const Row& row, Fn fn) {
  if (row.loop) return tile_of("X", "Y", kCheapGrain, row.loop);
  const auto make = [fn](const KernelArgs& op, const std::string&) -> TileLoop {
    return [x = op.in("X").first, y = op.in("Y").first, fn](const float* const* in, float* out, int64_t n) {
      binary_run(in[x], 1, in[y], 1, out, n, fn);
    };
  };
  return {.make = make, .grain = kMathGrain};
}

void forward_as_step(OpDef& def);  // as a step on devices
void backward_as_step(OpDef& def, const char* function, bool needs_out);

// ---- backward

template <class T> struct GradArgs { const T *x, *y, *out, *dout; };

// The term that is Out@GRAD itself.
struct Same {
  template <class T> T operator()(T, T, T, T dout) const { return dout; }
};

// Terms of one operand's gradient at every element of the result, into `terms`.
template <class T, class Term>
void grad_terms(const KernelContext& c, const NdLoop<3>& loop, const GradArgs<T>& a, T* terms, Term term) {
  const auto step = loop.inner_strides();
  loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
    const T *x = a.x + at[1], *y = a.y + at[2], *out = a.out + at[0], *dout = a.dout + at[0];
    T* to = terms + at[0];
    with_steps(step[1], step[2], [=](auto sx, auto sy) {
      in_wide_run(n, [=] {
        for (int64_t i = 0; i < n; ++i) to[i] = term(x[i * sx], y[i * sy], out[i], dout[i]);
      });
    });
  });
}

// One operand's gradient: its terms, added up over the axes on which it was repeated.
template <class T, class Term>
void operand_grad(const KernelContext& c, const NdLoop<3>& loop, const Shape& whole, const Shape& laid,
                  const GradArgs<T>& a, Tensor* scratch, Tensor* result, Term term) {
  constexpr bool same = std::is_same_v<Term, Same>;
  T* to = result->mutable_data<T>();
  if (laid == whole) {
    if (!same || to != a.dout) grad_terms(c, loop, a, to, term);
  } else if (same) {
    sum_to(c, whole, laid, a.dout, to);
  } else {
    scratch->resize(whole, dtype_of<T>);
    grad_terms(c, loop, a, scratch->mutable_data<T>(), term);
    sum_to(c, whole, laid, scratch->data<T>(), to);
  }
}

// The terms of one operand's gradient where no operand is repeated.
template <class Term> TileLoop grad_tile(const KernelArgs& op, bool needs_out, Term term) {
  const int dout = op.in("Out@GRAD").first, out = needs_out ? op.in("Out").first : dout;
  return [x = op.in("X").first, y = op.in("Y").first, out, dout, term](const float* const* in, float* to, int64_t n) {
    if (std::is_same_v<Term, Same> && to == in[dout]) return;
    in_wide_vectors([=, x = in[x], y = in[y], out = in[out], dout = in[dout]] {
      const Term own = term;
      for (int64_t i = 0; i < n; ++i) to[i] = own(x[i], y[i], out[i], dout[i]);
    });
  };
}

// With needs_out the gradient reads Out as well. divides: by Y, which of integers must not be 0.
template <class DX, class DY>
void declare_backward(OpDef& forward, bool needs_out, DX dx_term, DY dy_term, second_order::Maker second,
                      bool divides = false) {
  if (needs_out) {
    forward.grad_reads({"X", "Y"}, {"Out"});
  } else {
    forward.grad_reads({"X", "Y"});
  }
  OpDef& def = declare_gradient(forward.type().c_str(), __FILE__);
  def.doc("Gradients of " + forward.type() + "; where an operand was repeated, the sum over its copies.");
  def.may_share("Out@GRAD", "X@GRAD").grad_lod("X@GRAD", "Out@GRAD").grad_lod("Y@GRAD", "Y").grad(std::move(second));
  def.cpu<float, double, int32_t, int64_t>([=](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In x = op.in("X"), y = op.in("Y"), dout = op.in("Out@GRAD"), out = needs_out ? op.in("Out") : dout;
    const Out dx = op.out("X@GRAD"), dy = op.out("Y@GRAD");
    const auto axis = op.attr<int32_t>("axis");
    const auto scratch = std::make_shared<Tensor>();
    return [=](KernelContext& c) {
      const Shape &whole = c[dout].shape(), &xs = c[x].shape(), &ys = c[y].shape();
      const auto loop = broadcast_loop(whole, xs, ys, axis);
      const int at = broadcast_axis(xs, ys, axis);
      const GradArgs<T> a = {c[x].data<T>(), c[y].data<T>(), c[out].data<T>(), c[dout].data<T>()};
      const auto laid = [&](const Shape& s) { return laid_at(s, whole.rank(), at); };
      // X@GRAD last: it may lie in the memory of Out@GRAD.
      if (c.wants(dy)) operand_grad(c, loop, whole, laid(ys), a, scratch.get(), &c[dy], dy_term);
      if (c.wants(dx)) operand_grad(c, loop, whole, laid(xs), a, scratch.get(), &c[dx], dx_term);
    };
  });
  const char* function = function_of(forward);
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(backward_there(function, divides));
  if (divides) def.with(device::divided_by_zero);
  backward_as_step(def, function, needs_out);
  const auto make = [=](const KernelArgs& op, const std::string& result) {
    return result == "X@GRAD" ? grad_tile(op, needs_out, dx_term) : grad_tile(op, needs_out, dy_term);
  };
  def.tile({.make = make, .grain = kCheapGrain});
}

}  // namespace anabranch::math
