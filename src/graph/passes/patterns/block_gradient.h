// Checks that a block computes the gradient of another one, and nothing else: the condition for replacing both by an
// op.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace anabranch {

class BlockGradient {
 public:
  using Ops = std::vector<ir::OpRef>;
  // Variables of the forward ops whose gradients come from outside, in whole or in part, and the gradients' names.
  using Seeds = std::vector<std::pair<std::string, std::string>>;
  BlockGradient(const Ops& forward, const Ops& gradient, const Seeds& seeds);

  // The reason why it does not; empty if it does.
  const std::string& why() const { return why_; }
  // Whether the variable `name` of the gradient block is the whole gradient of `of` in the end.
  bool is_gradient(const std::string& name, const std::string& of) const;
  // The variable of which a variable of the gradient block is a (partial) gradient; empty if there is none.
  std::string of(const std::string& name) const;
  // The position of the forward op whose gradient it exclusively is; -1 if there is none, or several.
  int made_by(const std::string& name) const;

 private:
  // The origin of a partial gradient: a use of the variable, by op, slot and position; op -1: from outside, by name.
  using Share = std::tuple<int, std::string, size_t>;
  struct Partial {
    std::string of;
    std::set<Share> shares;
  };

  std::set<Share> shares_of(const std::string& var) const;
  bool counts(int op) const;  // a gradient flows back to it
  bool is_whole(const std::string& name, const std::string& of) const;
  bool take(const ir::Op& op);
  bool take_sum(const ir::Op& op);
  bool take_concat(const ir::Op& op);
  bool take_scale(const ir::Op& op);
  std::optional<Share> next_share(const std::string& whole, float factor) const;
  bool take_gradient(const ir::Op& op, int of);
  int forward_of(const ir::Op& op) const;
  bool keep(const std::string& name, Partial partial);

  const Ops& forward_;
  std::map<std::string, std::set<Share>> seeded_;
  std::map<std::string, std::vector<Share>> uses_;
  mutable std::map<int, bool> counts_;
  std::map<std::string, Partial> known_;
  std::set<Share> scaled_;  // uses whose gradient was computed by a scale
  std::string why_;
};

}  // namespace anabranch
