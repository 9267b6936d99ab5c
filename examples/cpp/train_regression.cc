// A regression trained from C++, without Python: builds two programs, differentiates, runs.
//
//   startup   w = uniform_random, b = 0, rate = 0.1
//   main      prediction = x w + b      loss = mean((prediction - y)^2)      gradients      sgd on w and b
//
// The data (synthetic) follow y = x [2, -3, 0.5]^T + 1. Usage: train_regression [steps]. With the default of 200 steps
// the last loss is below 0.001.
#include <cstdio>
#include <cstdlib>
#include <random>

#include "autodiff/backward.h"
#include "engine/compiled_program.h"
#include "opdef/append_op.h"

using namespace anabranch;

namespace {

constexpr int kBatch = 64;
constexpr int kFeatures = 3;

ir::Var data(const std::string& name, const Shape& shape) {
  ir::Var v{.name = name, .shape = shape, .need_check_feed = true};
  v.stop_gradient = v.is_data = true;
  return v;
}

ir::Var parameter(const std::string& name, const Shape& shape) {
  ir::Var v{.name = name, .shape = shape, .persistable = true};
  v.is_parameter = true;
  return v;
}

// Declares a persistable variable in both programs and appends the op that gives it its first value.
void initialize(ir::Block& main, ir::Block& startup, const ir::Var& var, const std::string& type, AttrMap attrs) {
  main.create_var(var);
  startup.create_var(var);
  attrs["shape"] = var.shape.to_vector();
  attrs["dtype"] = static_cast<int32_t>(var.dtype);
  append_op(startup, {type, {}, {{"Out", {var.name}}}, attrs});
}

void build(ir::Program& main_program, ir::Program& startup_program) {
  ir::Block& main = main_program.global_block();
  ir::Block& startup = startup_program.global_block();
  main.create_var(data("x", {kUnknown, kFeatures}));
  main.create_var(data("y", {kUnknown, 1}));
  initialize(main, startup, parameter("w", {kFeatures, 1}), "uniform_random",
             {{"min", -0.5f}, {"max", 0.5f}, {"seed", 1}});
  initialize(main, startup, parameter("b", {1}), "fill_constant", {{"value", 0.0f}});
  ir::Var rate{.name = "rate", .shape = {1}, .persistable = true};
  rate.stop_gradient = true;
  initialize(main, startup, rate, "fill_constant", {{"value", 0.1f}});

  append_op(main, {"mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"product"}}}, {}});
  append_op(main, {"elementwise_add", {{"X", {"product"}}, {"Y", {"b"}}}, {{"Out", {"prediction"}}}, {{"axis", 1}}});
  append_op(main, {"elementwise_sub", {{"X", {"prediction"}}, {"Y", {"y"}}}, {{"Out", {"error"}}}, {}});
  append_op(main, {"square", {{"X", {"error"}}}, {{"Out", {"squared"}}}, {}});
  append_op(main, {"mean", {{"X", {"squared"}}}, {{"Out", {"loss"}}}, {}});

  for (const auto& [param, grad] : append_backward(main_program, "loss", {})) {
    append_op(main, {"sgd",
                     {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}},
                     {{"ParamOut", {param}}},
                     {{"op_role", ir::role::kOptimize}, {"op_role_var", std::vector<std::string>{param, grad}}}});
  }
}

FeedMap batch(std::mt19937& random) {
  std::normal_distribution<float> normal;
  Tensor x(Shape{kBatch, kFeatures}, DType::kFloat32), y(Shape{kBatch, 1}, DType::kFloat32);
  float* row = x.mutable_data<float>();
  for (int i = 0; i < kBatch; ++i, row += kFeatures) {
    for (int k = 0; k < kFeatures; ++k) row[k] = normal(random);
    y.mutable_data<float>()[i] = 2.0f * row[0] - 3.0f * row[1] + 0.5f * row[2] + 1.0f;
  }
  return {{"x", x}, {"y", y}};
}

float train(int steps) {
  const auto main = ir::Program::make(), startup = ir::Program::make();
  build(*main, *startup);
  const auto scope = Scope::make();
  CompiledProgram(startup, scope, {}).run({.feeds = {{}}, .fetch = {}});

  CompileOptions options;
  options.loss_name = "loss";
  CompiledProgram step(main, scope, options);
  std::mt19937 random(7);
  float loss = 0;
  for (int i = 1; i <= steps; ++i) {
    const auto fetched = step.run({.feeds = {batch(random)}, .fetch = {"loss"}});
    loss = std::get<Tensor>(fetched[0][0]).data<float>()[0];
    if (i == 1 || i % 50 == 0) std::printf("step %d: loss %.6f\n", i, loss);
  }
  const float* w = scope->find_var("w")->tensor().data<float>();
  std::printf("w = %.3f %.3f %.3f, b = %.3f\n", w[0], w[1], w[2], scope->find_var("b")->tensor().data<float>()[0]);
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 200;
  try {
    std::printf("last loss %.6f\n", train(steps > 0 ? steps : 1));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  return 0;
}
