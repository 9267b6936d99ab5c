// Workers that train alone and exchange differences, and that add up numbers by name, with servers that are killed.
// Differences are powers of two, so that all sums are exact: what servers hold is the sum of what was sent, what a
// worker holds is that and what it has not sent. A growable table has rules.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ps/geo.h"
#include "sim/grown_table.h"
#include "sim/node.h"

namespace anabranch::ps::sim {

struct GeoPlan {
  uint64_t seed = 1;
  Durability durability = Durability::kJournal;
  int servers = 1, workers = 1, steps = 8, every = 2, snapshot_every = 4;
  Faults faults;
  int server_crashes = 0, cuts = 0;
  int replicas = 1;  // of each worker; they train its one copy
  GrownRules rules;  // of the growable table
  std::string text() const;
};
GeoPlan geo_plan_of(uint64_t seed);

// Of each server: 4 numbers of a dense parameter, then 6 rows of one number of a table.
inline constexpr int64_t kDense = 4, kRows = 6, kNumbers = kDense + kRows;
using Numbers = std::vector<double>;

class GeoRun {
 public:
  GeoRun(const GeoPlan& plan, Planted planted);
  ~GeoRun();
  // Empty, or what is wrong with this history.
  std::string run();
  int crashes() const { return crashes_; }
  int64_t exchanges() const { return exchanges_; }

 private:
  struct Node;
  struct Worker;

  void plan_faults();
  void begin(int w);
  void train(Worker& me, int steps);
  static void learn_keys(Worker& me);
  void train_replica(int w);
  bool trained(const Worker& me) const;
  void step(int w);
  void exchange(int w);
  void exchanged(int w, const std::exception_ptr& error);
  void add_up(int w);
  void complete(int w);
  void note_sent(const Message& m, const std::string& endpoint);
  void fail(const std::string& what);
  bool over() const;
  std::string check() const;
  std::string check_table(size_t server) const;

  const GeoPlan plan_;
  const Planted planted_;
  World world_;
  Network network_;
  std::vector<std::unique_ptr<Node>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  int ended_ = 0;  // workers whose last exchange is over
  int crashes_ = 0;
  int64_t exchanges_ = 0;
  std::string wrong_;
};

}  // namespace anabranch::ps::sim
