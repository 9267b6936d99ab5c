#include "ir/op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/var.h"

namespace anabranch::ir {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

Op make_concat() {
  Op op;
  op.type = "concat";
  op.inputs = {{"X", {"a", kEmptyVar, "b"}}};
  op.outputs = {{"Out", {"c"}}};
  return op;
}

TEST(Op, FindsArgumentsBySlot) {
  const Op op = make_concat();
  EXPECT_THAT(op.input("X"), ElementsAre("a", kEmptyVar, "b"));
  EXPECT_THAT(op.input("Y"), IsEmpty());
  EXPECT_THAT(op.input_args(), ElementsAre("a", "b"));
  EXPECT_THAT(op.output_args(), ElementsAre("c"));
}

TEST(Op, RenamesArguments) {
  Op op = make_concat();
  op.rename_input("a", "z");
  op.rename_output("a", "y");
  EXPECT_THAT(op.input_args(), ElementsAre("z", "b"));
  EXPECT_THAT(op.output_args(), ElementsAre("c"));
  op.set_input("X", {"q"});
  op.set_input("AxisTensor", {"k"});
  EXPECT_THAT(op.input_args(), ElementsAre("q", "k"));
}

TEST(Op, ReadsRoles) {
  Op op = make_concat();
  EXPECT_EQ(op.role(), role::kForward);
  op.attrs["op_role"] = int32_t{role::kBackward | role::kLoss};
  op.attrs["op_role_var"] = std::vector<std::string>{"w", "w@GRAD"};
  EXPECT_EQ(op.role(), 257);
  EXPECT_THAT(op.role_vars(), ElementsAre(Pair("w", "w@GRAD")));
  op.attrs["op_role_var"] = std::vector<std::string>{"w"};
  EXPECT_THROW(op.role_vars(), Error);
}

TEST(Op, ListsSubBlocks) {
  Op op = make_concat();
  op.attrs["sub_block"] = BlockRef{2};
  op.attrs["blocks"] = std::vector<BlockRef>{{3}, {4}};
  EXPECT_THAT(op.sub_blocks(), testing::UnorderedElementsAre(2, 3, 4));
}

TEST(Op, DescribesItselfForErrors) {
  Op op = make_concat();
  op.made_at = {"train.py", 41, "mlp", "h = fluid.layers.concat([a, b])", {}};
  EXPECT_EQ(op.describe(12, 0),
            "#12 concat -> c (forward, block 0)  made at train.py:41 in mlp(): h = fluid.layers.concat([a, b])");
  op.made_at = {};
  op.attrs["op_role"] = int32_t{role::kBackward | role::kLoss};
  EXPECT_EQ(op.describe(-1, 1), "concat -> c (backward+loss, block 1)");
}

TEST(Op, MissingAttributesAreNamed) {
  try {
    make_concat().attr<int32_t>("axis");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kNotFound);
    EXPECT_EQ(e.message(), "op concat has no attribute axis");
  }
}

}  // namespace
}  // namespace anabranch::ir
