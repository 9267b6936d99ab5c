#include "graph/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/edit.h"

namespace anabranch {
namespace {

using testing::HasSubstr;

// x, w -> mul -> h -> relu -> a -> scale -> y, then sgd updates w by its gradient g. All but w are temporaries, x and g
// are fed.
class Verify : public testing::Test {
 protected:
  Verify() {
    x_ = var("x", {4, 3}), w_ = var("w", {3, 3}), g_ = var("g", {3, 3}), rate_ = var("rate", {1});
    h_ = var("h", {4, 3}), a_ = var("a", {4, 3}), y_ = var("y", {4, 3});
    for (int v : {x_, g_}) graph_.vars[v].fed = true;
    for (int v : {w_, rate_}) graph_.vars[v].desc.persistable = true;
    for (int v : {h_, a_, y_}) graph_.vars[v].produced = true;
    add(make("mul").in("X", x_).in("Y", w_).out("Out", h_));
    add(make("relu").in("X", h_).out("Out", a_));
    add(make("scale").attr("scale", 2.0f).in("X", a_).out("Out", y_));
    add(make("sgd")
            .attr("op_role_var", std::vector<std::string>{"w", "g"})
            .in("Param", w_)
            .in("Grad", g_)
            .in("LearningRate", rate_)
            .out("ParamOut", w_));
  }

  int var(const std::string& name, const Shape& shape) {
    ir::Var desc;
    desc.name = name;
    desc.shape = shape;
    desc.dtype = DType::kFloat32;
    return graph_.var(name, 0, desc);
  }
  NodeBuilder make(const char* type) { return {graph_, type, like_, 0, 0}; }
  void add(NodeBuilder& node) { graph_.nodes.push_back(node.done()); }
  // The op of this node only: what was checked already is not checked again.
  ir::Op& op(int node) {
    graph_.nodes[node].op = std::make_shared<ir::Op>(*graph_.nodes[node].op);
    return *graph_.nodes[node].op;
  }
  std::string fault() {
    try {
      verifier_.verify(graph_);
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInternal);
      return e.message();
    }
    return "";
  }

  Graph graph_;
  Verifier verifier_;
  ir::OpRef like_ = std::make_shared<ir::Op>();
  int x_, w_, g_, rate_, h_, a_, y_;
};

TEST_F(Verify, TakesTheGraph) { EXPECT_EQ(fault(), ""); }

TEST_F(Verify, NamesTheNode) {
  op(1).inputs[0].name = "Input";
  EXPECT_THAT(fault(), HasSubstr("graph node 1 (relu, replica 0): there is no slot Input"));
}

TEST_F(Verify, FindsSlotsThatDoNotFit) {
  op(1).inputs[0].args.push_back("x");
  EXPECT_THAT(fault(), HasSubstr("takes one variable, 2 are given"));
  op(1).inputs[0].args.clear();
  EXPECT_THAT(fault(), HasSubstr("input X is not given"));
  op(1).inputs[0].args = {"h"};
  EXPECT_EQ(fault(), "");
  op(1).outputs[0].args = {"@EMPTY@"};
  EXPECT_THAT(fault(), HasSubstr("must be a variable, got @EMPTY@"));
}

TEST_F(Verify, FindsArgumentsWithoutVariables) {
  graph_.nodes[0].ins.pop_back();
  EXPECT_THAT(fault(), HasSubstr("there must be a variable for each of 2 arguments, got 1"));
  graph_.nodes[0].ins.push_back(99);
  EXPECT_THAT(fault(), HasSubstr("there are 7 variables, got number 99"));
  graph_.nodes[0].ins.back() = -2;
  EXPECT_THAT(fault(), HasSubstr("there are 7 variables, got number -2"));
  graph_.nodes[0].ins.back() = w_;
  graph_.nodes[0].more_reads = {-1};
  EXPECT_THAT(fault(), HasSubstr("there are 7 variables, got number -1"));
}

TEST_F(Verify, FindsAttributesThatDoNotFit) {
  op(2).attrs.erase("scale");
  EXPECT_THAT(fault(), HasSubstr("attribute scale must be given"));
  op(2).attrs["scale"] = int32_t{2};
  EXPECT_THAT(fault(), HasSubstr("attribute scale must be FLOAT, got INT"));
  op(2).attrs["scale"] = 2.0f;
  EXPECT_EQ(fault(), "");
}

TEST_F(Verify, FindsValuesThatAttributesRefuse) {
  const int mask = var("mask", {4, 3}), kept = var("kept", {4, 3});
  add(make("dropout").in("X", y_).out("Out", kept).out("Mask", mask));
  EXPECT_EQ(fault(), "");
  op(4).attrs["dropout_prob"] = 2.0f;
  EXPECT_THAT(fault(), HasSubstr("graph node 4 (dropout, replica 0): "));
}

TEST_F(Verify, FindsRoleVariablesThatAreNotThere) {
  op(3).attrs["op_role_var"] = std::vector<std::string>{"w", "pruned"};
  EXPECT_EQ(fault(), "");  // a program may name anything
  op(3).attrs["op_role_var"] = std::vector<std::string>{"pruned", "g"};
  EXPECT_EQ(fault(), "");
  op(3).attrs["op_role_var"] = std::vector<std::string>{"w", "w@GRAD"};
  EXPECT_THAT(fault(), HasSubstr("op_role_var must name variables of the graph, got w@GRAD"));
}

TEST_F(Verify, FindsReadsBeforeWrites) {
  std::swap(graph_.nodes[0], graph_.nodes[1]);
  EXPECT_THAT(fault(), HasSubstr("graph node 0 (relu, replica 0): variable h must be written before it is read"));
}

TEST_F(Verify, FindsValuesOfTwoMakers) {
  op(2).outputs[0].args = {"h"};
  graph_.nodes[2].outs[0] = h_;
  EXPECT_THAT(fault(), HasSubstr("graph node 2 (scale, replica 0): variable h must be made by one node"));
}

TEST_F(Verify, FindsMemoryThatCannotBeShared) {
  graph_.vars[a_].same_buffer_as = h_;
  EXPECT_EQ(fault(), "");
  graph_.vars[a_].desc.dtype = DType::kFloat64;
  EXPECT_THAT(fault(), HasSubstr("variable a shares the memory of h, so it must be float32 [4, 3], got float64"));
  graph_.vars[a_].desc.dtype = DType::kFloat32;
  graph_.vars[a_].desc.shape = Shape{3, 4};
  EXPECT_THAT(fault(), HasSubstr("got float32 [3, 4]"));
  graph_.vars[a_].desc.shape = Shape{4, 3};
  graph_.vars[h_].same_buffer_as = a_;
  EXPECT_THAT(fault(), HasSubstr("in a cycle"));
  graph_.vars[h_].same_buffer_as = 7;
  EXPECT_THAT(fault(), HasSubstr("shares the memory of number 7"));
  graph_.vars[h_].same_buffer_as = -1;
  graph_.vars[h_].fetched = true;
  EXPECT_THAT(fault(), HasSubstr("variable h shares memory, so it must be a temporary"));
}

TEST_F(Verify, FindsReadsOfMemoryThatHoldsAnotherValue) {
  graph_.vars[a_].same_buffer_as = h_;
  op(2).inputs[0].args = {"h"};
  graph_.nodes[2].ins[0] = h_;
  EXPECT_THAT(fault(), HasSubstr("variable h must be read before its memory holds a"));
}

TEST_F(Verify, NodesAreMadeWithDefaultsAndInTheOrderOfTheirSlots) {
  const GraphNode node = make("mul").in("Y", w_).in("X", x_).out("Out", h_).done();
  EXPECT_THAT(node.ins, testing::ElementsAre(x_, w_));
  EXPECT_EQ(node.op->inputs[0].name, "X");
  EXPECT_EQ(node.op->attr<int32_t>("x_num_col_dims"), 1);
  EXPECT_THROW(make("relu").in("Input", x_).done(), Error);
}

}  // namespace
}  // namespace anabranch
