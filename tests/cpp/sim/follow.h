// Models that follow the checkpoints of a simulated cluster. Workers push to servers that have a dense variable and a
// growable table with rules; the first worker writes checkpoints of them between two of its steps, while the others go
// on and servers are killed; some of them it gives up half-way. Followers look at the folder, or at a copy of it that
// is never quite up to date. What a follower answers is what was trained: the rows that each server had at one moment,
// and the dense variable, which is of the same moment in synchronous training. It goes back only where a version is
// pinned.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "sim/grown_table.h"
#include "sim/node.h"
#include "sparse/table_link.h"

namespace anabranch::ps::sim {

struct FollowPlan {
  uint64_t seed = 1;
  Mode mode = Mode::kSync;
  Durability durability = Durability::kJournal;
  int servers = 1, workers = 1, steps = 8, snapshot_every = 4;
  Faults faults;
  int server_crashes = 0;
  GrownRules rules;
  int saves = 50, wholes = 20, given_up = 10, pins = 5;  // percent: of steps, of saves, of saves, of lookups
  bool shares = false;                                   // followers share the rows in memory
  std::string text() const;
};
FollowPlan follow_plan_of(uint64_t seed);

// Defects that the histories have to find.
enum class FollowDefect {
  kNone,
  kStepsGoOn,          // the worker that writes does not hold its step: rows and dense variables are of several
  kGoneKeysAreKept,    // rows that were removed are in no file of changes
  kChangesAreDropped,  // what a save that was given up would have written is in no later one
  kDefects
};

class FollowRun {
 public:
  FollowRun(const FollowPlan& plan, FollowDefect planted);
  ~FollowRun();
  // Empty, or what is wrong with this history.
  std::string run();
  int crashes() const;
  int versions() const { return static_cast<int>(saved_.size()); }
  int64_t answers() const { return answers_; }
  int changes() const { return changes_; }  // versions that have no file of all rows

 private:
  struct Node;
  class Store;
  struct Worker;
  struct Followed;
  class Patient;
  // The values that were trained at the moment of a checkpoint.
  struct Moment {
    std::map<int64_t, std::vector<float>> rows;
    float dense = 0;
    std::string wrong;
  };
  struct Saved {
    sparse::LinkPlace place;
    sparse::LinkSums sums;
    bool whole = false;
    Moment moment;
    uint64_t since() const { return sums.changes ? sums.changes : sums.whole; }
  };

  void begin(int w);
  void step(int w);
  void save();
  Moment moment_of_servers(float dense);
  void write(int64_t number, const Saved* before, bool whole);
  float pull_dense();
  void remove_old();
  void copy_some();
  void look();
  void look_at(Followed& follower);
  void check_answer(Followed& follower);
  void pin(Followed& follower);
  void finish();
  void fail(const std::string& what);
  bool over() const;
  std::string path(const std::string& root, int64_t number) const;

  const FollowPlan plan_;
  const FollowDefect planted_;
  World world_;
  Network network_;
  const std::string folder_;
  std::vector<std::unique_ptr<Node>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::shared_ptr<Client> writer_;
  std::vector<Remote> tables_;
  std::map<int64_t, Saved> saved_;
  std::vector<std::unique_ptr<Followed>> followers_;
  std::vector<std::pair<std::string, std::string>> to_copy_;  // files: from, to
  int64_t answers_ = 0;
  int changes_ = 0, looks_ = 0;
  bool saving_ = false;
  std::string wrong_;
};

}  // namespace anabranch::ps::sim
