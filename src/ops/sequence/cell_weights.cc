#include "ops/sequence/cell_weights.h"

#include <algorithm>
#include <numeric>

#include "ops/sequence/recurrent.h"

namespace anabranch::sequence {
namespace {

using Numbers = std::vector<int32_t>;

// The next places of a list: how many, then each.
std::vector<int> next_places(const Numbers& numbers, size_t* at, int gates) {
  AB_CHECK(*at < numbers.size(), InvalidArgument, "places must say how many gates there are");
  const int count = numbers[(*at)++];
  AB_CHECK(count > 0 && count <= gates && static_cast<size_t>(count) <= numbers.size() - *at, InvalidArgument,
           "places must be those of 1 to {} gates, got {}", gates, count);
  std::vector<int> places(numbers.begin() + static_cast<int64_t>(*at),
                          numbers.begin() + static_cast<int64_t>(*at) + count);
  *at += static_cast<size_t>(count);
  std::vector<bool> taken(static_cast<size_t>(gates));
  for (const int place : places) {
    AB_CHECK(place >= 0 && place < gates && !taken[static_cast<size_t>(place)], InvalidArgument,
             "places must be different ones below {}, got {}", gates, place);
    taken[static_cast<size_t>(place)] = true;
  }
  return places;
}

// Where the rows of x, or of the state, begin in a weight, and how far they are apart.
int64_t begin_of(const WeightPart& weight, bool of_x, int64_t wide, int64_t d) {
  const auto columns = static_cast<int64_t>(weight.places.size()) * d;
  if (of_x) return weight.rows == WeightRows::kStateThenX ? d * columns : 0;
  return weight.rows == WeightRows::kXThenState ? wide * columns : 0;
}

// fn(of one gate in the weight, of it among all gates, elements), row by row.
template <class Fn>
void each_run(const WeightPart& weight, int gates, bool of_x, int64_t rows, int64_t wide, int64_t d, Fn&& fn) {
  for (int64_t r = 0; r < rows; ++r) {
    for (size_t g = 0; g < weight.places.size(); ++g) {
      const GateBlock block = gate_block(weight, g, gates, of_x, wide, d);
      fn(block.own + r * block.row_own, block.all + r * block.row_all, d);
    }
  }
}

}  // namespace

bool WeightPart::is_whole(int gates) const {
  for (int g = 0; g < gates; ++g) {
    if (static_cast<int>(places.size()) != gates || places[static_cast<size_t>(g)] != g) return false;
  }
  return true;
}

GateBlock gate_block(const WeightPart& weight, size_t gate, int gates, bool of_x, int64_t wide, int64_t d) {
  const auto g = static_cast<int64_t>(gate), n = static_cast<int64_t>(weight.places.size());
  const int64_t all = weight.places[gate] * d, row_all = gates * d;
  if (weight.rows != WeightRows::kGruUnit) return {begin_of(weight, of_x, wide, d) + g * d, n * d, all, row_all};
  return g < 2 ? GateBlock{g * d, 2 * d, all, row_all} : GateBlock{2 * d * d, d, all, row_all};
}

int whole_weight(const CellLayout& layout, bool of_x, int gates) {
  int found = -1;
  for (size_t i = 0; i < layout.weights.size(); ++i) {
    const WeightPart& weight = layout.weights[i];
    if (!weight.has(of_x)) continue;
    if (found >= 0 || weight.rows == WeightRows::kGruUnit || !weight.is_whole(gates)) return -1;
    found = static_cast<int>(i);
  }
  return found;
}

CellLayout layout_of(const ir::Op& op, int gates) {
  CellLayout layout;
  const auto &weights = op.attr<Numbers>("weight_places"), &biases = op.attr<Numbers>("bias_places");
  std::vector<int> of_state(static_cast<size_t>(gates));
  layout.sums = true;
  for (size_t at = 0; at < weights.size();) {
    const int rows = weights[at++];
    AB_CHECK(rows >= 0 && rows <= 4, InvalidArgument, "rows of a weight must be 0 to 4, got {}", rows);
    WeightPart part{static_cast<WeightRows>(rows), next_places(weights, &at, gates)};
    AB_CHECK(part.rows != WeightRows::kGruUnit || part.places.size() == 3, InvalidArgument,
             "a weight of gru_unit must have 3 gates, got {}", part.places.size());
    for (const int place : part.places) of_state[static_cast<size_t>(place)] += part.has_state();
    layout.sums = layout.sums && !part.has_x();
    layout.weights.push_back(std::move(part));
  }
  AB_CHECK(std::count(of_state.begin(), of_state.end(), 0) == 0, InvalidArgument,
           "Weights must have rows for the state for each gate");
  for (size_t at = 0; at < biases.size();) layout.biases.push_back(next_places(biases, &at, gates));
  return layout;
}

void cell_weight_slots(OpDef& def) {
  def.in_list("Weights", "[I, n D], [D, n D] or [I + D, n D] for n gates each; weight_places defines the layout")
      .in_optional_list("Biases", "[n D] for n gates each, or one number for all of their units; they are summed")
      .attr<Numbers>("weight_places", {},
                     "of each weight: its rows (0 x, 1 state, 2 x then state, 3 state then x, 4 as in gru_unit), its "
                     "number of gates, the position of each")
      .attr<Numbers>("bias_places", {}, "of each bias: its number of gates, the position of each");
}

void check_cell_weights(const InferContext& c, int gates, int64_t wide, int64_t d) {
  const CellLayout layout = layout_of(c.op(), gates);
  AB_CHECK(static_cast<size_t>(c.n_in("Weights")) == layout.weights.size(), InvalidArgument,
           "weight_places must describe {} Weights, got {}", c.n_in("Weights"), layout.weights.size());
  AB_CHECK(static_cast<size_t>(c.n_in("Biases")) == layout.biases.size(), InvalidArgument,
           "bias_places must describe {} Biases, got {}", c.n_in("Biases"), layout.biases.size());
  if (wide == kUnknown || d == kUnknown) return;
  AB_CHECK(!layout.sums || wide == gates * d, ShapeMismatch, "X must hold the sums of {} gates of {} units, got {}",
           gates, d, wide);
  for (size_t i = 0; i < layout.weights.size(); ++i) {
    const WeightPart& part = layout.weights[i];
    const Meta& weight = c.in("Weights", static_cast<int>(i));
    const int64_t rows = (part.has_x() ? wide : 0) + (part.has_state() ? d : 0);
    const Shape needed{rows, static_cast<int64_t>(part.places.size()) * d};
    AB_CHECK(weight.dtype == c.in("X").dtype && compatible(weight.shape, needed), ShapeMismatch,
             "weight {} must be float32 of {}, got {}", i, needed.str(), weight.shape.str());
  }
  for (size_t i = 0; i < layout.biases.size(); ++i) {
    const Meta& bias = c.in("Biases", static_cast<int>(i));
    const int64_t n = bias.shape.numel(), needed = static_cast<int64_t>(layout.biases[i].size()) * d;
    AB_CHECK(bias.dtype == c.in("X").dtype && (n < 0 || n == 1 || n == needed), ShapeMismatch,
             "bias {} must have {} numbers or one, got {}", i, needed, bias.shape.str());
  }
}

CellWeights::CellWeights(const KernelArgs& op, int gates)
    : weights_(op.in("Weights")), biases_(op.in("Biases")), gates_(gates), layout_(layout_of(op.op(), gates)) {}

void CellWeights::gather(const KernelContext& c, int64_t wide, int64_t d) {
  x_ = layout_.sums ? nullptr : part(c, true, wide, wide, d, x_memory_);
  state_ = part(c, false, d, wide, d, state_memory_);
  bias_ = layout_.biases.empty() && number_ == 0.0f ? nullptr : biases(c, d);
}

const float* CellWeights::part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d,
                               const std::shared_ptr<Tensor>& memory) {
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0) {
    return c.at(weights_, i).data<float>() +
           gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
  }
  float* all = sized<float>(memory, rows, gates_ * d);
  std::fill_n(all, rows * gates_ * d, 0.0f);
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    if (!layout_.weights[i].has(of_x)) continue;
    const auto* from = c.at(weights_, static_cast<int>(i)).data<float>();
    each_run(layout_.weights[i], gates_, of_x, rows, wide, d,
             [&](int64_t own, int64_t to, int64_t n) { add_to(from + own, n, all + to); });
  }
  return all;
}

const float* CellWeights::biases(const KernelContext& c, int64_t d) {
  float* all = sized<float>(bias_memory_, 1, gates_ * d);
  std::fill_n(all, gates_ * d, 0.0f);
  std::fill_n(all + place_ * d, d, number_);
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    const Tensor& bias = c.at(biases_, static_cast<int>(i));
    const auto* from = bias.data<float>();
    const bool one = bias.numel() == 1;
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      float* to = all + layout_.biases[i][g] * d;
      for (int64_t j = 0; j < d; ++j) to[j] += one ? *from : from[static_cast<int64_t>(g) * d + j];
    }
  }
  return all;
}

CellWeightGradients::CellWeightGradients(const KernelArgs& op, int gates)
    : weights_(op.out("Weights@GRAD")),
      biases_(op.out("Biases@GRAD")),
      gates_(gates),
      layout_(layout_of(op.op(), gates)) {}

bool CellWeightGradients::needs_weights(const KernelContext& c) const {
  for (int i = 0; i < weights_.count; ++i) {
    if (c.needs(weights_, i)) return true;
  }
  return false;
}

bool CellWeightGradients::needs_biases(const KernelContext& c) const {
  for (int i = 0; i < biases_.count; ++i) {
    if (c.needs(biases_, i)) return true;
  }
  return false;
}

float* CellWeightGradients::part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) const {
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0 && c.needs(weights_, i)) {
    return c.at(weights_, i).mutable_data<float>() +
           gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
  }
  return sized<float>(of_x ? x_memory_ : state_memory_, rows, gates_ * d);
}

float* CellWeightGradients::bias(int64_t d) const { return sized<float>(bias_memory_, 1, gates_ * d); }

void CellWeightGradients::give_weights(const KernelContext& c, int64_t wide, int64_t d) const {
  if (!layout_.sums) give_part(c, true, wide, wide, d);
  give_part(c, false, d, wide, d);
}

void CellWeightGradients::give_part(const KernelContext& c, bool of_x, int64_t rows, int64_t wide, int64_t d) const {
  if (whole_weight(layout_, of_x, gates_) >= 0) return;  // they are in place
  const auto* all = (of_x ? x_memory_ : state_memory_)->data<float>();
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    if (!layout_.weights[i].has(of_x) || !c.needs(weights_, static_cast<int>(i))) continue;
    auto* to = c.at(weights_, static_cast<int>(i)).mutable_data<float>();
    each_run(layout_.weights[i], gates_, of_x, rows, wide, d,
             [&](int64_t own, int64_t from, int64_t n) { std::copy_n(all + from, n, to + own); });
  }
}

void CellWeightGradients::give_biases(const KernelContext& c, int64_t d) const {
  const auto* all = bias_memory_->data<float>();
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    if (!c.needs(biases_, static_cast<int>(i))) continue;
    Tensor& bias = c.at(biases_, static_cast<int>(i));
    auto* to = bias.mutable_data<float>();
    if (bias.numel() == 1) *to = 0.0f;
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      const float* from = all + layout_.biases[i][g] * d;
      if (bias.numel() == 1) {
        *to += std::accumulate(from, from + d, 0.0f);
      } else {
        std::copy_n(from, d, to + static_cast<int64_t>(g) * d);
      }
    }
  }
}

}  // namespace anabranch::sequence
