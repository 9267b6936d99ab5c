// The graphs of the blocks of a program.
#include "graph/body_graphs.h"

#include <gtest/gtest.h>

#include "ir/program.h"

namespace anabranch {
namespace {

// A program of branches that write one variable, as piecewise_decay makes them: how many names are revised while their
// graphs are made.
size_t names_revised(int branches) {
  const auto made = ir::Program::make();
  ir::Program& program = *made;
  ir::Var var{.name = "rate", .shape = Shape{1}, .dtype = DType::kFloat32};
  program.global_block().create_var(var);
  for (int i = 0; i < branches; ++i) {
    ir::Block& block = program.create_block(0);
    var.name = fmt::format("value_{}", i);
    program.global_block().create_var(var);
    for (const std::string& name : {std::string("rate"), std::string(var.name)}) {
      auto op = std::make_shared<ir::Op>();
      op->type = "fill_constant";
      op->outputs = {{"Out", {name}}};
      op->attrs = {{"shape", std::vector<int64_t>{1}}, {"value", 1.0f}, {"dtype", static_cast<int32_t>(var.dtype)}};
      block.push_op(op);
    }
  }
  BodyGraphs graphs(program, BuildStrategy{}, "", 1);
  for (int b = 1; b <= branches; ++b) {
    graphs.of(b);
    EXPECT_TRUE(graphs.is_private(b, fmt::format("value_{}", b - 1)));
    EXPECT_EQ(graphs.is_private(b, "rate"), branches == 1);
  }
  return graphs.revised();
}

TEST(BodyGraphs, WorkGrowsWithTheNumberOfBlocksNotWithItsSquare) {
  EXPECT_EQ(names_revised(1), 2u);
  EXPECT_EQ(names_revised(50), 100u);
  EXPECT_EQ(names_revised(200), 400u);
}

}  // namespace
}  // namespace anabranch
