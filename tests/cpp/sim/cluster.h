// A whole cluster in one thread: servers that are killed, lose power and come again, workers that push -1 to every
// variable and are killed, too. An update subtracts: a variable counts the pushes that were applied, and nothing else.
// Replicas of a worker push together, when the slowest one has ended its step, or each at its own pace.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ps_cluster.h"
#include "sim/defects.h"
#include "sim/node.h"
#include "sim/plan.h"

namespace anabranch::ps::sim {

class ClusterRun {
 public:
  ClusterRun(const Plan& plan, Planted planted);
  ~ClusterRun();
  // Empty, or what is wrong with this history.
  std::string run();
  int64_t lost() const { return lost_; }
  int64_t applied() const { return applied_; }
  int crashes() const { return crashes_; }

 private:
  struct ToyNode;
  struct Worker;

  void start_worker(int w);
  void kill_worker(int w);
  void begin_step(int w, int sender, Milliseconds least, Milliseconds most);
  void step(int w, int sender, uint64_t life);
  template <class Pushes> void push(Pushes* into, int w, int sender);
  void stepped(int w, int sender, uint64_t life, const std::exception_ptr& error);
  void complete(int w, uint64_t life);
  void complete_at(int w, int s, uint64_t life);
  void plan_faults();
  void tick();
  bool all_done() const;
  bool any_wrong() const;
  std::string check();
  std::string check_variable(const ToyNode& s, int v, int64_t lost) const;

  int senders() const { return plan_.together ? 1 : plan_.replicas; }
  int share() const { return plan_.together ? plan_.replicas : 1; }  // replicas whose gradients are in one push

  const Plan plan_;
  const Planted planted_;
  World world_;
  Network network_;
  std::vector<std::unique_ptr<ToyNode>> servers_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<std::shared_ptr<Client>> dead_;
  std::string wrong_;
  int64_t lost_ = 0, applied_ = 0;
  int crashes_ = 0;
};

}  // namespace anabranch::ps::sim
