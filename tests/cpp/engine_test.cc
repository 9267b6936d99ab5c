// Programs built in C++, run on replicas: both reduce modes, any number of threads, equal bits; also under
// ThreadSanitizer, where the graphs and kernels of a real model meet the threaded executor.
#include "engine/compiled_program.h"

#include <gtest/gtest.h>

#include "autodiff/backward.h"
#include "base/flags.h"
#include "graph/pass.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

struct Model {
  ir::ProgramRef main = ir::Program::make();
  std::shared_ptr<Scope> scope = Scope::make();
  std::string loss;

  std::string op(const std::string& type, std::vector<ir::Slot> in, const std::string& out, AttrMap attrs = {},
                 const std::string& slot = "Out") {
    append_op(main->global_block(), {type, std::move(in), {{slot, {out}}}, std::move(attrs)});
    return out;
  }

  void variable(const std::string& name, Shape shape, bool parameter) {
    ir::Var v;
    v.name = name;
    v.shape = shape;
    v.persistable = v.is_parameter = parameter;
    v.is_data = v.stop_gradient = !parameter;
    main->global_block().create_var(v);
    if (!parameter) return;
    Tensor& t = scope->var(name)->as<Tensor>();
    t.resize(shape, DType::kFloat32);
    for (int64_t i = 0; i < t.numel(); ++i) t.mutable_data<float>()[i] = 0.25f * static_cast<float>(i % 5) - 0.4f;
  }

  Model() {
    variable("x", {kUnknown, 3}, false);
    variable("w", {3, 4}, true);
    variable("v", {4, 1}, true);
    variable("rate", {1}, true);
    main->global_block().find_var("rate")->is_parameter = false;
    main->global_block().find_var("rate")->stop_gradient = true;
    scope->var("rate")->as<Tensor>().mutable_data<float>()[0] = 0.1f;
    op("mul", {{"X", {"x"}}, {"Y", {"w"}}}, "h");
    op("tanh", {{"X", {"h"}}}, "t");
    op("mul", {{"X", {"t"}}, {"Y", {"v"}}}, "p");
    op("square", {{"X", {"p"}}}, "s");
    loss = op("mean", {{"X", {"s"}}}, "loss");
    for (const auto& [param, grad] : append_backward(*main, loss, {})) {
      op("sgd", {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}}, param,
         {{"op_role", int32_t{ir::role::kOptimize}}, {"op_role_var", std::vector<std::string>{param, grad}}},
         "ParamOut");
    }
  }

  std::vector<float> train(const CompileOptions& options, int steps) {
    set_flag("FLAGS_measure_threads", false);  // a model as small as this one would end up on one thread
    CompiledProgram program(main, scope, options);
    for (int i = 0; i < steps; ++i) {
      Tensor x({7, 3}, DType::kFloat32);
      for (int64_t k = 0; k < 21; ++k)
        x.mutable_data<float>()[k] = static_cast<float>((k * 7 + int64_t{i} * 3) % 11) / 5 - 1;
      RunRequest request;
      request.feeds = {{{"x", x}}};
      request.fetch = {loss};
      program.run(request);
    }
    std::vector<float> state;
    for (const char* name : {"w", "v"}) {
      const Tensor& t = scope->find_var(name)->tensor();
      state.insert(state.end(), t.data<float>(), t.data<float>() + t.numel());
    }
    return state;
  }
};

CompileOptions on(int replicas, ReduceMode mode, int threads) {
  CompileOptions o;
  o.replicas = replicas;
  o.data_parallel = true;
  o.loss_name = "loss";
  o.build.reduce_strategy = mode;
  o.execution.num_threads = threads;
  return o;
}

TEST(Engine, ReduceModesAndThreadsGiveEqualBits) {
  for (int replicas : {1, 2, 3}) {
    const auto expected = Model().train(on(replicas, ReduceMode::kAllReduce, 1), 20);
    for (ReduceMode mode : {ReduceMode::kAllReduce, ReduceMode::kReduce}) {
      for (int threads : {1, 2, 7}) {
        EXPECT_EQ(Model().train(on(replicas, mode, threads), 20), expected) << replicas << " replicas, " << threads;
      }
    }
  }
}

TEST(Engine, ReplicasFollowSerial) {
  const auto serial = Model().train({}, 20);
  for (int replicas : {2, 3, 4}) {
    const auto parallel = Model().train(on(replicas, ReduceMode::kReduce, 2), 20);
    for (size_t i = 0; i < serial.size(); ++i) EXPECT_NEAR(parallel[i], serial[i], 1e-5);
  }
}

TEST(Engine, PassesKeepBits) {
  const auto expected = Model().train(on(2, ReduceMode::kAllReduce, 2), 10);
  for (const Pass& pass : pipeline()) {
    CompileOptions o = on(2, ReduceMode::kAllReduce, 2);
    o.build.disabled_passes = {pass.name};
    EXPECT_EQ(Model().train(o, 10), expected) << "without " << pass.name;
  }
}

TEST(Engine, UnknownFetchAndMissingFeedAreTypedErrorsAndTheProgramRunsOn) {
  Model m;
  CompiledProgram program(m.main, m.scope, {});
  Tensor x({2, 3}, DType::kFloat32);
  std::fill(x.mutable_data<float>(), x.mutable_data<float>() + 6, 1.0f);
  RunRequest good;
  good.feeds = {{{"x", x}}};
  good.fetch = {"loss"};
  RunRequest unknown = good, missing = good;
  unknown.fetch = {"nothing"};
  missing.feeds.clear();
  EXPECT_THROW(program.run(unknown), Error);
  EXPECT_THROW(program.run(missing), Error);
  EXPECT_EQ(program.run(good).size(), 1u);
}

}  // namespace
}  // namespace anabranch
