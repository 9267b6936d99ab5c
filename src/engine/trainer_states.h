// The persistable variables of training threads that run concurrently on different batches. Every thread has a scope:
// rows of tables with sparse gradients, their state if the rule goes row by row, and read-only variables are the memory
// of the user's scope, shared by all. Every other variable that the program writes is a copy: merge() adds the changes
// of one thread's parameters to the user's scope, and takes over the changes of the others. A program with shared
// tables must run under RowLocks::Sharing (core/row_locks.h), so that no row is torn.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/scope.h"
#include "ir/program.h"

namespace anabranch {

// How the copies of a variable are combined.
enum class Merging {
  kNone,   // not copied
  kSum,    // parameters, sums of squared gradients, counters: sum of the changes
  kMean,   // moving averages: their mean, at the end
  kFirst,  // the first thread's value, at the end
};

struct StateVar {
  std::string name;
  Merging merging;
};
// The persistable variables that ops of the program use, by name.
std::vector<StateVar> state_of(const ir::Program& program);

class TrainerStates {
 public:
  TrainerStates(const ir::Program& program, std::shared_ptr<Scope> scope, int trainers);

  const std::shared_ptr<Scope>& scope(int trainer) const { return scopes_[trainer]; }
  bool shares_rows() const;  // all threads write some table

  void begin();             // copies the scope's values to the threads; before they start
  void merge(int trainer);  // in the training thread, between two batches
  void finish();            // after the threads have ended: the scope gets the combined values

 private:
  struct Copied {
    std::string name;
    Merging merging;
    std::shared_ptr<Value> original;
    std::vector<Value*> copies;  // of each thread
    std::vector<Tensor> bases;   // kSum: each thread's copy after the last merge
    std::mutex one_at_a_time;    // serializes merges
  };
  std::shared_ptr<Value> original_of(const std::string& name) const;  // created if absent
  void move_into_place();
  void take_original(Copied& c);
  static void merge_one(Copied& c, int trainer);
  void close_one(Copied& c);

  std::shared_ptr<Scope> user_;
  std::vector<std::shared_ptr<Scope>> scopes_;
  std::vector<std::string> shared_;
  std::deque<Copied> copied_;
  bool shares_rows_ = false;
};

}  // namespace anabranch
