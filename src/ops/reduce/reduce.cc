// Sums, means, products, extremes, lengths and truth over some axes: one row each.
#include <cmath>

#include "ops/declare/second_order.h"
#include "ops/device/launch_fold.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/broadcast.h"
#include "ops/reduce/axes.h"
#include "ops/reduce/fold_functions.h"

namespace anabranch::reduce {
namespace {

// Nothing has no largest element.
void check_not_empty(const Shape& x, const Shape& folded) {
  AB_CHECK(x.numel() > 0 || folded.numel() == 0, InvalidArgument, "X must not be empty, got {}", x.str());
}

// What is folded to something where there is no element.
enum class OfNothing { kAll, kFloats, kNone };

struct Row {
  const char *type, *doc, *dtypes;
  const char* fold;  // "fold_axes/<fold>" of devices
  OfNothing of_nothing = OfNothing::kAll;
};

template <class T> void check_folds(OfNothing of_nothing, const Shape& x, const Shape& folded) {
  const bool floats = std::is_floating_point_v<T>;
  if (of_nothing == OfNothing::kNone || (of_nothing == OfNothing::kFloats && !floats)) check_not_empty(x, folded);
}

// ---- forward: run(tag, c, X's shape, folded shape, in, out)

template <class... Ts, class Run> OpDef& declare_forward(const Row& row, Run run) {
  OpDef& def = declare_op(row.type, __FILE__);
  def.doc(row.doc)
      .in("X", std::string("[...] ") + row.dtypes)
      .out("Out", "X without the folded axes; [1] when none is left");
  def.attr<std::vector<int32_t>>("dim", {0}, "axes to fold; negative ones count from the end; none: all");
  def.attr<bool>("keep_dim", false, "folded axes stay, with extent 1");
  def.attr<bool>("reduce_all", false, "folds all axes whatever dim is");
  def.attr<int32_t>("out_dtype", -1, "that of X, or -1: other ones are not offered");
  def.ignores({"in_dtype"}).infer(infer_reduce);
  device::offer<Ts...>(def, [row](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [of_nothing = row.of_nothing, kernel = device::kernel_of<T>(std::string("fold_axes/") + row.fold),
            attrs = Attrs(op.op()), x = op.in("X"), out = op.out("Out")](KernelContext& c) {
      const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
      check_folds<T>(of_nothing, shape, folded);
      device::launch_fold(DeviceContext::of(c), kernel, c[x], shape, folded, c[out]);
    };
  });
  return def.template cpu<Ts...>([row, run](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    return [of_nothing = row.of_nothing, run, attrs = Attrs(op.op()), x = op.in("X"),
            out = op.out("Out")](KernelContext& c) {
      const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
      check_folds<T>(of_nothing, shape, folded);
      run(c, shape, folded, c[x].data<T>(), c[out].mutable_data<T>());
    };
  });
}

template <class Run> OpDef& of_numbers(const Row& row, Run run) {
  return declare_forward<float, double, int32_t, int64_t>(row, run);
}

// ---- backward: term(x, out, dout, number of folded elements); with_values: X and Out are read

// By "fold_axes_grad/<fold>".
template <class... Ts> void backward_there(OpDef& def, bool with_values, const char* fold) {
  device::offer<Ts...>(def, [with_values, fold](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In x = op.in("X"), out = with_values ? op.in("Out") : In();
    return [kernel = device::kernel_of<T>(std::string("fold_axes_grad/") + fold), attrs = Attrs(op.op()), x, out,
            dout = op.in("Out@GRAD"), dx = op.out("X@GRAD")](KernelContext& c) {
      const Tensor* outs = out ? &c[out] : nullptr;
      const Shape folded = attrs.folded(c[x].shape());
      AB_CHECK((outs ? *outs : c[dout]).numel() == folded.numel(), ShapeMismatch, "Out is {} for X {}",
               (outs ? *outs : c[dout]).shape().str(), c[x].shape().str());
      device::launch_fold_grad(DeviceContext::of(c), kernel, outs ? &c[x] : nullptr, outs, c[dout], c[x].shape(),
                               folded, c[dx]);
    };
  });
}

template <class... Ts, class Term> void backward_of(OpDef& forward, bool with_values, const char* fold, Term term) {
  forward.grad_reads({"X"}, with_values ? std::vector<std::string>{"Out"} : std::vector<std::string>{});
  OpDef& def = declare_gradient(forward.type().c_str(), __FILE__);
  if (!with_values) def.grad(second_order::linear);
  def.dtype_of_input("Out@GRAD").infer([](InferContext& c) {
    const Shape want = Attrs(c.op()).out_shape(c.in("X").shape), &got = c.in("Out@GRAD").shape;
    // Shape [1] and shape [1, 1] hold the same number.
    AB_CHECK(compatible(want, got) || (want.numel() == 1 && got.numel() == 1), ShapeMismatch,
             "Out@GRAD must be {} for X {}, got {}", want.str(), c.in("X").shape.str(), got.str());
    c.same_as("X@GRAD", "X");
  });
  backward_there<Ts...>(def, with_values, fold);
  def.cpu<Ts...>([with_values, term](auto tag, const KernelArgs& op) -> Kernel {
    using T = typename decltype(tag)::type;
    const In x = op.in("X"), dout = op.in("Out@GRAD"), out = with_values ? op.in("Out") : dout;
    return [=, attrs = Attrs(op.op()), dx = op.out("X@GRAD")](KernelContext& c) {
      const Shape &shape = c[x].shape(), folded = attrs.folded(shape);
      AB_CHECK(c[out].numel() == folded.numel(), ShapeMismatch, "Out is {} for X {}", c[out].shape().str(),
               shape.str());
      const T *xs = c[x].data<T>(), *outs = c[out].data<T>(), *douts = c[dout].data<T>();
      T* to = c[dx].mutable_data<T>();
      const auto loop = broadcast_loop(shape, shape, folded, -1);
      const auto count = static_cast<T>(folded.numel() ? shape.numel() / folded.numel() : 1);
      const int64_t step = loop.inner_strides()[2];
      loop.run(c, kCheapGrain, [=](const auto& at, int64_t n) {
        const T *x = xs + at[0], *out = outs + at[2], *dout = douts + at[2];
        T* dx = to + at[0];
        with_steps(1, step, [=](auto, auto s) {
          in_wide_run(n, [=] {
            for (int64_t i = 0; i < n; ++i) dx[i] = term(x[i], out[i * s], dout[i * s], count);
          });
        });
      });
    };
  });
}

template <class Term> void declare_backward(OpDef& forward, bool with_values, const char* fold, Term term) {
  backward_of<float, double, int32_t, int64_t>(forward, with_values, fold, term);
}

void declare_sums() {
  declare_backward(of_numbers({"reduce_sum", "Out = the sum over some axes of X", "numbers", "sum"},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldSum<T>>(c, x, folded, in, out);
                              }),
                   false, "sum", [](auto x, auto out, auto d, auto n) { return SumTerm::of(x, out, d, n); });
  declare_backward(
      of_numbers({"reduce_mean", "Out = the mean over some axes of X", "numbers", "mean", OfNothing::kFloats},
                 [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                   using T = std::remove_pointer_t<decltype(out)>;
                   const int64_t results = folded.numel(), count = results ? x.numel() / results : 0;
                   fold_axes<FoldSum<T>>(c, x, folded, in, out);
                   for (int64_t i = 0; i < results; ++i) out[i] /= static_cast<T>(count);
                 })
          .traits(kMean),
      false, "mean", [](auto x, auto out, auto d, auto n) { return MeanTerm::of(x, out, d, n); });
  declare_backward(of_numbers({"reduce_prod", "Out = the product over some axes of X", "numbers", "prod"},
                              [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                                using T = std::remove_pointer_t<decltype(out)>;
                                fold_axes<FoldProd<T>>(c, x, folded, in, out);
                              }),
                   true, "prod", [](auto x, auto out, auto d, auto n) { return ProductTerm::of(x, out, d, n); });
}

void declare_extremes() {
  const auto where_equal = [](auto x, auto out, auto d, auto n) { return ExtremeTerm::of(x, out, d, n); };
  declare_backward(
      of_numbers({"reduce_max", "Out = the largest element over some axes of X", "numbers", "max", OfNothing::kNone},
                 [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                   using T = std::remove_pointer_t<decltype(out)>;
                   fold_axes<FoldMax<T>>(c, x, folded, in, out);
                 }),
      true, "extreme", where_equal);
  declare_backward(
      of_numbers({"reduce_min", "Out = the smallest element over some axes of X", "numbers", "min", OfNothing::kNone},
                 [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
                   using T = std::remove_pointer_t<decltype(out)>;
                   fold_axes<FoldMin<T>>(c, x, folded, in, out);
                 }),
      true, "extreme", where_equal);
}

void declare_lengths() {
  OpDef& norm = declare_forward<float, double>(
      {"frobenius_norm", "Out = the square root of the sum of squares over some axes of X", "float", "length"},
      [](KernelContext& c, const Shape& x, const Shape& folded, auto* in, auto* out) {
        using T = std::remove_pointer_t<decltype(out)>;
        fold_axes<FoldSquares<T>>(c, x, folded, in, out);
        for (int64_t i = 0; i < folded.numel(); ++i) out[i] = std::sqrt(out[i]);
      });
  backward_of<float, double>(norm, true, "length",
                             [](auto x, auto out, auto d, auto n) { return LengthTerm::of(x, out, d, n); });
}

void declare_truth() {
  declare_forward<bool>({"reduce_all", "Out = whether all elements over some axes of X are true", "bool", "all"},
                        [](KernelContext& c, const Shape& x, const Shape& folded, const bool* in, bool* out) {
                          fold_axes<FoldAll>(c, x, folded, in, out);
                        })
      .no_grad(kNotDifferentiable);
  declare_forward<bool>({"reduce_any", "Out = whether any element over some axes of X is true", "bool", "any"},
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
