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
  check_rank(c, "X", 2, 3);
  const Shape& x = c.in("X").shape;
  AB_CHECK(x[0] != 0, InvalidArgument, "X must have at least one step, got {}", x.str());
  if (has_sequences(c)) check_sequences(c);
  check_rank(c, "H0", 2, 2);
  const int64_t d = c.in("H0").shape[1];
  for (const char* slot : first_states) {
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

template <class On> void StepRows<On>::cut(const KernelContext& c, In x, In h0) {
  const Shape& shape = c[x].shape();
  sequences_ = shape.rank() == 2;
  wide_ = shape[shape.rank() - 1];
  d_ = c[h0].row_elems();
  if (sequences_) {
    steps_.cut(offsets(c[x]), false);
  } else {
    steps_.cut_dense(shape[0], shape[1]);
  }
}

template <class On>
Slab<const typename On::Number> StepRows<On>::ordered(const C& c, Slab<const T> from, int64_t width, Room& room) {
  if (!sequences_) return from;
  const Slab<T> to = room.rows(rows(), width);
  steps_.gather(c, from, width, to);
  return to;
}

template <class On> Slab<const typename On::Number> StepRows<On>::given(const C& c, In gradients, Room& room) {
  if (gradients.count == 1) return slab<T>(c, gradients);
  const Slab<T> to = room.zeros(rows(), d_);
  for (int i = 0; i < gradients.count; ++i) {
    blocks_.move(c, rows(), d_, slab<T>(c.at(gradients, i)), d_, to, d_, i > 0);
  }
  return to;
}

template <class On> Slab<typename On::Number> StepRows<On>::own(const C& c, In gradients, Room& room) {
  const Slab<T> to = room.rows(rows(), d_);
  if (!gradients) On::zero(c, to);
  for (int i = 0; i < gradients.count; ++i) {
    const Slab<const T> from = slab<T>(c.at(gradients, i));
    i == 0 ? steps_.gather(c, from, d_, to) : steps_.gather_sum(c, from, d_, to);
  }
  return to;
}

template <class On>
Slab<typename On::Number> StepRows<On>::first_gradient(const C& c, In state, Out needed, Room& room) const {
  const Slab<T> to = c.needs(needed) ? slab<T>(c, needed) : room.rows(c[state].rows(), c[state].row_elems());
  On::zero(c, to);
  return to;
}

template <class On> void StepSums<On>::run(const C& c, StepRows<On>& s, Room& room, Slab<T> gates) {
  weights_.gather(c, room, s.wide(), s.d());
  const int64_t width = weights_.gates() * s.d();
  const Slab<const T> x = slab<T>(c, x_), bias = weights_.bias();
  if (!weights_.x()) return s.steps().gather(c, x, width, gates, bias);
  product_.run(c, {.m = s.rows(), .n = width, .k = s.wide()}, s.ordered(c, x, s.wide(), room), weights_.x(), gates,
               bias);
}

template <class On> void StepSumsBack<On>::give_x(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates) {
  if (!c.needs(dx_)) return;
  const Slab<T> to = slab<T>(c, dx_);
  const int64_t width = gates_ * s.d();
  if (!weights_.x()) return s.steps().scatter(c, dgates, width, to);
  const Slab<T> made = s.begin(to, s.wide(), room);
  to_x_.run(c, {.m = s.rows(), .n = s.wide(), .k = width, .trans_b = true}, dgates, weights_.x(), made, false);
  s.finish(c, made, s.wide(), to);
}

template <class On>
void StepSumsBack<On>::give_weight_of_x(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates) {
  if (!weights_.x()) return;
  const Slab<T> to = gradients_.part(c, room, true, s.wide(), s.d());
  to_weight_.run(c, {.m = s.wide(), .n = gates_ * s.d(), .k = s.rows(), .trans_a = true},
                 s.ordered(c, slab<T>(c, x_), s.wide(), room), dgates, to, false);
  gradients_.give_part(c, to, true, s.wide(), s.d());
}

template <class On> void StepSumsBack<On>::give_biases(const C& c, StepRows<On>& s, Room& room, Slab<const T> dgates) {
  const Slab<T> sums = room.rows(1, gates_ * s.d());
  s.steps().column_sums(c, dgates, gates_ * s.d(), gates_ * s.d(), sums);
  gradients_.give_biases(c, sums, s.d());
}

template class StepRows<OnHost<float>>;
template class StepRows<OnDevice<float>>;
template class StepSums<OnHost<float>>;
template class StepSums<OnDevice<float>>;
template class StepSumsBack<OnHost<float>>;
template class StepSumsBack<OnDevice<float>>;

}  // namespace anabranch::sequence
