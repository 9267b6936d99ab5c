// Ownership of variables by replicas: parameters and optimizer state exist once, for all; the result of an update op is
// on the replica that computed it; every replica has its own copy of everything else. Also the replica that updates a
// parameter: its owner.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "ir/program.h"

namespace anabranch {

bool is_update(const ir::Op& op);
// Whether the op is part of the exchange with servers that a worker does once in a step: a send, a receive, one of
// their barriers, or an op that splits or joins their tensors. Lookups in tables on servers are not part of it, because
// they depend on the batch.
bool is_exchange(const ir::Op& op);

// Persistable variables that exist once for all replicas of a process: those that only updates and exchanges write, or,
// if replicas train independently, all.
std::set<std::string> shared_persistables(const ir::Program& program, bool independent);

class Ownership {
 public:
  // `shared`: names that exist once.
  Ownership(int replicas, std::set<std::string> shared) : shared_(std::move(shared)), owned_bytes_(replicas, 0) {}

  bool is_shared(const std::string& name) const { return shared_.count(name) != 0; }
  // The replica whose variable `name` a node of `replica` refers to, for update ops and others.
  int replica_of(const std::string& name, int replica, bool update) const;
  // Records that an update op of this replica writes the variable.
  void note_outputs(const ir::Op& update, int replica);
  // The replica that gets the gradient of a parameter: the one whose gradients have the fewest bytes so far.
  int choose_owner(const std::string& gradient, int64_t bytes);
  // The replica on which an update, or an exchange with servers, runs.
  int owner_of(const ir::Op& update) const;

 private:
  std::set<std::string> shared_;
  std::map<std::string, int> owners_;  // replica that has an update op's result, or a reduced gradient
  std::vector<int64_t> owned_bytes_;
};

}  // namespace anabranch
