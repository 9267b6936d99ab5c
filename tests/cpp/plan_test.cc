// What a plan derives from its nodes: edges, roots, where the arguments of a node are.
#include "exec/plan.h"

#include <gtest/gtest.h>

#include <deque>

namespace anabranch {
namespace {

TEST(Plan, EdgesFollowFromEffects) {
  std::vector<NodeSpec> specs(4);
  specs[0].writes = {0};  // writes 0
  specs[1].reads = {0};   // read after write
  specs[2].writes = {0};  // write after read of node 1 and after write of node 0
  specs[3].reads = {1};   // touches another buffer
  for (auto& s : specs) s.kernel = [](KernelContext&) {};
  Plan plan(std::move(specs));
  EXPECT_EQ(plan.roots(), (std::vector<int>{0, 3}));
  EXPECT_EQ(plan.predecessors(1), 1);
  EXPECT_EQ(plan.predecessors(2), 2);
  EXPECT_FALSE(plan.is_chain());
}

TEST(Plan, BehindTheArgumentsOfEachNodeIsAValueThatNobodyWrites) {
  std::deque<Value> values(3);
  std::vector<NodeSpec> specs(3);
  specs[0].ins = {&values[0], &values[1]};
  specs[0].outs = {&values[2]};
  specs[1].outs = {&values[0]};
  specs[2].ins = {&values[2]};
  for (auto& s : specs) s.kernel = [](KernelContext&) {};
  const std::vector<NodeSpec> given = specs;
  Plan plan(std::move(specs));
  for (int i = 0; i < plan.size(); ++i) {
    const KernelContext& c = plan.node(i).context;
    for (size_t k = 0; k < given[i].ins.size(); ++k) EXPECT_EQ(c.ins[k], given[i].ins[k]);
    for (size_t k = 0; k < given[i].outs.size(); ++k) EXPECT_EQ(c.outs[k], given[i].outs[k]);
    EXPECT_EQ(c.ins[given[i].ins.size()], Value::nothing());
    EXPECT_EQ(c.outs[given[i].outs.size()], Value::nothing());
  }
}

}  // namespace
}  // namespace anabranch
