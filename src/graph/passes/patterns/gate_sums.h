// The sums of the gates of a cell: their weights and biases, for any way of writing them - one product for all gates or
// one each, with x and the state joined or separate, split before or after the activation.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "graph/passes/patterns/step_ops.h"

namespace anabranch {

class GateSums {
 public:
  // x: the input that differs between steps.
  GateSums(StepOps& ops, std::string x, int gates) : ops_(&ops), x_(std::move(x)), gates_(gates) {}

  // `name` is act(the sum of a gate), and the gate has this position. Visits products with x and with `state`.
  bool activated(const std::string& name, const char* act, int place, const std::string& state);
  // `name` holds the sums of these gates side by side.
  bool joint(const std::string& name, std::vector<int> places, const std::string& state);
  // A weight [D, 3 D] as of gru_unit.
  bool unit_weight(const std::string& name);
  bool bias(const std::string& name, const std::vector<int>& places);
  // fn(a, b) or fn(b, a); the findings of a failed attempt are discarded.
  template <class Fn> bool either(const std::optional<std::pair<std::string, std::string>>& two, Fn&& fn) {
    return ops_->either(two, [&](const auto& a, const auto& b) {
      const GateSums before = *this;
      if (fn(a, b)) return true;
      *this = before;
      return false;
    });
  }
  // Call it when all gates are known: their positions in the whole sum.
  bool finish();

  // Attributes of the fused op, in the order of `places`, the columns of each gate.
  std::vector<int32_t> weight_places(const std::vector<int>& places) const;
  std::vector<int32_t> bias_places(const std::vector<int>& places) const;
  // Positions of gates in the first weight that has all of them; each gate's default position if there is none.
  std::vector<int> widest() const;
  // Without a weight x itself holds the sums: whether they are in this order.
  bool fits_x(const std::vector<int>& places) const;
  // Some weight has rows for the state.
  bool has_state() const;
  std::vector<std::string> weights() const;
  std::vector<std::string> biases() const;

 private:
  struct Weight {
    std::string name;
    int rows;  // as weight_places of the op says
    std::vector<int> gates;
  };
  struct Joint {
    std::string sum, state;
    std::vector<int> gates;  // -1: not known yet
  };

  bool part(const std::string& name, const char* act, int place, const std::string& state);
  bool terms(const std::string& name, const std::vector<int>& places, const std::string& state);
  bool product(const std::string& name, const std::vector<int>& places, const std::string& state);
  bool weight(const std::string& name, int rows, const std::vector<int>& places);
  const ir::Op* plain_product(const std::string& name);

  StepOps* ops_;
  std::string x_;
  int gates_;
  std::vector<Weight> weights_;
  std::vector<std::pair<std::string, std::vector<int>>> biases_;
  std::vector<Joint> joints_;
  std::vector<int> of_x_;  // gates of the columns of x if x is the sums
};

}  // namespace anabranch
