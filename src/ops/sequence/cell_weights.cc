#include "ops/sequence/cell_weights.h"

#include <algorithm>

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

template <class On> void CellWeights<On>::gather(const C& c, typename On::Room& room, int64_t wide, int64_t d) {
  x_ = layout_.sums ? Slab<const T>{} : part(c, room, true, wide, wide, d);
  state_ = part(c, room, false, d, wide, d);
  bias_ = layout_.biases.empty() && number_ == 0.0f ? Slab<const T>{} : biases(c, room, d);
}

template <class On>
Slab<const typename On::Number> CellWeights<On>::part(const C& c, typename On::Room& room, bool of_x, int64_t rows,
                                                      int64_t wide, int64_t d) {
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0) {
    const int64_t begin = gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
    return slab<T>(c.at(weights_, i)).part(begin, rows * gates_ * d);
  }
  const Slab<T> all = room.zeros(rows, gates_ * d);
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    const WeightPart& weight = layout_.weights[i];
    if (!weight.has(of_x)) continue;
    const Slab<const T> from = slab<T>(c.at(weights_, static_cast<int>(i)));
    for (size_t g = 0; g < weight.places.size(); ++g) {
      const GateBlock at = gate_block(weight, g, gates_, of_x, wide, d);
      blocks_.move(c, rows, d, from.from(at.own), at.row_own, all.from(at.all), at.row_all, true);
    }
  }
  return all;
}

template <class On>
Slab<const typename On::Number> CellWeights<On>::biases(const C& c, typename On::Room& room, int64_t d) {
  const Slab<T> all = room.zeros(1, gates_ * d);
  if (number_ != 0.0f) blocks_.add_number(c, {}, number_, all.rows(place_, 1, d));
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    const Slab<const T> bias = slab<T>(c.at(biases_, static_cast<int>(i)));
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      const Slab<T> to = all.rows(layout_.biases[i][g], 1, d);
      if (bias.count == 1) {
        blocks_.add_number(c, bias, 0, to);
      } else {
        blocks_.move(c, 1, d, bias.rows(static_cast<int64_t>(g), 1, d), d, to, d, true);
      }
    }
  }
  return all;
}

template <class On> bool CellWeightGradients<On>::needs(const KernelContext& c, Out slot) {
  for (int i = 0; i < slot.count; ++i) {
    if (c.needs(slot, i)) return true;
  }
  return false;
}

template <class On>
Slab<typename On::Number> CellWeightGradients<On>::part(const C& c, typename On::Room& room, bool of_x, int64_t wide,
                                                        int64_t d) const {
  const int64_t rows = of_x ? wide : d;
  if (const int i = whole_weight(layout_, of_x, gates_); i >= 0 && c.needs(weights_, i)) {
    const int64_t begin = gate_block(layout_.weights[static_cast<size_t>(i)], 0, gates_, of_x, wide, d).own;
    return slab<T>(c.at(weights_, i)).part(begin, rows * gates_ * d);
  }
  return room.rows(rows, gates_ * d);
}

template <class On>
void CellWeightGradients<On>::give_part(const C& c, Slab<const T> all, bool of_x, int64_t wide, int64_t d) const {
  if (whole_weight(layout_, of_x, gates_) >= 0) return;  // they are in place
  const int64_t rows = of_x ? wide : d;
  for (size_t i = 0; i < layout_.weights.size(); ++i) {
    const WeightPart& weight = layout_.weights[i];
    if (!weight.has(of_x) || !c.needs(weights_, static_cast<int>(i))) continue;
    const Slab<T> to = slab<T>(c.at(weights_, static_cast<int>(i)));
    for (size_t g = 0; g < weight.places.size(); ++g) {
      const GateBlock at = gate_block(weight, g, gates_, of_x, wide, d);
      blocks_.move(c, rows, d, all.from(at.all), at.row_all, to.from(at.own), at.row_own, false);
    }
  }
}

template <class On> void CellWeightGradients<On>::give_biases(const C& c, Slab<const T> all, int64_t d) const {
  for (size_t i = 0; i < layout_.biases.size(); ++i) {
    if (!c.needs(biases_, static_cast<int>(i))) continue;
    const Slab<T> to = slab<T>(c.at(biases_, static_cast<int>(i)));
    for (size_t g = 0; g < layout_.biases[i].size(); ++g) {
      const Slab<const T> from = all.rows(layout_.biases[i][g], 1, d);
      if (to.count == 1) {
        blocks_.sum(c, from, to, g > 0);
      } else {
        blocks_.move(c, 1, d, from, d, to.rows(static_cast<int64_t>(g), 1, d), d, false);
      }
    }
  }
}

template class CellWeights<OnHost<float>>;
template class CellWeights<OnDevice<float>>;
template class CellWeightGradients<OnHost<float>>;
template class CellWeightGradients<OnDevice<float>>;

}  // namespace anabranch::sequence
