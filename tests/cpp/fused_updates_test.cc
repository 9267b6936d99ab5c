// Updates of many parameters as one op: what it refuses of gradients that are taken as they come.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "opdef/op_def.h"

namespace anabranch {
namespace {

using testing::HasSubstr;

// fused_sgd of two parameters [3], the second one of them divided by a Scale.
struct Fused {
  ir::Op op;
  std::vector<Meta> ins = std::vector<Meta>(7);

  Fused() {
    op.type = "fused_sgd";
    op.inputs = {{"Param", {"p", "q"}}, {"Grad", {"dp", "dq"}}, {"LearningRate", {"r", "r"}}, {"Scale", {"s"}}};
    op.outputs = {{"ParamOut", {"p", "q"}}};
    op.attrs["scale_of"] = std::vector<int32_t>{-1, 0};
    for (Meta& m : ins) m.shape = {3};
    for (Meta* number : {&ins[4], &ins[5], &ins[6]}) number->shape = {1};
    for (Meta* grad : {&ins[2], &ins[3]}) grad->dtype = DType::kFloat16;
  }

  std::string refused() const {
    const OpDef& def = find_op(op.type);
    InferContext c(def, op, true);
    c.ins = ins;
    try {
      def.run_infer(c);
    } catch (const Error& e) {
      return e.message();
    }
    return "";
  }
};

TEST(FusedUpdates, TakeGradientsOf16BitsAndDivideThem) {
  Fused own;
  EXPECT_EQ(own.refused(), "");
  own.ins[3].dtype = DType::kBFloat16;
  own.ins[2].dtype = DType::kFloat32;
  EXPECT_EQ(own.refused(), "");
}

TEST(FusedUpdates, RefuseOtherGradients) {
  Fused own;
  own.ins[3].dtype = DType::kFloat64;
  EXPECT_THAT(own.refused(), HasSubstr("Param q and Grad dq must have the same shape and dtype, got [3] of float32"));
  own = Fused();
  own.op.inputs[3].args.clear();
  own.op.attrs["scale_of"] = std::vector<int32_t>();
  own.ins.pop_back();
  EXPECT_THAT(own.refused(), HasSubstr("Param p and Grad dp must have the same shape and dtype"));
  own = Fused();
  own.ins[0].dtype = own.ins[2].dtype = DType::kFloat64;
  EXPECT_THAT(own.refused(), HasSubstr("Param p must be float32 if scale_of is given, got float64"));
}

TEST(FusedUpdates, RefuseOtherScales) {
  Fused own;
  own.ins[6].shape = {2};
  EXPECT_THAT(own.refused(), HasSubstr("Scale s must have 1 element of float32, got a LOD_TENSOR [2] of float32"));
  own = Fused();
  own.ins[6].dtype = DType::kFloat16;
  EXPECT_THAT(own.refused(), HasSubstr("Scale s must have 1 element of float32, got a LOD_TENSOR [1] of float16"));
  for (const int32_t wrong : {-2, 1}) {
    own = Fused();
    own.op.attrs["scale_of"] = std::vector<int32_t>{wrong, 0};
    EXPECT_THAT(own.refused(),
                HasSubstr("scale_of must name one of 1 entries of Scale or be -1, got " + std::to_string(wrong)));
  }
  own = Fused();
  own.op.attrs["scale_of"] = std::vector<int32_t>{0};
  EXPECT_THAT(own.refused(), HasSubstr("scale_of must have one entry for each of 2 parameters, got 1"));
  own.op.attrs["scale_of"] = std::vector<int32_t>();
  EXPECT_THAT(own.refused(), HasSubstr("got 0, with 1 of Scale"));
}

TEST(FusedUpdates, RefuseThemOnTheCpu) {
  for (const char* type : {"fused_sgd", "fused_momentum", "fused_adam"}) {
    Fused own;
    own.op.type = type;
    const OpDef& def = find_op(type);
    for (const AttrDef& attr : def.attrs()) own.op.attrs.try_emplace(attr.name, attr.value);
    for (const SlotDef& slot : def.outputs()) own.op.set_output(slot.name, {"p", "q"});
    try {
      def.kernel(DType::kFloat32)(KernelArgs(def, own.op, DType::kFloat32, {}));
      ADD_FAILURE() << type;
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
      EXPECT_THAT(e.message(), HasSubstr("scale_of must be empty on the CPU, got 2 entries"));
    }
  }
}

}  // namespace
}  // namespace anabranch
