// Quantization by a scale that is the largest |X| of the last steps.
#include "ops/quantize/levels.h"

namespace anabranch::quantize::range_op {
namespace {

constexpr int32_t kMostSteps = 1 << 20;

void infer(InferContext& c) {
  check_numel(c, "InScale", 1);
  check_same_dtype(c, "InScale", "X");
  if (c.has_in("Iter")) {
    check_numel(c, "Iter", 1);
    check_dtype(c, "Iter", DType::kInt64);
  }
  AB_CHECK(c.attr<bool>("is_test") || c.has_in("Iter"), InvalidArgument, "Iter must be given for training");
  c.same_as("Out", "X");
  c.set_out("OutScale", scalar_shape(), c.in("X").dtype);
  const bool kept = c.runtime();  // the kernel sets its shape once, and its contents persist
  c.set_out("OutScales", kept ? Shape() : Shape{c.attr<int32_t>("window_size")}, c.in("X").dtype);
}

// The largest |X| of the steps so far, zeros before the first one.
template <class T> T* steps_in(Tensor& t, int64_t count) {
  if (t.initialized() && t.dtype() == dtype_of<T> && t.shape() == Shape{count}) return t.mutable_data<T>();
  t.resize(Shape{count}, dtype_of<T>);
  std::fill(t.mutable_data<T>(), t.mutable_data<T>() + count, T{0});
  return t.mutable_data<T>();
}

// The maximum over the last `count` steps including this one, number `step`: recomputed only if the step that leaves
// the window may have been the maximum.
template <class T> T largest_with(T* steps, int64_t count, int64_t step, T last, T now) {
  T& place = steps[step % count];
  const T dropped = place;
  place = now;
  if (last < now) return now;
  if (std::abs(dropped - last) >= static_cast<T>(1e-6)) return last;
  T most = now;
  for (int64_t i = 0; i < std::min(step, count); ++i) most = std::max(most, steps[i]);
  return most;
}

// State is written in place, so it must not alias an input that is still to be read.
void check_apart(const ir::Op& op) {
  for (const char* slot : {"OutScale", "OutScales"}) {
    const auto &kept = op.output(slot), &read = op.input("X");
    AB_CHECK(kept.empty() || kept[0] != read[0], InvalidArgument, "{} must not be the variable of X, got {} for both",
             slot, kept[0]);
  }
}

constexpr auto range_kernel = []<class T>(TypeTag<T>, const KernelArgs& op) -> Kernel {
  check_apart(op.op());
  return [test = op.attr<bool>("is_test"), levels = levels_of(op.attr<int32_t>("bit_length")), x = op.in("X"),
          in_scale = op.in("InScale"), iter = op.in("Iter"), out = op.out("Out"), out_scale = op.out("OutScale"),
          steps = op.out("OutScales"), count = int64_t{op.attr<int32_t>("window_size")}](KernelContext& c) {
    T scale = number_of<T>(c, in_scale);
    T* all = c.needs(steps) ? steps_in<T>(c[steps], count) : nullptr;
    if (!test) {
      const int64_t step = *c[iter].data<int64_t>();
      AB_CHECK(step >= 0, InvalidArgument, "Iter must be at least 0, got {}", step);
      const T now = max_abs<T>(c, c[x]);
      scale = all ? largest_with(all, count, step, scale, now) : std::max(scale, now);
    }
    if (c.needs(out_scale)) *c[out_scale].mutable_data<T>() = scale;
    const Rounding<T> rounding{scale, static_cast<T>(levels)};
    rounding(c, c[x].data<T>(), c[out].mutable_data<T>(), c[x].numel());
  };
};

AB_OP(fake_quantize_range_abs_max)
    .doc(
        "Out = round(X / OutScale (2^(bit_length - 1) - 1)), with X clamped to OutScale, the largest |X| of the last "
        "window_size steps. With is_test OutScale is InScale.")
    .in("X", "[...] float")
    .in("InScale", "[1] like X: the scale so far")
    .in_optional("Iter", "[1] int64: number of the step, starting at 0; not needed with is_test")
    .out("Out", "[...] like X")
    .out("OutScale", "[1] like X")
    .out_optional("OutScales", "[window_size] like X: the largest |X| of each step, kept from step to step")
    .updates("InScale", "OutScale")
    .attr<int32_t>("window_size", 10000, "number of steps in the window, up to 2^20",
                   within("window_size", 1, kMostSteps))
    .with(bit_length)
    .attr<bool>("is_test", false, "keeps the scale")
    .effects(kKeepsOutputs)
    .dtype_of_input("X")
    .infer(infer)
    .no_grad(kNoGrad)
    .cpu<float, double>(range_kernel);

}  // namespace
}  // namespace anabranch::quantize::range_op
