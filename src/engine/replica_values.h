// The persistable variables of every replica. Replica 0 uses the user's scope; the others share variables that only
// optimizer ops write and have copies of the rest. Copies are refreshed after another writer has changed the scope: a
// load, a set, another executor's run.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/futex_mutex.h"
#include "core/scope.h"

namespace anabranch {

class ReplicaValues {
 public:
  ReplicaValues(std::shared_ptr<Scope> scope, int replicas, std::set<std::string> shared);

  // The value of a persistable variable; `lender`, if given, is searched first (share_vars_from).
  std::shared_ptr<Value> get(const std::string& name, int replica);
  std::shared_ptr<Value> find(const std::string& name);  // of any other variable in the scope; null when absent
  void borrow_from(ReplicaValues* lender) { lender_ = lender; }
  // Before a run; also those of the lender whose copies are used here.
  void refresh_copies();
  // Private values of all replicas except the first, whose values are the scope's.
  struct Copy {
    std::string name;
    int replica;
    std::shared_ptr<Value> value;
  };
  std::vector<Copy> copies();
  void set_copy(const std::string& name, int replica, const Tensor& value);
  // Names of the scope refer to other values than when this or the lender looked them up: holders of values must look
  // them up again. A few loads while names are neither added nor erased.
  uint64_t moves();
  // After a run: marks these as changed. After a failed run the copies are outdated, because the replicas may have
  // stopped at different nodes.
  void mark_written(const std::vector<Value*>& written, bool complete);

 private:
  void keep_up();
  std::shared_ptr<Value> look_up(const std::string& name);

  struct Copies {
    std::shared_ptr<Value> original;
    uint64_t version;                                // of the source when the copies were made
    std::vector<std::shared_ptr<Value>> of_replica;  // [0] is null
  };
  std::shared_ptr<Scope> scope_;
  int replicas_;
  std::set<std::string> shared_;
  std::map<std::string, Copies> copies_;
  std::map<std::string, std::shared_ptr<Value>> found_;  // values of names of the scope, null for absent ones
  uint64_t names_version_ = 0, moves_ = 0;               // of the scope at the last comparison
  ReplicaValues* lender_ = nullptr;
  FutexMutex in_use_;  // borrowers access the lender's values from other threads
};

}  // namespace anabranch
