// The persistable variables of trainers that work side by side, each on batches of its own. Every trainer has a scope:
// - rows of tables with sparse gradients, their state where the rule goes row by row, and what the program only reads:
//   the memory of the user's scope itself, shared by all;
// - everything else the program writes: a copy. merge() adds what one trainer changed in its parameters to those of the
//   user's scope, and takes over what the others have added.
// A program whose tables are shared must run under RowLocks::Sharing (core/row_locks.h), so that no row is torn.
#pragma once
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/scope.h"
#include "ir/program.h"

namespace anabranch {

// How the copies of a variable become one.
enum class Merging {
  kNone,   // not copied
  kSum,    // parameters, sums of squared gradients, counters: what each trainer added
  kMean,   // moving averages: their mean, at the end
  kFirst,  // the first trainer's, at the end
};

struct StateVar {
  std::string name;
  Merging merging;
};
// The persistable variables that ops of the program touch, by name.
std::vector<StateVar> state_of(const ir::Program& program);

class TrainerStates {
 public:
  TrainerStates(const ir::Program& program, std::shared_ptr<Scope> scope, int trainers);

  const std::shared_ptr<Scope>& scope(int trainer) const { return scopes_[trainer]; }
  bool shares_rows() const;  // some table is written by all trainers

  void begin();             // the trainers' values become those of the scope. Before they start
  void merge(int trainer);  // in the trainer's thread, between two batches
  void finish();            // after the trainers have ended: the scope has what all of them learned

 private:
  struct Copied {
    std::string name;
    Merging merging;
    std::shared_ptr<Value> original;
    std::vector<Value*> copies;  // of each trainer
    std::vector<Tensor> bases;   // kSum: what each trainer's copy was after the last merge
    std::mutex one_at_a_time;    // who merges
  };
  std::shared_ptr<Value> original_of(const std::string& name) const;  // made where it is absent
  void bring_home();
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
