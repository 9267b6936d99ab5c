// Stages: every edge of the plan is kept when stretches of it are launched as one.
#include "exec/stages.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace anabranch {
namespace {

struct Drawn {
  Plan plan;
  std::vector<Capturable> nodes;
};

Drawn draw_plan(uint32_t seed, int nodes, int queue_count) {
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
  std::vector<NodeSpec> specs(static_cast<size_t>(nodes));
  std::vector<Capturable> capturable(specs.size());
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].kernel = Kernel([](KernelContext&) {});
    specs[i].queue_index = draw(8) == 0 ? kHost : draw(queue_count);
    for (int k = draw(3); k > 0; --k) specs[i].reads.push_back(draw(nodes / 2));
    specs[i].writes.push_back(draw(nodes / 2));
    if (draw(4) == 0) capturable[i].apart = "by chance";
  }
  return {Plan(std::move(specs)), std::move(capturable)};
}

class Order {
 public:
  Order(const Plan& plan, const QueuePlan& queues, const std::vector<Stage>& stages)
      : stage_of_(static_cast<size_t>(plan.size())), before_(stages.size(), std::vector<char>(stages.size(), 0)) {
    for (size_t s = 0; s < stages.size(); ++s) {
      for (const int i : stages[s].nodes) stage_of_[static_cast<size_t>(i)] = s;
    }
    for (size_t t = 0; t < stages.size(); ++t) {
      for (size_t s = 0; s < t; ++s) {
        if (stages[s].queue_index == stages[t].queue_index || stages[s].queue_index == kHost) pass(s, t);
      }
      for (const int node : waits(queues, stages[t])) {
        const size_t s = stage_of_[static_cast<size_t>(node)];
        launched_ = launched_ && s < t;
        pass(s, t);
      }
    }
  }
  // An event is recorded before any wait for it.
  bool events_are_launched() const { return launched_; }
  bool keeps(int from, int to) const {
    const size_t s = stage_of_[static_cast<size_t>(from)], t = stage_of_[static_cast<size_t>(to)];
    return s == t ? from < to : before_[s][t] != 0;
  }

 private:
  static std::vector<int> waits(const QueuePlan& queues, const Stage& stage) {
    if (stage.captured) return stage.waits;
    const auto alone = queues.waits(stage.nodes[0]);
    return {alone.begin(), alone.end()};
  }
  void pass(size_t from, size_t to) {
    before_[from][to] = 1;
    for (size_t s = 0; s < before_.size(); ++s) before_[s][to] |= before_[s][from];
  }

  std::vector<size_t> stage_of_;
  std::vector<std::vector<char>> before_;  // of stages: the first has passed when the second starts
  bool launched_ = true;
};

TEST(Stages, KeepEveryEdgeOfThePlan) {
  size_t stages_in_all = 0, nodes_in_all = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const auto [plan, nodes] = draw_plan(seed, 30, 1 + static_cast<int>(seed % 4));
    const QueuePlan queues(plan);
    const std::vector<Stage> stages = make_stages(plan, queues, nodes, 1 + seed % 3);
    const Order order(plan, queues, stages);
    EXPECT_TRUE(order.events_are_launched()) << "seed " << seed;
    std::vector<int> all;
    for (const Stage& stage : stages) {
      all.insert(all.end(), stage.nodes.begin(), stage.nodes.end());
      EXPECT_GE(stage.nodes.size(), stage.captured ? 1 + seed % 3 : 1);
      if (!stage.captured) {
        EXPECT_EQ(stage.nodes.size(), 1u);
        continue;
      }
      for (const int i : stage.nodes) {
        EXPECT_EQ(plan.queue_index(i), stage.queue_index);
        EXPECT_EQ(nodes[static_cast<size_t>(i)].apart, nullptr);
      }
    }
    std::sort(all.begin(), all.end());
    for (int i = 0; i < plan.size(); ++i) {
      ASSERT_EQ(all[static_cast<size_t>(i)], i) << "seed " << seed;
      for (const int next : plan.successors(i)) EXPECT_TRUE(order.keeps(i, next)) << i << " " << next << " " << seed;
    }
    stages_in_all += stages.size();
    nodes_in_all += all.size();
  }
  EXPECT_LT(stages_in_all, nodes_in_all * 3 / 4);
}

TEST(Stages, OneQueueIsOneGraph) {
  std::vector<NodeSpec> specs(5);
  for (NodeSpec& spec : specs) spec.queue_index = 0;
  Value a, b;
  std::vector<Capturable> nodes(specs.size());
  nodes[1].touches = {&a, nullptr, &b};
  nodes[4].touches = {&b};
  const Plan plan(std::move(specs));
  const auto stages = make_stages(plan, QueuePlan(plan), nodes, 2);
  ASSERT_EQ(stages.size(), 1u);
  EXPECT_EQ(stages[0].nodes, (std::vector<int>{0, 1, 2, 3, 4}));
  EXPECT_EQ(stages[0].values.size(), 2u);
}

TEST(StageGraph, FitsWhileAddressesAndSignaturesAreUnchanged) {
  Value tensor, sparse;
  tensor.as<Tensor>().resize(Shape{4, 2}, DType::kFloat32);
  auto& rows = sparse.as<SelectedRows>();
  rows.height = 9;
  rows.value.resize(Shape{4, 2}, DType::kFloat32);
  StageGraph graph;
  int workspace = 0, other = 0;
  EXPECT_FALSE(graph.fits(&workspace));
  const auto record = [&] { graph.record({&tensor, &sparse}, &workspace); };
  record();
  EXPECT_TRUE(graph.fits(&workspace));
  EXPECT_FALSE(graph.fits(&other));
  tensor.as<Tensor>().resize(Shape{2, 4}, DType::kFloat32);
  EXPECT_FALSE(graph.fits(&workspace));
  record();
  EXPECT_TRUE(graph.fits(&workspace));
  rows.value.resize(Shape{3, 2}, DType::kFloat32);
  EXPECT_FALSE(graph.fits(&workspace)) << "the number of sparse rows";
  record();
  Tensor moved;
  moved.resize(Shape{2, 4}, DType::kFloat32);
  tensor.as<Tensor>() = std::move(moved);
  EXPECT_FALSE(graph.fits(&workspace)) << "other memory";
  record();
  graph.drop();
  EXPECT_FALSE(graph.fits(&workspace));
}

}  // namespace
}  // namespace anabranch
