// The edges, roots and argument positions that a plan derives from its nodes.
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

TEST(Plan, AValueWithoutWritersFollowsTheArgumentsOfEachNode) {
  std::deque<Value> values(3);
  const std::vector<std::vector<Value*>> ins = {{&values[0], &values[1]}, {}, {&values[2]}};
  const std::vector<std::vector<Value*>> outs = {{&values[2]}, {&values[0]}, {}};
  std::vector<NodeSpec> specs(3);
  for (size_t i = 0; i < specs.size(); ++i) {
    specs[i].ins = ins[i];
    specs[i].outs = outs[i];
    specs[i].kernel = [](KernelContext&) {};
  }
  Plan plan(std::move(specs));
  for (int i = 0; i < plan.size(); ++i) {
    const KernelContext& c = plan.node(i).context;
    for (size_t k = 0; k < ins[i].size(); ++k) EXPECT_EQ(c.ins[k], ins[i][k]);
    for (size_t k = 0; k < outs[i].size(); ++k) EXPECT_EQ(c.outs[k], outs[i][k]);
    EXPECT_EQ(c.ins[ins[i].size()], Value::nothing());
    EXPECT_EQ(c.outs[outs[i].size()], Value::nothing());
  }
}

}  // namespace
}  // namespace anabranch
