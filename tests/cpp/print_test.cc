#include "ir/print.h"

#include <gtest/gtest.h>

namespace anabranch::ir {
namespace {

ProgramRef make_program() {
  auto program = Program::make();
  Block& b = program->global_block();
  Var x;
  x.name = "x";
  x.shape = {kUnknown, 13};
  x.is_data = x.need_check_feed = x.stop_gradient = true;
  b.create_var(x);
  Var w;
  w.name = "w";
  w.shape = {13, 1};
  w.persistable = w.is_parameter = true;
  b.create_var(w);
  auto mul = std::make_shared<Op>();
  mul->type = "mul";
  mul->inputs = {{"X", {"x"}}, {"Y", {"w"}}};
  mul->outputs = {{"Out", {"y"}}, {"None", {}}};
  mul->attrs = {{"x_num_col_dims", int32_t{1}}, {"op_role", int32_t{0}}};
  mul->made_at = {"train.py", 7, "<module>", "y = mul(x, w)", {}};
  b.push_op(mul);
  auto cond = std::make_shared<Op>();
  cond->type = "conditional_block";
  cond->inputs = {{"Input", {"x", "w"}}};
  cond->attrs = {{"sub_block", BlockRef{1}}};
  b.push_op(cond);
  program->create_block(0);
  program->create_block(0).forward_block = 1;
  return program;
}

TEST(Print, OneLineAVariableOneLineAnOp) {
  EXPECT_EQ(to_text(*make_program()),
            "block 0\n"
            "  var x : float32 [-1, 13] data checked stop_gradient\n"
            "  param w : float32 [13, 1] persistable\n"
            "  #0 Out=y = mul(X=x, Y=w) {x_num_col_dims=1}\n"
            "  #1 conditional_block(Input=[x, w]) {sub_block=block 1}\n"
            "    block 1 in block 0\n"
            "block 2 in block 0, gradient of block 1\n");
}

TEST(Print, DetailsShowRolesAndLines) {
  const auto program = make_program();
  EXPECT_EQ(to_text(*program->global_block().ops()[0], true),
            "Out=y = mul(X=x, Y=w) {op_role=0, x_num_col_dims=1}  made at train.py:7: y = mul(x, w)");
}

TEST(Print, ABlockThatHoldsItselfEnds) {
  auto program = make_program();
  program->block(1).push_op(std::make_shared<Op>(*program->global_block().ops()[1]));
  EXPECT_NE(to_text(*program).find("block 2"), std::string::npos);
}

}  // namespace
}  // namespace anabranch::ir
