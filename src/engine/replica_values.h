// The persistable variables of every replica. Replica 0 uses the user's scope itself; the others share what only
// optimizer ops write and have copies of the rest. Copies are renewed whenever somebody else has written the scope
// since: a load, a set, another executor's run.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/turn_lock.h"
#include "core/scope.h"

namespace anabranch {

class ReplicaValues {
 public:
  ReplicaValues(std::shared_ptr<Scope> scope, int replicas, std::set<std::string> shared);

  // The value of a persistable variable; `lender`, when given, is asked first (share_vars_from).
  Value* get(const std::string& name, int replica);
  void borrow_from(ReplicaValues* lender) { lender_ = lender; }
  // Before a run: of the lender, too, whose copies are used here.
  void refresh_copies();
  // After a run: others learn that these changed. After a failed run the copies are old, for the replicas may have
  // stopped at different places.
  void mark_written(const std::vector<Value*>& written, bool complete);
  Scope& scope() { return *scope_; }

 private:
  void keep_up();

  struct Copies {
    Value* original;
    uint64_t version;                                // of the original when the copies were made
    std::vector<std::shared_ptr<Value>> of_replica;  // [0] is null
  };
  std::shared_ptr<Scope> scope_;
  int replicas_;
  std::set<std::string> shared_;
  std::map<std::string, Copies> copies_;
  ReplicaValues* lender_ = nullptr;
  TurnLock copies_in_use_;  // a borrower's thread looks at the lender's copies
};

}  // namespace anabranch
