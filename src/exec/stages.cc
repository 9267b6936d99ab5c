#include "exec/stages.h"

#include <algorithm>
#include <set>
#include <utility>

namespace anabranch {
namespace {

class Stager {
 public:
  Stager(const Plan& plan, const QueuePlan& queues, size_t least)
      : plan_(plan), queues_(queues), least_(least), open_(static_cast<size_t>(plan.queue_count())) {}

  void add(int i, bool captured) {
    const int queue_index = plan_.queue_index(i);
    // The host may take long: earlier work starts meanwhile.
    if (queue_index == kHost) return end_all(), add_alone(i);
    for (const int before : queues_.waits(i)) end_with(before);
    if (!captured) return end(queue_index), add_alone(i);
    Stage& stage = open_[static_cast<size_t>(queue_index)];
    stage.queue_index = queue_index;
    stage.nodes.push_back(i);
    for (const int before : queues_.waits(i)) wait_for(&stage.waits, before);
  }

  std::vector<Stage> take() {
    end_all();
    return std::move(stages_);
  }

 private:
  void add_alone(int i) { stages_.push_back({.queue_index = plan_.queue_index(i), .nodes = {i}}); }
  // For one queue the newest suffices.
  void wait_for(std::vector<int>* waits, int node) const {
    const auto known = std::find_if(waits->begin(), waits->end(),
                                    [&](int w) { return plan_.queue_index(w) == plan_.queue_index(node); });
    if (known == waits->end()) {
      waits->push_back(node);
    } else {
      *known = std::max(*known, node);
    }
  }
  void end(int queue_index) {
    Stage stage = std::exchange(open_[static_cast<size_t>(queue_index)], {});
    stage.captured = stage.nodes.size() >= least_;
    if (stage.captured) return stages_.push_back(std::move(stage));
    for (const int i : stage.nodes) add_alone(i);
  }
  void end_with(int node) {
    const Stage& stage = open_[static_cast<size_t>(plan_.queue_index(node))];
    if (!stage.nodes.empty() && stage.nodes.front() <= node) end(stage.queue_index);
  }
  void end_all() {
    for (int queue_index = 0; queue_index < static_cast<int>(open_.size()); ++queue_index) end(queue_index);
  }

  const Plan& plan_;
  const QueuePlan& queues_;
  const size_t least_;
  std::vector<Stage> open_;  // by queue
  std::vector<Stage> stages_;
};

}  // namespace

// Work deferred until its stage ends comes after nodes of other queues that do not depend on it, and before all that
// do: a wait that implies that a node has passed has also ended that node's stage.
std::vector<Stage> make_stages(const Plan& plan, const QueuePlan& queues, const std::vector<Capturable>& nodes,
                               size_t least) {
  Stager stager(plan, queues, std::max<size_t>(least, 1));
  for (int i = 0; i < plan.size(); ++i) stager.add(i, !nodes[static_cast<size_t>(i)].apart);
  std::vector<Stage> stages = stager.take();
  for (Stage& stage : stages) {
    if (!stage.captured) continue;
    std::set<const Value*> touched;
    for (const int i : stage.nodes) {
      const auto& values = nodes[static_cast<size_t>(i)].touches;
      touched.insert(values.begin(), values.end());
    }
    touched.erase(nullptr);
    stage.values.assign(touched.begin(), touched.end());
  }
  return stages;
}

}  // namespace anabranch
