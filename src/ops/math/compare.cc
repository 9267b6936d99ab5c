// Elementwise comparisons and logic, one row each, and predicates over a whole tensor.
#include <algorithm>
#include <functional>

#include "ops/declare/declare.h"
#include "ops/device/args_tensor.h"
#include "ops/device/launch_math.h"
#include "ops/kernels/binary_run.h"
#include "ops/kernels/broadcast.h"
#include "ops/kernels/wide_map.h"
#include "ops/math/element_functions.h"

namespace anabranch::math {
namespace {

void infer_pair(InferContext& c) {
  const Meta &x = c.in("X"), &y = c.in("Y");
  check_same_dtype(c, "X", "Y");
  const int axis = c.op().has_attr("axis") ? c.attr<int32_t>("axis") : -1;
  const Shape out = broadcast_shape(x.shape, y.shape, axis);
  c.set_out("Out", out, DType::kBool);
  if (out.rank() > 0 && x.shape.rank() > 0 && out[0] == x.shape[0]) c.share_lod("Out", "X");
}

// Pairs elements in memory order, for any shapes.
void infer_logical(InferContext& c) {
  check_same_dtype(c, "X", "Y");
  check_numel(c, "Y", c.in("X").shape.numel());
  c.same_shape("Out", "X");
  c.share_lod("Out", "X");
}

Kernel comparison_kernel(DType dtype, PairRun run, const KernelArgs& op) {
  return [dtype, run, axis = op.attr<int32_t>("axis"), x = op.in("X"), y = op.in("Y"),
          out = op.out("Out")](KernelContext& c) {
    const auto loop = broadcast_loop(c[out].shape(), c[x].shape(), c[y].shape(), axis);
    const auto step = loop.inner_strides();
    const auto *xs = static_cast<const char*>(c[x].data(dtype)), *ys = static_cast<const char*>(c[y].data(dtype));
    bool* to = c[out].mutable_data<bool>();
    const auto size = static_cast<int64_t>(dtype_size(dtype));
    loop.run(c, kCheapGrain, [=, run = run](const auto& at, int64_t n) {
      run(xs + at[1] * size, step[1], ys + at[2] * size, step[2], to + at[0], n);
    });
  };
}

template <class Fn> void comparison(const char* type, const char* doc, Fn) {
  OpDef& def = declare_op(type, __FILE__);
  def.doc(doc)
      .in("X", "[...]")
      .in("Y", "dtype of X; its shape must broadcast with that of X")
      .out("Out", "shape of X and Y after broadcasting; bool");
  def.attr<int32_t>("axis", -1, "axis of X with which the first axis of Y is aligned; -1 aligns the last axes");
  def.ignores("force_cpu", false).infer(infer_pair).no_grad(kNotDifferentiable);
  def.cpu<float, double, int32_t, int64_t, bool>([]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return comparison_kernel(dtype_of<T>, &pair_run<T, bool, Fn>, op);
  });
  def.device<float, double, float16, bfloat16, int32_t, int64_t, bool>(
      device::broadcast(std::string("compare/") + type));
}

template <class Fn> void logical(const char* type, const char* doc, const char* kernel, Fn fn) {
  OpDef& def = declare_op(type, __FILE__);
  def.doc(doc).in("X", "[...] bool").in("Y", "[...] bool, as many elements as X").out("Out", "like X");
  def.infer(infer_logical).no_grad(kNotDifferentiable);
  def.cpu<bool>([fn](auto, const KernelArgs& op) -> Kernel {
    return [=, x = op.in("X"), y = op.in("Y"), out = op.out("Out")](KernelContext& c) {
      const bool *xs = c[x].data<bool>(), *ys = c[y].data<bool>();
      bool* to = c[out].mutable_data<bool>();
      wide_map(c, kCheapGrain, c[x].numel(), xs, ys, to, fn);
    };
  });
  def.device<bool>(device::pairs(kernel));
}

void declare_pairs() {
  comparison("less_than", "Compares two tensors, with broadcasting: Out = X < Y", std::less<>());
  comparison("less_equal", "Compares two tensors, with broadcasting: Out = X <= Y", std::less_equal<>());
  comparison("greater_than", "Compares two tensors, with broadcasting: Out = X > Y", std::greater<>());
  comparison("greater_equal", "Compares two tensors, with broadcasting: Out = X >= Y", std::greater_equal<>());
  comparison("equal", "Compares two tensors, with broadcasting: Out = X == Y", std::equal_to<>());
  comparison("not_equal", "Compares two tensors, with broadcasting: Out = X != Y", std::not_equal_to<>());
  logical("logical_and", "Logical and of two tensors, elementwise: Out = X and Y", "logical/and",
          [](bool a, bool b) { return a && b; });
  logical("logical_or", "Logical or of two tensors, elementwise: Out = X or Y", "logical/or",
          [](bool a, bool b) { return a || b; });
  logical("logical_xor", "Logical exclusive or of two tensors, elementwise: Out = X xor Y", "logical/xor",
          [](bool a, bool b) { return a != b; });
}

// Whether test(element) is true for any of n elements; tests blocks and stops after the first one with such an element.
template <class T, class Test> bool any_of(const T* x, int64_t n, Test test) {
  constexpr int64_t kBlock = 4096;
  int32_t found = 0;
  for (int64_t at = 0; at < n && !found; at += kBlock) {
    in_wide_vectors([=, &found, count = std::min(kBlock, n - at)] {
      int32_t any = 0;
      for (int64_t i = 0; i < count; ++i) any |= static_cast<int32_t>(test(x[at + i]));
      found = any;
    });
  }
  return found != 0;
}

// Whether test(element) is true for any element (never for integers): Out = [1] bool, negated if `all_must_fail`.
template <class Test> void declare_question(const char* type, const char* doc, bool all_must_fail, Test test) {
  OpDef& def = declare_op(type, __FILE__);
  def.doc(doc).in("X", "[...] numbers").out("Out", "[1] bool").no_grad(kNotDifferentiable);
  def.infer([](InferContext& c) { c.set_out("Out", scalar_shape(), DType::kBool); });
  def.cpu<float, double, int32_t, int64_t>([=]<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
    return [=, x = op.in("X"), out = op.out("Out")](KernelContext& c) {
      bool found = false;
      if constexpr (std::is_floating_point_v<T>) found = any_of(c[x].data<T>(), c[x].numel(), test);
      *c[out].mutable_data<bool>() = found != all_must_fail;
    };
  });
  def.device<float, double, float16, bfloat16, int32_t, int64_t>(device::question(type, all_must_fail));
}

void declare_questions() {
  declare_question("isfinite", "Tests whether all elements of X are finite", true,
                   [](auto v) { return NotFinite::of(v); });
  declare_question("isinf", "Tests whether any element of X is infinite", false,
                   [](auto v) { return Infinite::of(v); });
  declare_question("isnan", "Tests whether any element of X is NaN", false, [](auto v) { return NoNumber::of(v); });
}

AB_OPS(declare_pairs);
AB_OPS(declare_questions);

AB_OP(logical_not)
    .doc("Logical not of each element: Out = not X.")
    .in("X", "[...] bool")
    .out("Out", "like X")
    .may_share("X", "Out")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad(kNotDifferentiable)
    .cpu<bool>([](auto, const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        // Bytes that are 0 or 1, in a loop that compilers vectorize.
        const auto* from = static_cast<const uint8_t*>(c[x].raw());
        auto* to = static_cast<uint8_t*>(c[out].mutable_raw());
        c.parallel_for(c[x].numel(), kCheapGrain, [=](int64_t begin, int64_t end) {
          in_wide_vectors([=] {
            const uint8_t* in = from + begin;
            uint8_t* made = to + begin;
            const int64_t n = end - begin;
            for (int64_t i = 0; i < n; ++i) made[i] = static_cast<uint8_t>(in[i] == 0);
          });
        });
      };
    })
    .device<bool>(device::each_element("logical/not"));

AB_OP(is_empty)
    .doc("Out = whether X has no elements.")
    .in("X", "[...] any")
    .out("Out", "[1] bool")
    .infer([](InferContext& c) { c.set_out("Out", scalar_shape(), DType::kBool); })
    .no_grad(kNotDifferentiable)
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return
          [x = op.in("X"), out = op.out("Out")](KernelContext& c) { *c[out].mutable_data<bool>() = c[x].numel() == 0; };
    })
    .device_any([](const KernelArgs& op) -> Kernel {
      return
          [kernel = device::kernel_of<uint8_t>("fill"), x = op.in("X"), out = op.out("Out")](const DeviceContext& c) {
            device::FillArgs a{};
            a.y = device::operand(c[out]);
            a.n = 1;
            a.bits = c[x].numel() == 0;
            c.launch(kernel, a);
          };
    });

}  // namespace
}  // namespace anabranch::math
