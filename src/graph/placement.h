// Which replica has a variable: parameters and optimizer state exist once, for all; what an update op computes is found
// where it was computed; of everything else each replica has its own. Also who updates a parameter: its owner.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

bool is_update(const ir::Op& op);

// Persistable variables that exist once for all replicas of a process: those that only optimizer ops write.
std::set<std::string> shared_persistables(const ir::Program& program);

class Placement {
 public:
  // `shared`: names that exist once.
  Placement(int replicas, std::set<std::string> shared) : shared_(std::move(shared)), owned_bytes_(replicas, 0) {}

  bool is_shared(const std::string& name) const { return shared_.count(name) != 0; }
  // The replica whose variable `name` means to a node of `replica`, which is an update op's or not.
  int place_of(const std::string& name, int replica, bool update) const;
  // What an update op of this replica writes is there.
  void note_outputs(const ir::Op& update, int replica);
  // The replica that shall have the gradient of a parameter: the one whose gradients are the fewest bytes so far.
  int choose_owner(const std::string& gradient, int64_t bytes);
  // The replica on which an update op runs.
  int owner_of(const ir::Op& update) const;

 private:
  std::set<std::string> shared_;
  std::map<std::string, int> home_;  // replica on which an update op's result, or a reduced gradient, is
  std::vector<int64_t> owned_bytes_;
};

}  // namespace anabranch
