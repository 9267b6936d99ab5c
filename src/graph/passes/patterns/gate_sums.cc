#include "graph/passes/patterns/gate_sums.h"

#include <algorithm>
#include <numeric>

namespace anabranch {
namespace {

enum Rows { kX, kState, kXThenState, kStateThenX, kGruUnit };

void append(const std::vector<int>& gates, const std::vector<int>& places, std::vector<int32_t>* to) {
  to->push_back(static_cast<int32_t>(gates.size()));
  for (const int gate : gates) to->push_back(places[static_cast<size_t>(gate)]);
}

}  // namespace

bool GateSums::activated(const std::string& name, const char* act, int place, const std::string& state) {
  if (const std::string sum = ops_->inside(name, act); !sum.empty()) return terms(sum, {place}, state);
  return part(name, act, place, state);
}

bool GateSums::joint(const std::string& name, std::vector<int> places, const std::string& state) {
  joints_.push_back({name, state, std::move(places)});
  return true;
}

// One of several equal slices of sums, or (act) of act(sums).
bool GateSums::part(const std::string& name, const char* act, int place, const std::string& state) {
  const ir::Op* split = ops_->made(name, "split");
  if (!split || !split->attr<std::vector<int32_t>>("sections").empty()) return false;
  if (!split->input("AxisTensor").empty() || !is_last_axis(*split)) return false;
  const auto& parts = split->output("Out");
  std::string sum = sole(split->input("X"));
  if (act) sum = ops_->inside(sum, act);
  if (sum.empty() || static_cast<int>(parts.size()) > gates_) return false;
  const auto at = static_cast<size_t>(std::find(parts.begin(), parts.end(), name) - parts.begin());
  auto it = std::find_if(joints_.begin(), joints_.end(), [&](const Joint& j) { return j.sum == sum; });
  if (it == joints_.end()) {
    it = joints_.insert(it, {sum, state, std::vector<int>(parts.size(), -1)});
  }
  if (it->gates.size() != parts.size() || it->gates[at] >= 0) return false;
  // A product with the state must use the same one in all slices; products with x may differ.
  if (it->state != state) it->state.clear();
  it->gates[at] = place;
  return true;
}

bool GateSums::finish() {
  for (size_t i = 0; i < joints_.size(); ++i) {
    const Joint joint = joints_[i];
    if (std::count(joint.gates.begin(), joint.gates.end(), -1) != 0) return false;
    if (!terms(joint.sum, joint.gates, joint.state)) return false;
  }
  return true;
}

bool GateSums::terms(const std::string& name, const std::vector<int>& places, const std::string& state) {
  if (name == x_) {
    if (!of_x_.empty() || static_cast<int>(places.size()) != gates_) return false;
    of_x_ = places;
    return true;
  }
  if (const ir::Op* add = ops_->made(name, "elementwise_add")) {
    const std::string a = sole(add->input("X")), b = sole(add->input("Y"));
    if (ops_->is_outer(b)) return is_last_axis(*add) && bias(b, places) && terms(a, places, state);
    return terms(a, places, state) && terms(b, places, state);
  }
  if (const ir::Op* sum = ops_->made(name, "sum")) {
    const auto& all = sum->input("X");
    return std::all_of(all.begin(), all.end(), [&](const auto& one) { return terms(one, places, state); });
  }
  if (product(name, places, state)) return true;
  return places.size() == 1 && part(name, nullptr, places[0], state);
}

bool GateSums::product(const std::string& name, const std::vector<int>& places, const std::string& state) {
  const ir::Op* mul = plain_product(name);
  if (!mul) return false;
  const std::string of = sole(mul->input("X")), by = sole(mul->input("Y"));
  if (of == x_) return weight(by, kX, places);
  if (of == state && !state.empty()) return weight(by, kState, places);
  const ir::Op* joined = ops_->made(of, "concat");
  if (!joined || !is_last_axis(*joined) || !joined->input("AxisTensor").empty()) return false;
  const auto& parts = joined->input("X");
  if (parts.size() != 2 || state.empty()) return false;
  if (parts[0] == x_ && parts[1] == state) return weight(by, kXThenState, places);
  return parts[0] == state && parts[1] == x_ && weight(by, kStateThenX, places);
}

const ir::Op* GateSums::plain_product(const std::string& name) {
  if (const ir::Op* mul = ops_->made(name, "mul")) {
    const bool flat = mul->attr<int32_t>("x_num_col_dims") == 1 && mul->attr<int32_t>("y_num_col_dims") == 1;
    return flat ? mul : nullptr;
  }
  const ir::Op* product = ops_->made(name, "matmul");
  if (!product || product->attr<bool>("transpose_X") || product->attr<bool>("transpose_Y")) return nullptr;
  return product->attr<float>("alpha") == 1.0f ? product : nullptr;
}

bool GateSums::weight(const std::string& name, int rows, const std::vector<int>& places) {
  const bool known = std::any_of(weights_.begin(), weights_.end(), [&](const Weight& w) { return w.name == name; });
  if (known || !ops_->is_outer(name)) return false;
  weights_.push_back({name, rows, places});
  return true;
}

bool GateSums::unit_weight(const std::string& name) { return weight(name, kGruUnit, {0, 1, 2}); }

bool GateSums::bias(const std::string& name, const std::vector<int>& places) {
  const bool known = std::any_of(biases_.begin(), biases_.end(), [&](const auto& b) { return b.first == name; });
  if (known || !ops_->is_outer(name)) return false;
  biases_.emplace_back(name, places);
  return true;
}

std::vector<int> GateSums::widest() const {
  std::vector<int> places(static_cast<size_t>(gates_));
  std::iota(places.begin(), places.end(), 0);
  const auto whole = [&](const std::vector<int>& gates) { return static_cast<int>(gates.size()) == gates_; };
  const auto by_place = [&](const std::vector<int>& gates) {
    for (size_t i = 0; i < gates.size(); ++i) places[static_cast<size_t>(gates[i])] = static_cast<int>(i);
    return places;
  };
  if (whole(of_x_)) return by_place(of_x_);
  for (const Weight& w : weights_) {
    if (whole(w.gates)) return by_place(w.gates);
  }
  return places;
}

bool GateSums::fits_x(const std::vector<int>& places) const {
  const bool product = std::any_of(weights_.begin(), weights_.end(),
                                   [](const Weight& w) { return w.rows != kState && w.rows != kGruUnit; });
  if (of_x_.empty()) return product;
  for (size_t i = 0; i < of_x_.size(); ++i) {
    if (places[static_cast<size_t>(of_x_[i])] != static_cast<int>(i)) return false;
  }
  return !product;
}

bool GateSums::has_state() const {
  return std::any_of(weights_.begin(), weights_.end(), [](const Weight& w) { return w.rows != kX; });
}

std::vector<int32_t> GateSums::weight_places(const std::vector<int>& places) const {
  std::vector<int32_t> all;
  for (const Weight& w : weights_) {
    all.push_back(w.rows);
    append(w.gates, places, &all);
  }
  return all;
}

std::vector<int32_t> GateSums::bias_places(const std::vector<int>& places) const {
  std::vector<int32_t> all;
  for (const auto& [name, gates] : biases_) append(gates, places, &all);
  return all;
}

std::vector<std::string> GateSums::weights() const {
  std::vector<std::string> names;
  for (const Weight& w : weights_) names.push_back(w.name);
  return names;
}

std::vector<std::string> GateSums::biases() const {
  std::vector<std::string> names;
  for (const auto& [name, gates] : biases_) names.push_back(name);
  return names;
}

}  // namespace anabranch
