// Waits between queues: sufficient for every edge of the plan, and none that could be left out.
#include "exec/queue_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace anabranch {
namespace {

Plan random_plan(uint32_t seed, int nodes, int queue_count) {
  std::mt19937 random(seed);
  const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint32_t>(below)); };
  std::vector<NodeSpec> specs(static_cast<size_t>(nodes));
  for (NodeSpec& spec : specs) {
    spec.kernel = Kernel([](KernelContext&) {});
    spec.queue_index = draw(queue_count + 1) - 1;
    for (int k = draw(3); k > 0; --k) spec.reads.push_back(draw(nodes / 2));
    spec.writes.push_back(draw(nodes / 2));
  }
  return Plan(std::move(specs));
}

// before[i][j]: node i has passed when node j starts, in any order of the queues.
std::vector<std::vector<char>> orders(const Plan& plan, const QueuePlan& queues, int without_node, int without_wait) {
  const auto n = static_cast<size_t>(plan.size());
  std::vector<std::vector<char>> before(n, std::vector<char>(n, 0));
  const auto pass = [&](size_t from, size_t to) {
    before[from][to] = 1;
    for (size_t i = 0; i < n; ++i) before[i][to] |= before[i][from];
  };
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < j; ++i) {
      const int a = plan.queue_index(static_cast<int>(i)), b = plan.queue_index(static_cast<int>(j));
      if (a == b || a == kHost) pass(i, j);
    }
    const auto waits = queues.waits(static_cast<int>(j));
    for (size_t k = 0; k < waits.size(); ++k) {
      if (static_cast<int>(j) == without_node && static_cast<int>(k) == without_wait) continue;
      pass(static_cast<size_t>(waits[k]), j);
    }
  }
  return before;
}

bool keeps_edges(const Plan& plan, const QueuePlan& queues, int without_node = -1, int without_wait = -1) {
  const auto before = orders(plan, queues, without_node, without_wait);
  for (int i = 0; i < plan.size(); ++i) {
    for (const int next : plan.successors(i)) {
      if (!before[static_cast<size_t>(i)][static_cast<size_t>(next)]) return false;
    }
  }
  return true;
}

TEST(QueuePlan, KeepsEveryEdgeAndWaitsForNothingElse) {
  int waits = 0, of_host = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    Plan plan = random_plan(seed, 24, 1 + static_cast<int>(seed % 4));
    const QueuePlan queues(plan);
    ASSERT_TRUE(keeps_edges(plan, queues)) << "seed " << seed;
    for (int i = 0; i < plan.size(); ++i) {
      const int count = static_cast<int>(queues.waits(i).size());
      for (int k = 0; k < count; ++k) ASSERT_FALSE(keeps_edges(plan, queues, i, k)) << "seed " << seed << " node " << i;
      for (const int at : queues.waits(i)) ASSERT_TRUE(queues.records(at));
      waits += count;
      of_host += plan.queue_index(i) == kHost ? count : 0;
    }
  }
  EXPECT_GT(waits, 1000);
  EXPECT_GT(of_host, 100);
}

TEST(QueuePlan, TheLastNodeOfEachQueueIsRecorded) {
  Plan plan = random_plan(7, 24, 3);
  const QueuePlan queues(plan);
  ASSERT_EQ(queues.last().size(), 3U);
  for (int queue_index = 0; queue_index < 3; ++queue_index) {
    int last = -1;
    for (int i = 0; i < plan.size(); ++i) {
      if (plan.queue_index(i) == queue_index) last = i;
    }
    EXPECT_EQ(queues.last()[static_cast<size_t>(queue_index)], last);
    if (last >= 0) {
      EXPECT_TRUE(queues.records(last));
    }
  }
}

TEST(QueuePlan, APlanOfTheCpuHasNone) {
  std::vector<NodeSpec> specs(3);
  for (NodeSpec& spec : specs) spec.writes = {0};
  const Plan plan(std::move(specs));
  EXPECT_EQ(plan.queue_count(), 0);
  EXPECT_EQ(plan.queue_index(1), kHost);
}

}  // namespace
}  // namespace anabranch
