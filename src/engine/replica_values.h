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
  std::shared_ptr<Value> get(const std::string& name, int replica);
  std::shared_ptr<Value> find(const std::string& name);  // of any other variable in the scope; null when absent
  void borrow_from(ReplicaValues* lender) { lender_ = lender; }
  // Before a run: of the lender, too, whose copies are used here.
  void refresh_copies();
  // What replicas keep for themselves, but for the first one, whose values are the scope's.
  struct Copy {
    std::string name;
    int replica;
    std::shared_ptr<Value> value;
  };
  std::vector<Copy> copies();
  void set_copy(const std::string& name, int replica, const Tensor& value);
  // Names of the scope mean other values than when they were looked up, by this or by the lender: whoever holds values
  // is to look them up again. A few loads while nobody adds or erases names.
  uint64_t moves();
  // After a run: others learn that these changed. After a failed run the copies are old, for the replicas may have
  // stopped at different places.
  void mark_written(const std::vector<Value*>& written, bool complete);

 private:
  void keep_up();
  std::shared_ptr<Value> look_up(const std::string& name);

  struct Copies {
    std::shared_ptr<Value> original;
    uint64_t version;                                // of the original when the copies were made
    std::vector<std::shared_ptr<Value>> of_replica;  // [0] is null
  };
  std::shared_ptr<Scope> scope_;
  int replicas_;
  std::set<std::string> shared_;
  std::map<std::string, Copies> copies_;
  std::map<std::string, std::shared_ptr<Value>> found_;  // what names of the scope meant, null for an absent one
  uint64_t names_version_ = 0, moves_ = 0;               // of the scope when that was last compared
  ReplicaValues* lender_ = nullptr;
  TurnLock in_use_;  // borrowers look at the lender's values from threads of their own
};

}  // namespace anabranch
