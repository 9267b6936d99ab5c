// The language of declarations: what follows from a forward op, what one op takes from another, what is refused.
#include "opdef/op_def.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "opdef/append_op.h"

namespace anabranch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

Kernel nothing(const KernelArgs&) {
  return [](KernelContext&) {};
}

void at_most_three(const int32_t& v) { AB_CHECK(v <= 3, InvalidArgument, "times must be at most 3, got {}", v); }

// Gradient ops stand before their forward ops: the order of declarations does not matter.
AB_GRAD(test_twice_grad).cpu_any(nothing);
AB_GRAD(test_twice).grad_reads({"X", "Out@GRAD"}).grad_to({"Out@GRAD"}).cpu_any(nothing);
AB_OP(test_twice)
    .doc("Out = X, times rows of it.")
    .in("X", "[rows, columns] float")
    .in_optional_list("Rest", "not read")
    .out("Out", "[times rows, columns]")
    .out_intermediate("Mask", "[rows]")
    .attr<int32_t>("times", 2, "copies", at_most_three)
    .ignores({"use_cudnn"})
    .ignores("is_test", true)
    .images({"X", "Out"}, "blocked")
    .flops([](const WorkContext& c) { return c.times({"X"}) * elems_of(c.out("Out")); })
    .infer([](InferContext& c) {
      Shape out = c.in("X").shape;
      AB_CHECK(out.rank() == 2, ShapeMismatch, "X must have 2 axes, got {}", out.str());
      out.set(0, out[0] == kUnknown ? kUnknown : out[0] * c.attr<int32_t>("times"));
      c.set_out("Out", out, c.in("X").dtype);
    })
    .grad_reads({"X", "Rest"}, {"Mask"})
    .grad_to({"X"})
    .cpu_any(nothing);

AB_OP(test_like)
    .like(ab_op_test_twice)
    .doc("As test_twice.")
    .effects(kEngineOnly)
    .no_grad("for tests")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      AB_CHECK(op.attr<int32_t>("times") != 1, Unsupported, "times must not be 1");
      return [](KernelContext&) {};
    });

std::vector<std::string> names(const std::vector<SlotDef>& slots) {
  std::vector<std::string> out;
  for (const SlotDef& s : slots) out.push_back(s.name + (s.list ? "*" : "") + (s.optional ? "?" : ""));
  return out;
}

TEST(AbGrad, SlotsAttributesAndReasonFollow) {
  const OpDef& grad = find_op("test_twice_grad");
  EXPECT_THAT(names(grad.inputs()), ElementsAre("X", "Rest*?", "Mask", "Out@GRAD"));
  EXPECT_THAT(names(grad.outputs()), ElementsAre("X@GRAD"));
  EXPECT_EQ(grad.forward(), &find_op("test_twice"));
  EXPECT_EQ(find_op("test_twice").forward(), nullptr);
  ASSERT_NE(grad.find_attr("times"), nullptr);
  EXPECT_THROW(grad.find_attr("times")->check(Attr(int32_t{4})), Error);
  EXPECT_NO_THROW(grad.find_attr("times")->check(Attr(int32_t{3})));
  EXPECT_EQ(std::get<bool>(grad.find_attr("is_test")->value), true);
  EXPECT_EQ(std::get<bool>(grad.find_attr("use_cudnn")->value), false);
  EXPECT_TRUE(grad.has_grad());
  EXPECT_EQ(find_op("test_twice_grad_grad").no_grad_reason(), kNoSecondOrder);
  EXPECT_THAT(names(find_op("test_twice_grad_grad").outputs()), ElementsAre("Out@GRAD@GRAD"));
  ASSERT_EQ(grad.images().size(), 1u);
  EXPECT_THAT(grad.images()[0].slots, ElementsAre("X", "X@GRAD", "Out@GRAD"));
  EXPECT_EQ(grad.images()[0].attr, "blocked");
}

TEST(AbGrad, TheMakerNamesTheSameSlots) {
  ir::Op op;
  op.type = "test_twice";
  op.inputs = {{"X", {"x"}}, {"Rest", {}}};
  op.outputs = {{"Out", {"y"}}, {"Mask", {"m"}}};
  op.attrs["times"] = int32_t{3};
  const auto program = ir::Program::make();
  GradContext g(op, program->global_block(), [](const std::string&) { return true; });
  find_op("test_twice").run_grad(g);
  ASSERT_EQ(g.ops.size(), 1u);
  EXPECT_EQ(g.ops[0]->type, "test_twice_grad");
  EXPECT_THAT(g.ops[0]->input("X"), ElementsAre("x"));
  EXPECT_THAT(g.ops[0]->input("Mask"), ElementsAre("m"));
  EXPECT_THAT(g.ops[0]->input("Out@GRAD"), ElementsAre(std::string("y@GRAD") + kGradientMark));
  EXPECT_THAT(g.ops[0]->output("X@GRAD"), ElementsAre(std::string("x@GRAD") + kGradientMark));
  EXPECT_EQ(g.ops[0]->attr<int32_t>("times"), 3);
}

// Shapes by slot; what the op says about them, empty when it takes them.
std::string infer(const std::string& type, std::map<std::string, Shape> ins, const std::vector<std::string>& outs,
                  std::map<std::string, Shape>* made = nullptr) {
  ir::Op op;
  op.type = type;
  std::vector<Meta> metas;
  for (const auto& [slot, shape] : ins) {
    op.inputs.push_back({slot, {slot}});
    Meta& m = metas.emplace_back();
    m.shape = shape;
  }
  for (const auto& slot : outs) op.outputs.push_back({slot, {slot}});
  op.attrs["times"] = int32_t{2};
  InferContext c(find_op(type), op, true);
  for (int run = 0; run < 2; ++run) {  // what the first one found is used again
    for (size_t i = 0; i < metas.size(); ++i) c.ins[i] = metas[i];
    try {
      find_op(type).run_infer(c);
    } catch (const Error& e) {
      return e.message();
    }
  }
  for (size_t i = 0; i < outs.size() && made; ++i) (*made)[outs[i]] = c.outs[i].shape;
  return "";
}

TEST(InferGradient, TakesTheShapeOfTheInput) {
  std::map<std::string, Shape> made;
  EXPECT_EQ(
      infer("test_twice_grad", {{"X", {3, 4}}, {"Rest", {1}}, {"Mask", {3}}, {"Out@GRAD", {6, 4}}}, {"X@GRAD"}, &made),
      "");
  EXPECT_EQ(made["X@GRAD"], (Shape{3, 4}));
}

TEST(InferGradient, ComparesWithWhatTheForwardOpGives) {
  EXPECT_EQ(infer("test_twice_grad", {{"X", {3, 4}}, {"Mask", {3}}, {"Out@GRAD", {5, 4}}}, {"X@GRAD"}),
            "test_twice_grad: Out@GRAD must be [6, 4], as in the forward op, got [5, 4]");
  EXPECT_EQ(infer("test_twice_grad", {{"X", {3}}, {"Mask", {3}}, {"Out@GRAD", {6}}}, {"X@GRAD"}),
            "test_twice_grad: X must have 2 axes, got [3]");
}

TEST(InferGradient, OfAnElementwiseOpFollowsTheOutput) {
  std::map<std::string, Shape> made;
  EXPECT_EQ(infer("relu_grad", {{"Out", {3, 4}}, {"Out@GRAD", {3, 4}}}, {"X@GRAD"}, &made), "");
  EXPECT_EQ(made["X@GRAD"], (Shape{3, 4}));
  EXPECT_THAT(infer("relu_grad", {{"Out", {3, 4}}, {"Out@GRAD", {4, 3}}}, {"X@GRAD"}),
              StartsWith("relu_grad: Out@GRAD"));
  EXPECT_EQ(infer("ceil_grad", {{"Out@GRAD", {2, 5}}}, {"X@GRAD"}, &made), "");
  EXPECT_EQ(made["X@GRAD"], (Shape{2, 5}));
}

TEST(OpDefLike, KeepsFlagsAndChecks) {
  const OpDef& like = find_op("test_like");
  EXPECT_THAT(names(like.inputs()), ElementsAre("X", "Rest*?"));
  EXPECT_TRUE(like.find_output("Mask")->intermediate);
  EXPECT_THROW(like.find_attr("times")->check(Attr(int32_t{4})), Error);
  EXPECT_EQ(like.doc(), "As test_twice.");
}

// They lead to the variable that the seed of a loss stands for.
TEST(Traits, MeansAreKnown) {
  EXPECT_TRUE(find_op("mean").is(kMean));
  EXPECT_TRUE(find_op("reduce_mean").is(kMean));
  EXPECT_FALSE(find_op("reduce_sum").is(kMean));
}

// The fused forms of updates and of batch_norm refuse what their single forms refuse.
TEST(OpDefLike, FusedFormsKeepTheChecksOfSingleOnes) {
  for (const auto& [fused, single] : {std::pair("fused_batch_norm_act", "batch_norm"), std::pair("fused_adam", "adam"),
                                      std::pair("fused_momentum", "momentum"), std::pair("fused_sgd", "sgd")}) {
    for (const AttrDef& attr : find_op(single).attrs()) {
      const AttrDef* copy = find_op(fused).find_attr(attr.name);
      ASSERT_NE(copy, nullptr) << fused << " " << attr.name;
      EXPECT_EQ(static_cast<bool>(copy->check), static_cast<bool>(attr.check)) << fused << " " << attr.name;
    }
  }
}

TEST(Ignores, RequiresADefaultForUnknownNames) {
  OpDef def("x");
  EXPECT_THROW(def.ignores({"no_such_attribute"}), Error);
  EXPECT_NO_THROW(def.ignores("no_such_attribute", 1.0f));
  EXPECT_EQ(def.attrs().size(), 1u);
}

TEST(EngineOnly, IsRefusedInPrograms) {
  const auto program = ir::Program::make();
  ir::Var x;
  x.name = "x";
  x.shape = {2, 3};
  program->global_block().create_var(x);
  try {
    append_op(program->global_block(), {"test_like", {{"X", {"x"}}}, {{"Out", {"y"}}}, {}});
    FAIL() << "it was appended";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported);
    EXPECT_THAT(e.message(), HasSubstr("for passes and the engine only"));
  }
  EXPECT_TRUE(program->global_block().ops().empty());
}

TEST(Factories, ErrorsNameTheOp) {
  ir::Op op;
  op.type = "test_like";
  op.attrs["times"] = int32_t{1};
  const OpDef& def = find_op("test_like");
  try {
    def.kernel(DType::kFloat32)(KernelArgs(def, op, DType::kFloat32, {}));
    FAIL() << "there is a kernel";
  } catch (const Error& e) {
    EXPECT_EQ(e.message(), "test_like: times must not be 1");
  }
}

TEST(InOp, NamesTheNearestOpOnce) {
  Error e(ErrorKind::kInternal, "text");
  e.in_op("inner").in_op("outer");
  EXPECT_EQ(e.message(), "inner: text");
  EXPECT_EQ(Error(ErrorKind::kInternal, "mul: text").in_op("mul").message(), "mul: text");
}

}  // namespace
}  // namespace anabranch
