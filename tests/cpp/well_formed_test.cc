#include "ir/well_formed.h"

#include <gtest/gtest.h>

namespace anabranch::ir {
namespace {

class WellFormed : public testing::Test {
 protected:
  WellFormed() {
    for (const char* name : {"x", "y"}) {
      Var var;
      var.name = name;
      block().create_var(var);
    }
    op_ = std::make_shared<Op>();
    op_->type = "relu";
    op_->inputs = {{"X", {"x"}}};
    op_->outputs = {{"Out", {"y"}}};
    block().push_op(op_);
  }
  Block& block() { return program_->global_block(); }
  // Message of the error that the check raises.
  std::string fault() {
    try {
      check_well_formed(*program_);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  ProgramRef program_ = Program::make();
  OpRef op_;
};

TEST_F(WellFormed, ASoundProgramPasses) { EXPECT_EQ(fault(), ""); }

TEST_F(WellFormed, ArgumentsMustBeVisible) {
  op_->set_input("X", {kEmptyVar});
  EXPECT_EQ(fault(), "");
  op_->set_input("X", {"absent"});
  EXPECT_NE(fault().find("variable absent of slot X"), std::string::npos) << fault();
  EXPECT_NE(fault().find("#0 relu -> y"), std::string::npos) << fault();
}

TEST_F(WellFormed, SubBlocksLeadForward) {
  program_->create_block(0);
  op_->attrs["sub_block"] = BlockRef{1};
  EXPECT_EQ(fault(), "");
  for (const int bad : {-1, 0, 2, 1 << 30}) {
    op_->attrs["sub_block"] = BlockRef{bad};
    EXPECT_NE(fault().find("sub-block"), std::string::npos) << bad;
  }
}

TEST_F(WellFormed, ForwardBlocksLeadBackward) {
  program_->create_block(0).forward_block = 1;
  EXPECT_NE(fault().find("forward block"), std::string::npos);
}

TEST_F(WellFormed, TheGlobalBlockIsNotAForwardBlock) {
  program_->create_block(0).forward_block = 0;
  EXPECT_NE(fault().find("forward block"), std::string::npos);
}

TEST_F(WellFormed, ABlockBelongsToOneOp) {
  for (int i = 0; i < 40; ++i) program_->create_block(i);
  const auto naming = [](int idx) {
    auto op = std::make_shared<Op>();
    op->type = "conditional_block";
    op->attrs["sub_block"] = BlockRef{idx};
    return op;
  };
  for (int i = 0; i < 40; ++i) program_->block(i).push_op(naming(i + 1));
  EXPECT_EQ(fault(), "");
  program_->block(3).push_op(naming(4));
  EXPECT_NE(fault().find("sub-block 4 belongs to another op"), std::string::npos) << fault();
}

TEST_F(WellFormed, NestingHasALimit) {
  for (int i = 0; i < 200; ++i) program_->create_block(i);
  EXPECT_NE(fault().find("deeper than 64"), std::string::npos) << fault();
}

TEST_F(WellFormed, OpsThatRunEachOtherHaveALimit) {
  for (int i = 0; i < 70; ++i) program_->create_block(0);
  for (int i = 0; i < 70; ++i) {
    auto op = std::make_shared<Op>();
    op->type = "conditional_block";
    op->attrs["sub_block"] = BlockRef{i + 1};
    program_->block(i).push_op(op);
  }
  EXPECT_NE(fault().find("deeper than 64"), std::string::npos) << fault();
}

TEST_F(WellFormed, TheRoleMustBeANumber) {
  op_->attrs["op_role"] = std::string("backward");
  EXPECT_NE(fault().find("op_role"), std::string::npos);
}

TEST_F(WellFormed, NamesHaveNoZeroByte) {
  Var var;
  var.name = std::string("a\0b", 3);
  block().create_var(var);
  EXPECT_NE(fault().find("legal name"), std::string::npos);
}

}  // namespace
}  // namespace anabranch::ir
