// A steady iteration of a loop wastes nothing, forwards and backwards: no call to the heap and none to a lock.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "autodiff/backward.h"
#include "base/flags.h"
#include "engine/prepared_run.h"
#include "opdef/append_op.h"
#include "steady/calls.h"

namespace anabranch {
namespace {

constexpr int kWidth = 4;

void add_var(ir::Block& block, const std::string& name, const Shape& shape, DType dtype, bool data = false) {
  ir::Var v;
  v.name = name;
  v.shape = shape;
  v.dtype = dtype;
  v.is_data = v.stop_gradient = data;
  block.create_var(v);
}

void constant(ir::Block& block, const std::string& name, DType dtype, float value) {
  add_var(block, name, {1}, dtype);
  append_op(block, {"fill_constant",
                    {},
                    {{"Out", {name}}},
                    {{"shape", std::vector<int64_t>{1}}, {"dtype", static_cast<int32_t>(dtype)}, {"value", value}}});
}

// h = tanh(h w) in each iteration; with a gradient, w follows the mean of h.
ir::ProgramRef loop(int iterations, bool trains) {
  auto main = ir::Program::make();
  ir::Block& block = main->global_block();
  add_var(block, "x", {kUnknown, kWidth}, DType::kFloat32, /*data=*/true);
  add_var(block, "w", {kWidth, kWidth}, DType::kFloat32);
  ir::Var& w = *block.find_var("w");
  w.persistable = w.is_parameter = w.trainable = true;
  constant(block, "i", DType::kInt64, 0);
  constant(block, "n", DType::kInt64, static_cast<float>(iterations));
  add_var(block, "going_on", {1}, DType::kBool);
  add_var(block, "h", {kUnknown, kWidth}, DType::kFloat32);
  append_op(block, {"scale", {{"X", {"x"}}}, {{"Out", {"h"}}}, {{"scale", 1.5f}}});
  append_op(block, {"less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"going_on"}}}, {}});
  ir::Block& body = main->create_block(0);
  append_op(body, {"mul", {{"X", {"h"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, {}});
  append_op(body, {"tanh", {{"X", {"p"}}}, {{"Out", {"t"}}}, {}});
  append_op(body, {"assign", {{"X", {"t"}}}, {{"Out", {"h"}}}, {}});
  append_op(body, {"increment", {{"X", {"i"}}}, {{"Out", {"i"}}}, {}});
  append_op(body, {"less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"going_on"}}}, {}});
  append_op(block, {"while",
                    {{"X", {"h", "w", "i", "n"}}, {"Condition", {"going_on"}}},
                    {{"Out", {"h", "i", "going_on"}}, {"StepScopes", {"scopes"}}},
                    {{"sub_block", BlockRef{body.idx()}}}});
  append_op(block, {"mean", {{"X", {"h"}}}, {{"Out", {"loss"}}}, {}});
  if (!trains) return main;
  const auto gradients = append_backward(*main, "loss", {});
  EXPECT_EQ(gradients.size(), 1u);
  constant(block, "rate", DType::kFloat32, 0.1f);
  append_op(block, {"sgd",
                    {{"Param", {"w"}}, {"Grad", {gradients.at(0).second}}, {"LearningRate", {"rate"}}},
                    {{"ParamOut", {"w"}}},
                    {{"op_role", int32_t{ir::role::kOptimize}}}});
  return main;
}

Tensor filled(const Shape& shape, float value) {
  Tensor t(shape, DType::kFloat32);
  std::fill(t.mutable_data<float>(), t.mutable_data<float>() + t.numel(), value);
  return t;
}

void expect_no_waste(bool trains) {
  if (!steady::can_count()) GTEST_SKIP() << "a sanitizer counts these calls itself";
  set_flag("FLAGS_measure_threads", true);
  constexpr int kIterations = 300, kRuns = 5;
  const auto scope = Scope::make();
  scope->var("w")->as<Tensor>().copy_from(filled({kWidth, kWidth}, 0.1f));
  CompiledProgram program(loop(kIterations, trains), scope, {});
  PreparedRun run(program, {"x"}, {"loss"});
  const std::vector<Tensor> batch = {filled({3, kWidth}, 0.5f)};
  for (int i = 0; i < 3; ++i) run.run(batch, nullptr, [](const Step&) {});
  program.set_plan_hook(&steady::count);
  auto& calls = steady::calls();
  calls.allocations = calls.library_allocations = calls.locks = calls.waits = calls.wakes = 0;
  for (int i = 0; i < kRuns; ++i) run.run(batch, nullptr, [](const Step&) {});
  EXPECT_EQ(calls.allocations, 0);
  EXPECT_EQ(calls.locks, 0);
}

TEST(SteadyLoops, Iterations) { expect_no_waste(false); }
TEST(SteadyLoops, IterationsBackwards) { expect_no_waste(true); }

}  // namespace
}  // namespace anabranch
