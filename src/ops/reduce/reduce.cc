// Sums, means, products, extremes, lengths and logic over some axes, one row each.
#include <cmath>
#include <map>

#include "ops/declare/second_order.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/broadcast.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/fold_functions.h"

namespace anabranch::reduce {
namespace {

// A maximum requires at least one element.
void check_not_empty(const Shape& x, const Shape& folded) {
  AB_CHECK(x.numel() > 0 || folded.numel() == 0, InvalidArgument, "X must not be empty, got {}", x.str());
}

// The result of a fold without elements.
enum class OfNothing { kAll, kFloats, kNone };

struct Row {
  const char *type, *doc, *dtypes;
  const char* fold;  // "fold_axes/<fold>" on devices
  OfNothing of_nothing = OfNothing::kAll;
};

void check_folds(OfNothing of_nothing, DType dtype, const Shape& x, const Shape& folded) {
  if (of_nothing == OfNothing::kNone || (of_nothing == OfNothing::kFloats && !dtype_is_float(dtype))) {
    check_not_empty(x, folded);
  }
}

// ---- forward

// X's shape, folded shape, in, out.
using FoldRun = void (*)(KernelContext& c, const Shape& x, const Shape& folded, const void* in, void* out);

template <class Run, class T>
void fold_run_of(KernelContext& c, const Shape& x, const Shape& folded, const void* in, void* out) {
  Run{}(c, x, folded, static_cast<const T*>(in), static_cast<T*>(out));
}

DTypeFactory forward_there(OfNothing of_nothing, const char* fold) {
  return [=](DType dtype, const KernelArgs& op) -> Kernel {
    const DType result = result_dtype(op.op(), dtype);
    return [of_nothing, result, kernel = device::kernel_of(std::string("fold_axes/") + fold, result),
            attrs = Attrs(op.op()), x = op.in("X"), out = op.out("Out"),
            as = AsDTypeThere()](const DeviceContext& c) mutable {
      const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
      check_folds(of_nothing, result, shape, folded);
      device::launch_fold(c, kernel, as(c, c[x], result), shape, folded, c[out]);
    };
  };
}

// By the dtype of Out.
using FoldRuns = std::map<DType, FoldRun>;

Kernel forward_kernel(OfNothing of_nothing, DType dtype, const FoldRuns& runs, const KernelArgs& op) {
  const DType result = result_dtype(op.op(), dtype);
  const auto run = runs.find(result);
  AB_CHECK(run != runs.end(), Unsupported, "out_dtype must not be {}", dtype_name(result));
  return [of_nothing, result, run = run->second, attrs = Attrs(op.op()), x = op.in("X"), out = op.out("Out"),
          as = AsDType()](KernelContext& c) mutable {
    const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
    check_folds(of_nothing, result, shape, folded);
    run(c, shape, folded, as(c, c[x], result).data(result), c[out].mutable_data(result));
  };
}

OpDef& declare_schema(const Row& row) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc)
      .in("X", std::string("[...] ") + row.dtypes)
      .out("Out", "shape of X without the reduced axes, or [1] if none is left; dtype of X");
  def.attr<std::vector<int32_t>>("dim", {0},
                                 "axes to reduce; negative axes count from the last; an empty list reduces all axes");
  def.attr<bool>("keep_dim", false, "keeps reduced axes with extent 1");
  def.attr<bool>("reduce_all", false, "reduces all axes and ignores dim");
  def.attr<int32_t>("out_dtype", -1, "id of the dtype of Out, to which X is converted; -1: that of X");
  return def.ignores({"in_dtype"}).infer(infer_reduce);
}

// run(c, X's shape, folded shape, in, out), for each type. `results`: more runs, for dtypes of Out that X cannot have.
template <class... Ts, class Run> OpDef& declare_forward(const Row& row, Run, const FoldRuns& results = {}) {
  OpDef& def = declare_schema(row);
  device::offer<Ts...>(def, forward_there(row.of_nothing, row.fold));
  FoldRuns runs{{dtype_of<Ts>, &fold_run_of<Run, Ts>}...};
  runs.insert(results.begin(), results.end());
  for (const DType dtype : {dtype_of<Ts>...}) {
    def.cpu_of(dtype, [of_nothing = row.of_nothing, dtype, runs](const KernelArgs& op) {
      return forward_kernel(of_nothing, dtype, runs, op);
    });
  }
  return def;
}

template <class Run> OpDef& of_numbers(const Row& row, Run run) {
  return declare_forward<float, double, int32_t, int64_t>(row, run);
}

// ---- backward: term(x, out, dout, number of folded elements); with_values: reads X and Out

// By "fold_axes_grad/<fold>".
DTypeFactory backward_there(bool with_values, const char* fold) {
  return [with_values, fold](DType dtype, const KernelArgs& op) -> Kernel {
    const In x = op.in("X"), out = with_values ? op.in("Out") : In();
    return [kernel = device::kernel_of(std::string("fold_axes_grad/") + fold, dtype), attrs = Attrs(op.op()), x, out,
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD"), as_out = AsDTypeThere(), as_dout = AsDTypeThere(),
            dtype](const DeviceContext& c) mutable {
      const Tensor* outs = out ? &as_out(c, c[out], dtype) : nullptr;
      const Shape folded = attrs.folded(c[x].shape());
      AB_CHECK((outs ? *outs : c[dout]).numel() == folded.numel(), ShapeMismatch,
               "Out must have the folded shape of X, got {} for X {}", (outs ? *outs : c[dout]).shape().str(),
               c[x].shape().str());
      device::launch_fold_grad(c, kernel, outs ? &c[x] : nullptr, outs, as_dout(c, c[dout], dtype), c[x].shape(),
                               folded, c[dx]);
    };
  };
}

// The operands of a gradient. step: that of out and dout along a row, 0 or 1. count: number of folded elements.
struct TermArgs {
  const void *x, *out, *dout;
  int64_t step, count;
};
using TermRun = void (*)(const TermArgs& a, void* dx, int64_t n);
using TermWalk = void (*)(const KernelContext& c, const NdLoop<3>& loop, const TermArgs& a, void* dx);

// A row of X@GRAD.
template <class Term, class T> void term_run(const TermArgs& a, void* to, int64_t n) {
  const T *x = static_cast<const T*>(a.x), *out = static_cast<const T*>(a.out), *dout = static_cast<const T*>(a.dout);
  T* dx = static_cast<T*>(to);
  const auto count = static_cast<T>(a.count);
  with_steps(1, a.step, [=](auto, auto s) {
    in_vectors_of<T>(n, [=] {
      for (int64_t i = 0; i < n; ++i) dx[i] = Term{}(x[i], out[i * s], dout[i * s], count);
    });
  });
}

// All rows, by a walk that all terms and types share.
void run_terms(const KernelContext& c, const NdLoop<3>& loop, const TermArgs& a, void* to, int64_t size, TermRun run) {
  const auto *x = static_cast<const char*>(a.x), *out = static_cast<const char*>(a.out);
  const auto* dout = static_cast<const char*>(a.dout);
  auto* dx = static_cast<char*>(to);
  loop.run(c, kCheapGrain, [=, step = a.step, count = a.count](const auto& at, int64_t n) {
    run({x + at[0] * size, out + at[2] * size, dout + at[2] * size, step, count}, dx + at[0] * size, n);
  });
}

// Rows can be short, so floats have a walk without a call per row.
template <class Term, class T>
void term_walk(const KernelContext& c, const NdLoop<3>& loop, const TermArgs& a, void* to) {
  if constexpr (std::is_same_v<T, float>) {
    const T *xs = static_cast<const T*>(a.x), *outs = static_cast<const T*>(a.out),
            *douts = static_cast<const T*>(a.dout);
    T* dxs = static_cast<T*>(to);
    const auto count = static_cast<T>(a.count);
    const int64_t step = a.step;
    loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
      const T *x = xs + at[0], *out = outs + at[2], *dout = douts + at[2];
      T* dx = dxs + at[0];
      with_steps(1, step, [=](auto, auto s) {
        in_wide_run(n, [=] {
          for (int64_t i = 0; i < n; ++i) dx[i] = Term{}(x[i], out[i * s], dout[i * s], count);
        });
      });
    });
  } else {
    run_terms(c, loop, a, to, sizeof(T), &term_run<Term, T>);
  }
}

Kernel backward_kernel(DType dtype, TermWalk walk, bool with_values, const KernelArgs& op) {
  const In x = op.in("X"), dout = op.in("Out@GRAD"), out = with_values ? op.in("Out") : dout;
  return [=, attrs = Attrs(op.op()), dx = op.out("X@GRAD"), as_out = AsDType(),
          as_dout = AsDType()](KernelContext& c) mutable {
    const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
    AB_CHECK(c[out].numel() == folded.numel(), ShapeMismatch, "Out must have the folded shape of X, got {} for X {}",
             c[out].shape().str(), shape.str());
    const auto loop = broadcast_loop(shape, shape, folded, -1);
    const int64_t count = folded.numel() ? shape.numel() / folded.numel() : 1;
    const void* slopes = as_dout(c, c[dout], dtype).data(dtype);
    const void* outs = with_values ? as_out(c, c[out], dtype).data(dtype) : slopes;
    walk(c, loop, {c[x].data(dtype), outs, slopes, loop.inner_strides()[2], count}, c[dx].mutable_data(dtype));
  };
}

OpDef& declare_gradient_of(OpDef& forward, bool with_values) {
  forward.grad_reads({"X"}, with_values ? std::vector<std::string>{"Out"} : std::vector<std::string>{});
  OpDef& def = declare_gradient(forward.type().c_str(), __FILE__);
  if (!with_values) def.grad(second_order::linear);
  return def.dtype_of_input("X").infer([](InferContext& c) {
    const Shape expected = Attrs(c.op()).out_shape(c.in("X").shape), &got = c.in("Out@GRAD").shape;
    // Shapes [1] and [1, 1] hold the same number.
    AB_CHECK(compatible(expected, got) || (expected.numel() == 1 && got.numel() == 1), ShapeMismatch,
             "Out@GRAD must be {} for X {}, got {}", expected.str(), c.in("X").shape.str(), got.str());
    c.same_as("X@GRAD", "X");
  });
}

template <class... Ts, class Term> void backward_of(OpDef& forward, bool with_values, const char* fold, Term) {
  OpDef& def = declare_gradient_of(forward, with_values);
  device::offer<Ts...>(def, backward_there(with_values, fold));
  const auto add = [&](DType dtype, TermWalk walk) {
    def.cpu_of(dtype, [=](const KernelArgs& op) { return backward_kernel(dtype, walk, with_values, op); });
  };
  (add(dtype_of<Ts>, &term_walk<Term, Ts>), ...);
}

template <class Term> void declare_backward(OpDef& forward, bool with_values, const char* fold, Term term) {
  backward_of<float, double, int32_t, int64_t>(forward, with_values, fold, term);
}

void declare_sums() {
  declare_backward(of_numbers({"reduce_sum", "Sum of X over the axes in dim", "numbers", "sum"},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldSum<T>>(c, x, folded, in, out);
                              }),
                   false, "sum", [](auto x, auto out, auto d, auto n) { return SumTerm::of(x, out, d, n); });
  declare_backward(of_numbers({"reduce_mean", "Mean of X over the axes in dim", "numbers", "mean", OfNothing::kFloats},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                const int64_t results = folded.numel(), count = results ? x.numel() / results : 0;
                                fold_axes<FoldSum<T>>(c, x, folded, in, out);
                                for (int64_t i = 0; i < results; ++i) out[i] /= static_cast<T>(count);
                              })
                       .traits(kMean),
                   false, "mean", [](auto x, auto out, auto d, auto n) { return MeanTerm::of(x, out, d, n); });
  declare_backward(of_numbers({"reduce_prod", "Product of X over the axes in dim", "numbers", "prod"},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldProd<T>>(c, x, folded, in, out);
                              }),
                   true, "prod", [](auto x, auto out, auto d, auto n) { return ProductTerm::of(x, out, d, n); });
}

void declare_extremes() {
  const auto where_equal = [](auto x, auto out, auto d, auto n) { return ExtremeTerm::of(x, out, d, n); };
  declare_backward(of_numbers({"reduce_max", "Maximum of X over the axes in dim", "numbers", "max", OfNothing::kNone},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldMax<T>>(c, x, folded, in, out);
                              }),
                   true, "extreme", where_equal);
  declare_backward(of_numbers({"reduce_min", "Minimum of X over the axes in dim", "numbers", "min", OfNothing::kNone},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldMin<T>>(c, x, folded, in, out);
                              }),
                   true, "extreme", where_equal);
}

void declare_lengths() {
  const auto run = [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
    using T = std::remove_pointer_t<decltype(out)>;
    fold_axes<FoldSquares<T>>(c, x, folded, in, out);
    for (int64_t i = 0; i < folded.numel(); ++i) out[i] = static_cast<T>(std::sqrt(out[i]));
  };
  OpDef& norm = declare_forward<float, double>(
      {"frobenius_norm", "Square root of the sum of the squares of X over the axes in dim", "float", "length"}, run,
      {{DType::kInt32, &fold_run_of<decltype(run), int32_t>}, {DType::kInt64, &fold_run_of<decltype(run), int64_t>}});
  backward_of<float, double>(norm, true, "length",
                             [](auto x, auto out, auto d, auto n) { return LengthTerm::of(x, out, d, n); });
}

void declare_truth() {
  declare_forward<bool>({"reduce_all", "Logical and of X over the axes in dim", "bool", "all"},
                        [](KernelContext& c, const Shape& x, const Shape& folded, const bool* in, bool* out) {
                          fold_axes<FoldAll>(c, x, folded, in, out);
                        })
      .no_grad(kNotDifferentiable);
  declare_forward<bool>({"reduce_any", "Logical or of X over the axes in dim", "bool", "any"},
                        [](KernelContext& c, const Shape& x, const Shape& folded, const bool* in, bool* out) {
                          fold_axes<FoldAny>(c, x, folded, in, out);
                        })
      .no_grad(kNotDifferentiable);
}

AB_OPS(declare_sums);
AB_OPS(declare_extremes);
AB_OPS(declare_lengths);
AB_OPS(declare_truth);

}  // namespace
}  // namespace anabranch::reduce
