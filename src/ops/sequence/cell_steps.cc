#include "ops/sequence/cell_steps.h"

#include <algorithm>

#include "base/flags.h"

namespace anabranch::sequence {
namespace {

int64_t times(int64_t a, int64_t b) { return a == kUnknown || b == kUnknown ? kUnknown : a * b; }

// X holds sequences of different lengths.
bool has_sequences(const InferContext& c) { return c.in("X").shape.rank() == 2; }

Shape with_width(const Shape& x, int64_t width) {
  return x.rank() == 2 ? Shape{x[0], width} : Shape{x[0], x[1], width};
}

// The number of sequences is that of rows in the first step.
int64_t longer_than_0(const LoD& lod) {
  const Offsets& o = lod.back();
  int64_t n = 0;
  for (size_t i = 0; i + 1 < o.size(); ++i) n += o[i + 1] > o[i];
  return n;
}

int64_t longest_of(const Offsets& o) {
  int64_t most = 0;
  for (size_t i = 0; i + 1 < o.size(); ++i) most = std::max(most, o[i + 1] - o[i]);
  return most;
}

void check_sequences(const InferContext& c) {
  if (!c.runtime()) return;
  const LoD& lod = lod_of(c, "X");
  AB_CHECK(lod.size() == 1, InvalidArgument, "X must have one LoD level, got {}", lod.size());
  AB_CHECK(!c.has_in("Mask"), InvalidArgument, "Mask must not be given if X has LoD");
  const int64_t longest = longest_of(lod.back());
  for (const int64_t most : {Flags::max_loop_iterations(), int64_t{c.attr<int32_t>("most_steps")}}) {
    AB_CHECK(most <= 0 || longest <= most, ResourceExhausted, "a sequence must have at most {} steps, got {}", most,
             longest);
  }
}

// At least one row per non-empty sequence, in the order of the lengths.
void check_first_of_sequences(const InferContext& c, const char* slot, int64_t d) {
  check_rank(c, slot, 2, 2);
  check_shape(c, slot, Shape{kUnknown, d});
  if (!c.runtime()) return;
  const Meta& first = c.in(slot);
  const int64_t n = longer_than_0(lod_of(c, "X"));
  int64_t rows = n;  // of its first n sequences
  for (size_t level = 0; first.lod && level < first.lod->size() && rows >= 0; ++level) {
    const Offsets& o = (*first.lod)[level];
    rows = rows < static_cast<int64_t>(o.size()) ? o[static_cast<size_t>(rows)] : -1;
  }
  AB_CHECK(rows == n && first.shape[0] >= n, ShapeMismatch, "{} must have a row for each of {} sequences, got {}", slot,
           n, first.shape.str());
}

}  // namespace

void check_steps(const InferContext& c, int gates, std::initializer_list<const char*> first_states) {
  check_tensor(c, "X");
  check_rank(c, "X", 2, 3);
  const Shape& x = c.in("X").shape;
  AB_CHECK(x[0] != 0, InvalidArgument, "X must have at least one step, got {}", x.str());
  if (has_sequences(c)) check_sequences(c);
  check_tensor(c, "H0");
  check_rank(c, "H0", 2, 2);
  const int64_t d = c.in("H0").shape[1];
  for (const char* slot : first_states) {
    check_tensor(c, slot);
    check_same_dtype(c, slot, "X");
    if (has_sequences(c)) {
      check_first_of_sequences(c, slot, d);
    } else {
      check_shape(c, slot, Shape{x[1], d});
    }
  }
  check_cell_weights(c, gates, x[x.rank() - 1], d);
  if (!c.has_in("Mask")) return;
  check_same_dtype(c, "Mask", "X");
  check_shape(c, "Mask", Shape{x[0], x[1]});
}

Shape steps_shape(const InferContext& c, int64_t count) {
  return with_width(c.in("X").shape, times(c.in("H0").shape[1], count));
}

void set_states(InferContext& c, std::string_view slot) {
  c.set_out(slot, steps_shape(c), c.in("X").dtype);
  if (has_sequences(c)) c.share_lod(slot, "X");
}

void step_slots(OpDef& def) {
  def.in("X",
         "[steps, batch, I] float32, or [rows, I] with one LoD level; n D instead of I if no weight has rows for it")
      .in_optional("Mask", "[steps, batch], weight of the new states in the states of the next step")
      .with(cell_weight_slots)
      .attr<int32_t>("most_steps", 0,
                     "limit for the steps of a sequence, from the loop that this op replaces; 0: no limit")
      .effects(kEngineOnly);
}

void step_gradient_slots(OpDef& def) {
  step_slots(def);
  def.out_optional("X@GRAD", "like X")
      .out_optional_list("Weights@GRAD", "like Weights")
      .out_optional_list("Biases@GRAD", "like Biases")
      .dtype_of_input("X");
}

void check_state_gradients(const InferContext& c, std::initializer_list<const char*> slots) {
  const Shape needed = steps_shape(c);
  for (const char* slot : slots) {
    for (int i = 0; i < c.n_in(slot); ++i) {
      const Meta& given = c.in(slot, i);
      AB_CHECK(given.dtype == c.in("X").dtype && compatible(given.shape, needed), ShapeMismatch,
               "{} must be {}, got {}", slot, needed.str(), given.shape.str());
    }
  }
}

void infer_step_gradients(InferContext& c, std::initializer_list<const char*> first_states) {
  grad_as(c, "X@GRAD", "X");
  if (c.has_out("X@GRAD") && has_sequences(c)) c.share_lod("X@GRAD", "X");
  for (const char* slot : first_states) grad_as(c, std::string(slot) + "@GRAD", slot);
  for (const char* slot : {"Weights", "Biases"}) {
    const std::string gradient = std::string(slot) + "@GRAD";
    for (int i = 0; i < c.n_out(gradient); ++i) c.set_out(gradient, c.in(slot, i).shape, c.in(slot, i).dtype, i);
  }
}

void StepRows::cut(const KernelContext& c, In x, In h0) {
  const Shape& shape = c[x].shape();
  sequences_ = shape.rank() == 2;
  wide_ = shape[shape.rank() - 1];
  d_ = c[h0].row_elems();
  rows_ = sequences_ ? shape[0] : shape[0] * shape[1];
  if (sequences_) {
    steps_.cut(offsets(c[x]), false);
  } else {
    steps_.cut_dense(shape[0], shape[1]);
  }
}

const float* StepRows::ordered(KernelContext& c, const float* from, int64_t width, Workspace& room) const {
  if (!sequences_) return from;
  auto* to = room.get<float>(rows_ * width);
  steps_.gather(c, from, width, to);
  return to;
}

float* StepRows::begin(float* to, int64_t width, Workspace& room) const {
  return sequences_ ? room.get<float>(rows_ * width) : to;
}

void StepRows::finish(KernelContext& c, const float* made, int64_t width, float* to) const {
  if (sequences_) steps_.scatter(c, made, width, to);
}

void StepRows::previous(const KernelContext& c, const float* states, const float* first, float* to) const {
  if (sequences_) {
    steps_.gather_previous(c, states, first, d_, to);
  } else {
    steps_.previous(c, states, first, d_, to);
  }
}

float* GivenGradient::own(const KernelContext& c, const StepRows& s) const {
  const int64_t n = s.rows() * s.d();
  float* to = sized<float>(rows_, s.rows(), s.d());
  if (slot_) {
    std::copy_n(c[slot_].data<float>(), n, to);
  } else {
    std::fill_n(to, n, 0.0f);
  }
  for (int i = 1; i < slot_.count; ++i) add_to(c.at(slot_, i).data<float>(), n, to);
  return to;
}

float* GivenGradient::ordered(KernelContext& c, const StepRows& s, Workspace& room) const {
  if (!s.sequences() || !slot_) return own(c, s);
  auto* to = room.get<float>(s.rows() * s.d());
  s.steps().gather(c, read(c, s), s.d(), to);
  return to;
}

float* first_gradient(KernelContext& c, In state, Out needed, const std::shared_ptr<Tensor>& rows) {
  const int64_t n = c[state].rows(), d = c[state].row_elems();
  float* to = c.needs(needed) ? c[needed].mutable_data<float>() : sized<float>(rows, n, d);
  std::fill_n(to, n * d, 0.0f);
  return to;
}

void StepSums::run(KernelContext& c, const StepRows& s, float* gates) {
  weights_.gather(c, s.wide(), s.d());
  const int64_t width = weights_.gates() * s.d();
  const auto* x = c[x_].data<float>();
  const float* bias = weights_.bias();
  if (weights_.x()) {
    Workspace room;
    product_->run(c, {.m = s.rows(), .n = width, .k = s.wide()}, s.ordered(c, x, s.wide(), room), weights_.x(), gates,
                  {bias, nullptr});
    return;
  }
  if (s.sequences()) return s.steps().gather_add(c, x, bias, width, gates);
  c.parallel_for(s.rows(), 8192 / std::max<int64_t>(1, width) + 1, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      std::copy_n(x + r * width, width, gates + r * width);
      if (bias) add_to(bias, width, gates + r * width);
    }
  });
}

void StepSumsBack::give_x(KernelContext& c, const StepRows& s, const float* dgates) {
  if (!c.needs(dx_)) return;
  auto* to = c[dx_].mutable_data<float>();
  const int64_t width = gates_ * s.d();
  if (!weights_.x()) {
    if (s.sequences()) return s.finish(c, dgates, width, to);
    std::copy_n(dgates, s.rows() * width, to);
    return;
  }
  Workspace room;
  float* made = s.begin(to, s.wide(), room);
  to_x_->run(c, {.m = s.rows(), .n = s.wide(), .k = width, .trans_b = true}, dgates, weights_.x(), made);
  s.finish(c, made, s.wide(), to);
}

void StepSumsBack::give_weight_of_x(KernelContext& c, const StepRows& s, const float* dgates) {
  if (!weights_.x()) return;
  Workspace room;
  to_weight_->run(c, {.m = s.wide(), .n = gates_ * s.d(), .k = s.rows(), .trans_a = true},
                  s.ordered(c, c[x_].data<float>(), s.wide(), room), dgates, gradients_.x(c, s.wide(), s.d()));
}

void StepSumsBack::give_biases(const KernelContext& c, const StepRows& s, const float* dgates) {
  float* sums = gradients_.bias(s.d());
  std::fill_n(sums, gates_ * s.d(), 0.0f);
  add_columns(c, dgates, s.rows(), gates_ * s.d(), sums);
  gradients_.give_biases(c, s.d());
}

}  // namespace anabranch::sequence
