#include "ir/versions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/serialize.h"
#include "ir/well_formed.h"

namespace anabranch::ir {
namespace {

using testing::HasSubstr;

class ReadVersions : public testing::Test {
 protected:
  // #0 makes x, #1 and #2 write it again, #3 reads what #1 made of it.
  ReadVersions() {
    for (const char* name : {"x", "y", "z"}) {
      Var var;
      var.name = name;
      block().create_var(var);
    }
    for (int i = 0; i < 3; ++i) push("relu", "y", "x");
    reader_ = push("relu", "x", "z", [](Op& op) { set_version_reads(op, {{"X", 0, 2}}); });
  }
  Block& block() { return program_->global_block(); }
  OpRef make(const std::string& type, const std::string& in, const std::string& out) {
    auto op = std::make_shared<Op>();
    op->type = type;
    op->inputs = {{"X", {in}}};
    op->outputs = {{"Out", {out}}};
    return op;
  }
  OpRef push(const std::string& type, const std::string& in, const std::string& out,
             const std::function<void(Op&)>& with = {}) {
    auto op = make(type, in, out);
    if (with) with(*op);
    return block().push_op(op);
  }
  int read() const { return version_read(*reader_, "X", 0).value(); }
  std::string fault(std::vector<std::string> texts) {
    reader_->attrs[kReadVersions] = std::move(texts);
    try {
      check_well_formed(*program_);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  }

  ProgramRef program_ = Program::make();
  OpRef reader_;
};

TEST_F(ReadVersions, AreOfOneArgument) {
  EXPECT_EQ(version_read(*reader_, "X", 0), 2);
  EXPECT_EQ(version_read(*reader_, "X", 1), std::nullopt);
  EXPECT_EQ(version_read(*reader_, "Y", 0), std::nullopt);
  EXPECT_EQ(version_read(*block().ops()[0], "X", 0), std::nullopt);
  EXPECT_EQ(writes_before(block(), "x", 3), 3);
  EXPECT_EQ(writes_before(block(), "x", 1), 1);
}

TEST_F(ReadVersions, StayRightWhenOpsComeAndGo) {
  block().insert_op(0, make("relu", "y", "x"));
  EXPECT_EQ(read(), 3);
  block().insert_op(3, make("relu", "y", "x"));  // after the version that is read
  EXPECT_EQ(read(), 3);
  block().insert_op(1, make("relu", "x", "y"));  // writes another variable
  EXPECT_EQ(read(), 3);
  block().remove_ops(4, 5);
  EXPECT_EQ(read(), 3);
  block().remove_ops(0, 3);  // two that write x, one that does not
  EXPECT_EQ(read(), 1);
  EXPECT_NO_THROW(check_well_formed(*program_));
}

TEST_F(ReadVersions, GoThroughCopiesAndFiles) {
  for (const ProgramRef& copy : {program_->clone(), parse_program(serialize(*program_))}) {
    Block& there = copy->global_block();
    EXPECT_EQ(version_read(*there.ops()[3], "X", 0), 2);
    there.remove_ops(0, 1);
    EXPECT_EQ(version_read(*there.ops()[2], "X", 0), 1);
  }
  EXPECT_EQ(read(), 2);
}

TEST_F(ReadVersions, MustExist) {
  EXPECT_EQ(fault({"X 0 3"}), "");
  EXPECT_THAT(fault({"X 0 4"}), HasSubstr("must be at most 3, got 4"));
  EXPECT_THAT(fault({"X 1 1"}), HasSubstr("got argument 1 of slot X"));
  EXPECT_THAT(fault({"Y 0 1"}), HasSubstr("got argument 0 of slot Y"));
  for (const char* bad : {"", "X", "X 0", "X 0 ", "X 0 -1", "X -1 0", "X 0 1 2", "X a 1", "X 0 99999999999"}) {
    EXPECT_THAT(fault({bad}), HasSubstr("must hold strings")) << bad;
  }
}

}  // namespace
}  // namespace anabranch::ir
