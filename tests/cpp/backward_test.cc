// Gradient ops of small programs: the cases that no recorded program has (backward_records_test.cc).
#include <fmt/format.h>

#include "autodiff/backward.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/flags.h"
#include "ir/print.h"
#include "ir/serialize.h"
#include "ir/versions.h"
#include "ir/well_formed.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Pair;

class SmallBackward : public testing::Test {
 protected:
  ir::Block& block() { return program_->global_block(); }
  std::string var(const std::string& name, const Shape& shape, bool parameter = false) {
    ir::Var v;
    v.name = name;
    v.shape = shape;
    v.is_parameter = v.persistable = parameter;
    v.stop_gradient = !parameter;
    block().create_var(v);
    return name;
  }
  std::string op(const std::string& type, std::vector<ir::Slot> ins, const std::string& out, AttrMap attrs = {}) {
    append_op(block(), {type, std::move(ins), {{"Out", {out}}}, std::move(attrs)});
    return out;
  }
  std::string relu(const std::string& x, const std::string& out) { return op("relu", {{"X", {x}}}, out); }
  std::string add(const std::string& x, const std::string& y, const std::string& out) {
    return op("elementwise_add", {{"X", {x}}, {"Y", {y}}}, out);
  }
  std::string mean(const std::string& x) { return op("mean", {{"X", {x}}}, "loss"); }
  // Types and first outputs of the ops from `first` on.
  std::vector<std::string> ops_from(size_t first) {
    std::vector<std::string> names;
    for (size_t i = first; i < block().ops().size(); ++i) {
      const ir::Op& o = *block().ops()[i];
      names.push_back(fmt::format("{} {}", o.type, fmt::join(o.output_args(), ",")));
    }
    return names;
  }
  std::vector<std::string> versions(size_t index) {
    const ir::Op& o = *block().ops()[index];
    return o.has_attr(ir::kReadVersions) ? o.attr<std::vector<std::string>>(ir::kReadVersions)
                                         : std::vector<std::string>{};
  }
  std::string error_of(const std::string& loss) {
    const std::string before = ir::serialize(*program_);
    try {
      append_backward(*program_, loss, {});
    } catch (const Error& e) {
      EXPECT_EQ(ir::serialize(*program_), before) << "a failed call has changed the program";
      return e.what();
    }
    return "";
  }

  ir::ProgramRef program_ = ir::Program::make();
};

TEST_F(SmallBackward, SeveralUsesAreSummed) {
  var("w", {4, 3}, true);
  mean(add(relu("w", "a"), relu("w", "b"), "c"));
  const auto pairs = append_backward(*program_, "loss", {});
  EXPECT_THAT(pairs, ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_THAT(ops_from(4),
              ElementsAre("fill_constant loss@GRAD", "mean_grad c@GRAD", "elementwise_add_grad a@GRAD,b@GRAD",
                          "relu_grad w@GRAD@RENAME@block0@0", "relu_grad w@GRAD@RENAME@block0@1", "sum w@GRAD"));
  EXPECT_EQ(block().ops().back()->role_vars().size(), 1u);
  EXPECT_EQ(block().ops()[3]->role(), 256);
  EXPECT_EQ(block().ops()[4]->role(), 257);
  EXPECT_EQ(block().find_var("w@GRAD@RENAME@block0@1")->shape, Shape({4, 3}));
}

TEST_F(SmallBackward, BothArgumentsOfOneOp) {
  var("w", {4, 3}, true);
  mean(add("w", "w", "a"));
  append_backward(*program_, "loss", {});
  EXPECT_THAT(ops_from(4),
              ElementsAre("elementwise_add_grad w@GRAD@RENAME@block0@0,w@GRAD@RENAME@block0@1", "sum w@GRAD"));
}

TEST_F(SmallBackward, StoppedAndUnwantedVariablesGetNone) {
  var("x", {4, 3});
  var("w", {4, 3}, true);
  var("v", {4, 3}, true);
  var("frozen", {4, 3}, true);
  block().find_var("frozen")->trainable = false;
  mean(add(add("x", "w", "a"), add("v", "frozen", "b"), "c"));
  BackwardOptions options;
  options.no_grad = {"b"};
  EXPECT_THAT(append_backward(*program_, "loss", options), ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_THAT(ops_from(6), ElementsAre("elementwise_add_grad a@GRAD", "elementwise_add_grad w@GRAD"));
}

TEST_F(SmallBackward, OpsOutsideThePathAreLeftAlone) {
  var("w", {4, 3}, true);
  var("v", {4, 3}, true);
  relu("v", "unused");
  mean(relu("w", "a"));
  relu("a", "later");
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_THAT(ops_from(6), ElementsAre("relu_grad w@GRAD"));
}

TEST_F(SmallBackward, AVariableThatIsWrittenAgainHasOneGradientAVersion) {
  var("w", {4, 3}, true);
  var("v", {4, 3}, true);
  relu("w", "a");  // overwritten below: its first version does not reach the loss
  relu("v", "a");
  mean("a");
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("v", "v@GRAD")));
}

TEST_F(SmallBackward, AnOpInPlacePropagatesItsGradient) {
  var("w", {4, 3}, true);
  relu("w", "a");
  relu("a", "a");
  mean("a");
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_THAT(ops_from(4), ElementsAre("mean_grad a@GRAD", "relu_grad a@GRAD", "relu_grad w@GRAD"));
  // Each reads what its forward op has made of a; the second one's is the latest.
  EXPECT_THAT(versions(5), IsEmpty());
  EXPECT_THAT(versions(6), ElementsAre("Out 0 1"));
}

TEST_F(SmallBackward, OpsReadTheVersionThatTheirForwardOpsSaw) {
  var("w", {4, 3}, true);
  var("other", {4, 3});
  op("assign", {{"X", {"w"}}}, "a");
  op("square", {{"X", {"a"}}}, "b");
  op("assign", {{"X", {"other"}}}, "a");
  op("square", {{"X", {"a"}}}, "c");
  mean(add("b", "c", "d"));
  append_backward(*program_, "loss", {});
  EXPECT_THAT(ops_from(7), ElementsAre("mean_grad d@GRAD", "elementwise_add_grad b@GRAD,c@GRAD", "square_grad a@GRAD",
                                       "square_grad a@GRAD", "assign w@GRAD"));
  EXPECT_THAT(versions(9), IsEmpty());  // the latest
  EXPECT_THAT(versions(10), ElementsAre("X 0 1"));
  EXPECT_EQ(block().ops()[10]->input("X"), block().ops()[1]->input("X"));  // the name stays
  EXPECT_NO_THROW(ir::check_well_formed(*program_));
}

TEST_F(SmallBackward, AnOpInPlaceIsSeenFromBothSides) {
  var("w", {4, 3}, true);
  op("assign", {{"X", {"w"}}}, "a");
  op("square", {{"X", {"a"}}}, "a");  // its gradient reads what was there before
  op("sqrt", {{"X", {"a"}}}, "a");    // its gradient reads what it made
  op("scale", {{"X", {"a"}}}, "a", {{"scale", 2.0f}});
  mean("a");
  append_backward(*program_, "loss", {});
  std::map<std::string, std::vector<std::string>> by_type;
  for (size_t i = 6; i < block().ops().size(); ++i) by_type[block().ops()[i]->type] = versions(i);
  EXPECT_THAT(by_type.at("square_grad"), ElementsAre("X 0 1"));
  EXPECT_THAT(by_type.at("sqrt_grad"), ElementsAre("Out 0 3"));
}

TEST_F(SmallBackward, UpdatesOfParametersMakeNoVersion) {
  var("w", {4, 3}, true);
  mean(op("square", {{"X", {"w"}}}, "a"));
  op("scale", {{"X", {"w"}}}, "w", {{"scale", 0.5f}, {"op_role", int32_t{ir::role::kOptimize}}});
  append_backward(*program_, "loss", {});
  for (size_t i = 0; i < block().ops().size(); ++i) EXPECT_THAT(versions(i), IsEmpty()) << i;
}

// The shape of a variable that was given another one is that of the version.
TEST_F(SmallBackward, VersionsHaveTheirShapes) {
  var("w", {4, 3}, true);
  op("assign", {{"X", {"w"}}}, "a");
  op("square", {{"X", {"a"}}}, "b");
  append_op(
      block(),
      {"reshape2", {{"X", {"a"}}}, {{"Out", {"a"}}, {"XShape", {"before"}}}, {{"shape", std::vector<int32_t>{2, 6}}}});
  op("square", {{"X", {"a"}}}, "c");
  op("reshape", {{"X", {"c"}}}, "e", {{"shape", std::vector<int32_t>{4, 3}}});
  mean(add("b", "e", "d"));
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_EQ(block().find_var("a")->shape, Shape({2, 6}));
  EXPECT_EQ(block().find_var("w@GRAD")->shape, Shape({4, 3}));
}

TEST_F(SmallBackward, TheForwardPartMayReadAnEarlierGradient) {
  var("w", {4, 3}, true);
  relu("w", "a");
  relu("a", "b");
  ASSERT_THAT(gradients(*program_, {"b"}, {"a"}, {}, {}), ElementsAre("a@GRAD"));
  block().find_var("a@GRAD")->stop_gradient = true;
  op("elementwise_mul", {{"X", {"a@GRAD"}}, {"Y", {"a"}}}, "c");
  mean("c");
  const size_t first = block().ops().size() + 1;
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
  EXPECT_THAT(ops_from(first),
              ElementsAre("mean_grad c@GRAD", "elementwise_mul_grad grad/grad/a@GRAD", "relu_grad w@GRAD"));
  EXPECT_THAT(block().ops()[first + 1]->input("X"), ElementsAre("a@GRAD"));
  EXPECT_THAT(block().ops()[first + 2]->input("Out@GRAD"), ElementsAre("grad/grad/a@GRAD"));
}

TEST_F(SmallBackward, ParametersComeInTheOrderThatIsAsked) {
  var("w", {4, 3}, true);
  var("v", {4, 3}, true);
  mean(add(relu("w", "a"), relu("v", "b"), "c"));
  BackwardOptions options;
  options.parameters = {"v", "w", "v"};
  EXPECT_THAT(append_backward(*program_, "loss", options),
              ElementsAre(Pair("v", "v@GRAD"), Pair("w", "w@GRAD"), Pair("v", "v@GRAD")));
  for (const auto& o : block().ops()) EXPECT_LE(o->role_vars().size(), 1u);
}

TEST_F(SmallBackward, ALossMayHaveAnyShapeOfOneElement) {
  var("w", {4, 3}, true);
  op("reduce_mean", {{"X", {"w"}}}, "loss", {{"keep_dim", true}, {"reduce_all", true}});
  ASSERT_EQ(block().find_var("loss")->shape, Shape({1, 1}));
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
}

TEST_F(SmallBackward, ASecondLossKeepsTheFirstGradients) {
  var("w", {4, 3}, true);
  mean(relu("w", "a"));
  append_backward(*program_, "loss", {});
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "grad/grad/w@GRAD")));
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "grad/grad/grad/w@GRAD")));
  EXPECT_NE(block().find_var("loss@GRAD_1"), nullptr);
}

TEST_F(SmallBackward, TheCallbackSeesEveryGradientOp) {
  var("w", {4, 3}, true);
  mean(relu("w", "a"));
  std::vector<std::string> seen;
  BackwardOptions options;
  options.after_op = [&](ir::Block& b, const ir::Op& o) {
    EXPECT_EQ(b.ops().back().get(), &o);
    seen.push_back(o.type);
  };
  append_backward(*program_, "loss", options);
  EXPECT_THAT(seen, ElementsAre("mean_grad", "relu_grad"));
}

TEST_F(SmallBackward, BadLossesAreRefused) {
  var("w", {4, 3}, true);
  relu("w", "a");
  var("fed", {1});
  EXPECT_THAT(error_of("absent"), HasSubstr("loss absent is not in the global block"));
  EXPECT_THAT(error_of("a"), HasSubstr("must have one element, got shape [4, 3]"));
  EXPECT_THAT(error_of("fed"), HasSubstr("no op of the program computes the loss"));
}

TEST_F(SmallBackward, AFailureLeavesTheProgramAsItWas) {
  var("w", {4, 3}, true);
  mean(relu("w", "a"));
  const std::string before = ir::serialize(*program_);
  BackwardOptions options;
  options.after_op = [](ir::Block&, const ir::Op& o) {
    if (o.type == "relu_grad") AB_THROW(InvalidArgument, "no");
  };
  EXPECT_THROW(append_backward(*program_, "loss", options), Error);
  EXPECT_EQ(ir::serialize(*program_), before);
}

TEST_F(SmallBackward, GradientsOfSeveralTargets) {
  var("x", {4, 3});
  var("other", {4, 3});
  var("t", {4, 3});
  block().find_var("x")->stop_gradient = block().find_var("other")->stop_gradient = false;
  relu("x", "a");
  relu("a", "b");
  EXPECT_THAT(gradients(*program_, {"b", "a"}, {"x", "other"}, {"t", ""}, {}), ElementsAre("x@GRAD", ""));
  // "a" is a target and on the way to another one: both contributions count.
  EXPECT_THAT(ops_from(2), ElementsAre("fill_constant a@GRAD@RENAME@block0@0", "relu_grad a@GRAD@RENAME@block0@1",
                                       "sum a@GRAD", "relu_grad x@GRAD"));
  EXPECT_THAT(block().ops()[3]->input("Out@GRAD"), ElementsAre("t"));
}

TEST_F(SmallBackward, GradientsGoNoFurtherThanTheirInputs) {
  var("w", {4, 3}, true);
  relu("w", "a");
  relu("a", "b");
  EXPECT_THAT(gradients(*program_, {"b"}, {"a"}, {}, {}), ElementsAre("a@GRAD"));
  EXPECT_EQ(block().find_var("w@GRAD"), nullptr);
  EXPECT_THROW(gradients(*program_, {"b"}, {"a"}, {"w", "w"}, {}), Error);
}

class SubBlocks : public SmallBackward {
 protected:
  // A block to fill, which reads w and gives y.
  ir::Block& make_body() {
    var("w", {4, 3}, true);
    var("y", {4, 3});
    block().find_var("y")->stop_gradient = false;
    ir::Var cond;
    cond.name = "cond";
    cond.dtype = DType::kBool;
    cond.shape = {1};
    cond.stop_gradient = true;
    block().create_var(cond);
    ir::Var frames;
    frames.name = "frames";
    frames.kind = VarKind::kStepScopes;
    block().create_var(frames);
    return program_->create_block(0);
  }
  void call(std::vector<std::string> inputs, std::vector<std::string> outputs = {"y"}) {
    append_op(block(), {"conditional_block",
                        {{"Cond", {"cond"}}, {"Input", std::move(inputs)}},
                        {{"Out", std::move(outputs)}, {"Scope", {"frames"}}},
                        {{"sub_block", BlockRef{1}}, {"is_scalar_condition", true}}});
  }
};

// The gradient of a conditional block is a block that is the gradient of its body.
TEST_F(SubBlocks, HaveGradientBlocks) {
  ir::Block& body = make_body();
  append_op(body, {"elementwise_add", {{"X", {"w"}}, {"Y", {"w"}}}, {{"Out", {"sum"}}}, {}});
  append_op(body, {"relu", {{"X", {"sum"}}}, {{"Out", {"y"}}}, {}});
  call({"w", "cond"});
  relu("w", "side");
  mean(add("y", "side", "z"));
  EXPECT_THAT(append_backward(*program_, "loss", {}), ElementsAre(Pair("w", "w@GRAD")));
  ASSERT_EQ(program_->num_blocks(), 3);
  const ir::Block& grad = program_->block(2);
  EXPECT_EQ(grad.parent(), 0);
  EXPECT_EQ(grad.forward_block, 1);
  std::vector<std::string> types;
  for (const auto& o : grad.ops()) types.push_back(o->type + " " + o->output_args()[0]);
  EXPECT_THAT(types,
              ElementsAre("relu_grad sum@GRAD", "elementwise_add_grad w@GRAD@RENAME@block1@0", "add_to_sum w@GRAD"));
  EXPECT_NE(grad.find_var("w@GRAD"), nullptr);  // local, though the outer block has one of that name
  const ir::Op& outer = *block().ops().back();
  EXPECT_EQ(outer.type, "conditional_block_grad");
  EXPECT_THAT(outer.sub_blocks(), ElementsAre(2));
  EXPECT_THAT(outer.input("Sum@GRAD"), ElementsAre("w@GRAD"));  // what the outer block has of it already
  EXPECT_THAT(outer.output("Input@GRAD"), ElementsAre("w@GRAD", "@EMPTY@"));
  EXPECT_NO_THROW(ir::check_well_formed(*program_));
}

TEST_F(SubBlocks, AnInputThatIsListedTwiceHasOneGradient) {
  append_op(make_body(), {"relu", {{"X", {"w"}}}, {{"Out", {"y"}}}, {}});
  call({"w", "w"});
  mean("y");
  append_backward(*program_, "loss", {});
  EXPECT_THAT(block().ops().back()->output("Input@GRAD"), ElementsAre("w@GRAD", "@EMPTY@"));
}

TEST_F(SubBlocks, KeepACopyOfWhatTheyWriteAgain) {
  ir::Block& body = make_body();
  append_op(body, {"assign", {{"X", {"w"}}}, {{"Out", {"a"}}}, {}});
  append_op(body, {"square", {{"X", {"a"}}}, {{"Out", {"b"}}}, {}});
  append_op(body, {"scale", {{"X", {"a"}}}, {{"Out", {"a"}}}, {{"scale", 3.0f}}});
  append_op(body, {"elementwise_add", {{"X", {"a"}}, {"Y", {"b"}}}, {{"Out", {"y"}}}, {}});
  call({"w"});
  mean("y");
  append_backward(*program_, "loss", {});
  ASSERT_EQ(body.ops().size(), 5u);
  EXPECT_EQ(body.ops()[1]->type, "assign");
  EXPECT_THAT(body.ops()[1]->output_args(), ElementsAre("a@VERSION@1"));
  const auto& gradient = program_->block(2).ops();
  const auto square = std::find_if(gradient.begin(), gradient.end(), [](auto& o) { return o->type == "square_grad"; });
  ASSERT_NE(square, gradient.end());
  EXPECT_THAT((*square)->input("X"), ElementsAre("a@VERSION@1"));
  EXPECT_NO_THROW(ir::check_well_formed(*program_));
}

// The results of the block are used inside it, too: the gradient from outside and the one from inside are two.
TEST_F(SubBlocks, TellTheirGradientsFromThoseOutside) {
  ir::Block& body = make_body();
  var("z", {4, 3});
  block().find_var("z")->stop_gradient = false;
  append_op(body, {"relu", {{"X", {"w"}}}, {{"Out", {"y"}}}, {}});
  append_op(body, {"square", {{"X", {"y"}}}, {{"Out", {"z"}}}, {}});
  call({"w"}, {"y", "z"});
  mean(add("y", "z", "s"));
  append_backward(*program_, "loss", {});
  const ir::Block& gradient = program_->block(2);
  std::vector<std::string> made;
  for (const auto& o : gradient.ops()) {
    made.push_back(fmt::format("{} {} -> {}", o->type, fmt::join(o->input_args(), ","), o->output_args()[0]));
  }
  EXPECT_THAT(made, ElementsAre("square_grad y,z@GRAD -> y@GRAD@RENAME@block1@0",
                                "sum y@GRAD,y@GRAD@RENAME@block1@0 -> y@GRAD@RENAME@block1@1",
                                "relu_grad y,y@GRAD@RENAME@block1@1 -> w@GRAD"));
  EXPECT_NE(gradient.find_var("y@GRAD"), nullptr);  // the op passes the outer variable by that name
}

}  // namespace
}  // namespace anabranch
