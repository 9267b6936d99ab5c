#include "ops/sequence/cell_steps.h"

#include <algorithm>

namespace anabranch::sequence {
namespace {

int64_t times(int64_t a, int64_t b) { return a == kUnknown || b == kUnknown ? kUnknown : a * b; }

Shape state_shape(const InferContext& c) {
  const Shape& x = c.in("X").shape;
  return Shape{x[0], x[1], c.in("H0").shape[1]};
}

}  // namespace

void check_steps(const InferContext& c, int gates, std::initializer_list<const char*> first_states) {
  check_tensor(c, "X");
  check_rank(c, "X", 3, 3);
  const Shape& x = c.in("X").shape;
  AB_CHECK(x[0] != 0, InvalidArgument, "X must have at least one step, got {}", x.str());
  check_tensor(c, "H0");
  check_rank(c, "H0", 2, 2);
  const int64_t d = c.in("H0").shape[1];
  for (const char* slot : first_states) {
    check_tensor(c, slot);
    check_same_dtype(c, slot, "X");
    check_shape(c, slot, Shape{x[1], d});
  }
  check_cell_weights(c, gates, x[2], d);
  if (!c.has_in("Mask")) return;
  check_same_dtype(c, "Mask", "X");
  check_shape(c, "Mask", Shape{x[0], x[1]});
}

Shape steps_shape(const InferContext& c, int64_t count) {
  Shape shape = state_shape(c);
  return Shape{shape[0], shape[1], times(shape[2], count)};
}

void step_slots(OpDef& def) {
  def.in("X", "[steps, batch, I] float32; [steps, batch, n D] when no weight has rows for it")
      .in_optional("Mask", "[steps, batch], shares of the new states in those that go on to the next step")
      .with(cell_weight_slots)
      .effects(kEngineOnly);
}

void step_gradient_slots(OpDef& def) {
  step_slots(def);
  def.out_optional("X@GRAD", "as X")
      .out_optional_list("Weights@GRAD", "as Weights")
      .out_optional_list("Biases@GRAD", "as Biases")
      .dtype_of_input("X");
}

void check_state_gradients(const InferContext& c, std::initializer_list<const char*> slots) {
  const Shape wanted = state_shape(c);
  for (const char* slot : slots) {
    for (int i = 0; i < c.n_in(slot); ++i) {
      const Meta& given = c.in(slot, i);
      AB_CHECK(given.dtype == c.in("X").dtype && compatible(given.shape, wanted), ShapeMismatch,
               "{} must be {}, got {}", slot, wanted.str(), given.shape.str());
    }
  }
}

void infer_step_gradients(InferContext& c, std::initializer_list<const char*> first_states) {
  grad_as(c, "X@GRAD", "X");
  for (const char* slot : first_states) grad_as(c, std::string(slot) + "@GRAD", slot);
  for (const char* slot : {"Weights", "Biases"}) {
    const std::string gradient = std::string(slot) + "@GRAD";
    for (int i = 0; i < c.n_out(gradient); ++i) c.set_out(gradient, c.in(slot, i).shape, c.in(slot, i).dtype, i);
  }
}

float* GivenGradient::own(const KernelContext& c, const StepExtents& e) const {
  float* to = sized<float>(rows_, e.rows(), e.d);
  if (slot_) {
    std::copy_n(c[slot_].data<float>(), e.rows() * e.d, to);
  } else {
    std::fill_n(to, e.rows() * e.d, 0.0f);
  }
  for (int i = 1; i < slot_.count; ++i) add_to(c.at(slot_, i).data<float>(), e.rows() * e.d, to);
  return to;
}

void StepSums::run(const KernelContext& c, const StepExtents& e, float* gates) {
  weights_.gather(c, e.wide, e.d);
  const int64_t width = weights_.gates() * e.d;
  const auto* x = c[x_].data<float>();
  const float* bias = weights_.bias();
  if (weights_.x()) {
    product_->run(c, {.m = e.rows(), .n = width, .k = e.wide}, x, weights_.x(), gates, {bias, nullptr});
    return;
  }
  c.parallel_for(e.rows(), 8192 / std::max<int64_t>(1, width) + 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      std::copy_n(x + r * width, width, gates + r * width);
      if (bias) add_to(bias, width, gates + r * width);
    }
  });
}

void StepSumsBack::give_x(const KernelContext& c, const StepExtents& e, const float* dgates) {
  if (!c.wants(dx_)) return;
  auto* to = c[dx_].mutable_data<float>();
  const int64_t width = gates_ * e.d;
  if (weights_.x()) {
    to_x_->run(c, {.m = e.rows(), .n = e.wide, .k = width, .trans_b = true}, dgates, weights_.x(), to);
  } else {
    std::copy_n(dgates, e.rows() * width, to);
  }
}

void StepSumsBack::give_weight_of_x(const KernelContext& c, const StepExtents& e, const float* dgates) {
  if (!weights_.x()) return;
  to_weight_->run(c, {.m = e.wide, .n = gates_ * e.d, .k = e.rows(), .trans_a = true}, c[x_].data<float>(), dgates,
                  gradients_.x(c, e.wide, e.d));
}

void StepSumsBack::give_biases(const KernelContext& c, const StepExtents& e, const float* dgates) {
  float* sums = gradients_.bias(e.d);
  std::fill_n(sums, gates_ * e.d, 0.0f);
  add_columns(c, dgates, e.rows(), gates_ * e.d, sums);
  gradients_.give_biases(c, e.d);
}

}  // namespace anabranch::sequence
