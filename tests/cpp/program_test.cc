#include "ir/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anabranch::ir {
namespace {

Var make_var(const std::string& name, const Shape& shape = {1}) {
  Var var;
  var.name = name;
  var.shape = shape;
  return var;
}

OpRef make_op(const std::string& type, const std::string& in, const std::string& out) {
  auto op = std::make_shared<Op>();
  op->type = type;
  op->inputs = {{"X", {in}}};
  op->outputs = {{"Out", {out}}};
  return op;
}

OpRef block_op(int sub) {
  auto op = make_op("conditional_block", "a", "b");
  op->attrs["sub_block"] = BlockRef{sub};
  return op;
}

TEST(Program, CreatingAVariableTwiceGivesTheSameOne) {
  auto program = Program::make();
  Block& b = program->global_block();
  const VarRef x = b.create_var(make_var("x", {kUnknown, 3}));
  EXPECT_EQ(b.create_var(make_var("x", {5, 3})), x);
  EXPECT_THROW(b.create_var(make_var("x", {5, 4})), Error);
  Var other = make_var("x", {5, 3});
  other.dtype = DType::kInt64;
  EXPECT_THROW(b.create_var(other), Error);
  EXPECT_THROW(b.create_var(make_var("")), Error);
  EXPECT_THROW(b.create_var(make_var(kEmptyVar)), Error);
}

TEST(Program, NamesAreSeenThroughParentsAndForwardBlocks) {
  auto program = Program::make();
  program->global_block().create_var(make_var("outer"));
  Block& body = program->create_block(0);
  body.create_var(make_var("inner"));
  Block& grad = program->create_block(0);
  grad.forward_block = body.idx();
  EXPECT_NE(body.find_var_recursive("outer"), nullptr);
  EXPECT_NE(grad.find_var_recursive("inner"), nullptr);
  EXPECT_EQ(grad.find_var("inner"), nullptr);
  EXPECT_EQ(program->global_block().find_var_recursive("inner"), nullptr);
}

// Each level has two ways up: a search that walked all paths would take 2^60 steps.
TEST(Program, LookupVisitsEachBlockOnce) {
  auto program = Program::make();
  for (int i = 0; i < 60; ++i) {
    Block& block = program->create_block(i);
    block.forward_block = i > 0 ? i - 1 : i;
  }
  EXPECT_EQ(program->block(60).find_var_recursive("nowhere"), nullptr);
}

TEST(Program, RenamingAVariableRenamesItsUses) {
  auto program = Program::make();
  Block& b = program->global_block();
  for (const char* name : {"x", "y"}) b.create_var(make_var(name));
  b.push_op(make_op("relu", "x", "y"));
  b.rename_var("x", "z");
  EXPECT_EQ(b.ops()[0]->input("X")[0], "z");
  EXPECT_EQ(b.find_var("x"), nullptr);
  EXPECT_EQ(b.find_var("z")->name, "z");
  EXPECT_THROW(b.rename_var("z", "y"), Error);
  EXPECT_THROW(b.rename_var("absent", "n"), Error);
}

TEST(Program, ChangesRaiseTheVersion) {
  auto program = Program::make();
  uint64_t version = program->version();
  const auto changed = [&] { return std::exchange(version, program->version()) != program->version(); };
  Block& b = program->global_block();
  b.create_var(make_var("x"));
  EXPECT_TRUE(changed());
  b.create_var(make_var("x"));
  EXPECT_FALSE(changed());
  b.push_op(make_op("relu", "x", "x"));
  EXPECT_TRUE(changed());
  b.remove_ops(0, 1);
  EXPECT_TRUE(changed());
  b.remove_var("x");
  EXPECT_TRUE(changed());
}

TEST(Program, OpsAreInsertedWithinTheList) {
  auto program = Program::make();
  Block& b = program->global_block();
  b.push_op(make_op("a", "x", "y"));
  b.insert_op(0, make_op("b", "x", "y"));
  EXPECT_EQ(b.ops()[0]->type, "b");
  EXPECT_THROW(b.insert_op(3, make_op("c", "x", "y")), Error);
  EXPECT_THROW(b.remove_ops(1, 3), Error);
  EXPECT_THROW(b.remove_ops(2, 1), Error);
}

TEST(Program, ClonesAreDeep) {
  auto program = Program::make();
  program->random_seed = 9;
  Block& b = program->global_block();
  b.create_var(make_var("x"));
  b.push_op(make_op("relu", "x", "x"));
  program->create_block(0).forward_block = 0;
  const auto copy = program->clone();
  EXPECT_NE(copy->id(), program->id());
  EXPECT_EQ(copy->random_seed, 9);
  EXPECT_EQ(copy->num_blocks(), 2);
  EXPECT_EQ(copy->block(1).forward_block, 0);
  copy->global_block().ops()[0]->type = "tanh";
  copy->global_block().find_var("x")->persistable = true;
  EXPECT_EQ(b.ops()[0]->type, "relu");
  EXPECT_FALSE(b.find_var("x")->persistable);
}

TEST(Program, DropsUnusedBlocks) {
  auto program = Program::make();
  program->create_block(0);                // 1: unused
  program->create_block(0);                // 2: used by block 0
  program->create_block(2);                // 3: used by block 2
  program->create_block(1);                // 4: unused
  Block& grad = program->create_block(0);  // 5: used, gradient of 2
  grad.forward_block = 2;
  program->global_block().push_op(block_op(2));
  program->block(2).push_op(block_op(3));
  program->global_block().push_op(block_op(5));
  program->drop_unused_blocks();
  ASSERT_EQ(program->num_blocks(), 4);
  EXPECT_EQ(program->global_block().ops()[0]->sub_blocks()[0], 1);
  EXPECT_EQ(program->block(1).ops()[0]->sub_blocks()[0], 2);
  EXPECT_EQ(program->global_block().ops()[1]->sub_blocks()[0], 3);
  EXPECT_EQ(&program->block(3), &grad);
  EXPECT_EQ(grad.idx(), 3);
  EXPECT_EQ(grad.forward_block, 1);
  EXPECT_EQ(program->block(2).parent(), 1);
}

}  // namespace
}  // namespace anabranch::ir
