// A steady step on devices wastes nothing on the host, either: what the engine does to launch it, node by node or as
// captured graphs, calls neither the heap nor a lock. The plug-in's own calls are its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "autodiff/backward.h"
#include "base/flags.h"
#include "comm/group.h"
#include "device/devices.h"
#include "engine/prepared_run.h"
#include "opdef/append_op.h"
#include "rendezvous/join.h"
#include "steady/calls.h"

namespace anabranch {
namespace {

constexpr int kWidth = 8;

void add_var(ir::Block& block, const std::string& name, const Shape& shape, bool persists = false) {
  ir::Var v;
  v.name = name;
  v.shape = shape;
  v.dtype = DType::kFloat32;
  v.is_data = v.stop_gradient = name == "x";
  v.persistable = persists;
  v.is_parameter = v.trainable = name == "w";
  block.create_var(v);
}

// loss = mean(tanh(x w)), and w follows. in_ring: by the sum of the gradients of ring 0.
ir::ProgramRef net(bool in_ring = false) {
  auto main = ir::Program::make();
  ir::Block& block = main->global_block();
  add_var(block, "x", {kUnknown, kWidth});
  add_var(block, "w", {kWidth, kWidth}, true);
  add_var(block, "rate", {1}, true);
  append_op(block, {"mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"p"}}}, {}});
  append_op(block, {"tanh", {{"X", {"p"}}}, {{"Out", {"t"}}}, {}});
  append_op(block, {"mean", {{"X", {"t"}}}, {{"Out", {"loss"}}}, {}});
  const auto gradients = append_backward(*main, "loss", {});
  EXPECT_EQ(gradients.size(), 1u);
  if (in_ring) {
    const std::string& gradient = gradients.at(0).second;
    append_op(block, {"c_allreduce_sum", {{"X", {gradient}}}, {{"Out", {gradient}}}, {}});
  }
  append_op(block, {"sgd",
                    {{"Param", {"w"}}, {"Grad", {gradients.at(0).second}}, {"LearningRate", {"rate"}}},
                    {{"ParamOut", {"w"}}},
                    {{"op_role", int32_t{ir::role::kOptimize}},
                     {"op_role_var", std::vector<std::string>{"w", gradients.at(0).second}}}});
  return main;
}

Tensor filled(const Shape& shape, float value) {
  Tensor t(shape, DType::kFloat32);
  std::fill(t.mutable_data<float>(), t.mutable_data<float>() + t.numel(), value);
  return t;
}

// How often graphs were launched, as explain() says it.
int launches(const CompiledProgram& program) {
  const std::string text = program.explain(), before = ", launched ";
  const size_t at = text.find(before);
  return at == std::string::npos ? 0 : std::stoi(text.substr(at + before.size()));
}

void expect_no_waste(int replicas, bool by_graphs, bool in_ring = false) {
  if (!steady::can_count()) GTEST_SKIP() << "a sanitizer counts these calls itself";
  set_flag("FLAGS_device_plugin", std::string("simdevice"));
  if (!device::Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
  const auto least = get_flag("FLAGS_device_graphs");
  if (!by_graphs) set_flag("FLAGS_device_graphs", int64_t{0});
  const auto scope = Scope::make();
  scope->var("w")->as<Tensor>().copy_from(filled({kWidth, kWidth}, 0.1f));
  scope->var("rate")->as<Tensor>().copy_from(filled({1}, 0.1f));
  CompileOptions options;
  options.replicas = replicas;
  options.data_parallel = replicas > 1;
  options.loss_name = replicas > 1 ? "loss" : "";
  for (int r = 0; r < replicas; ++r) options.places.push_back(Place::cuda(r));
  CompiledProgram program(net(in_ring), scope, options);
  PreparedRun run(program, {"x"}, {"loss"});
  const std::vector<Tensor> batch = {filled({4, kWidth}, 0.5f)};
  float loss = 0;
  const auto read = [&](const Step& step) { loss = *step.fetched().at(0).at(0)->tensor().data<float>(); };
  run.run(batch, nullptr, read);
  const float first = loss;
  for (int i = 0; i < 3; ++i) run.run(batch, nullptr, read);
  const int launched = launches(program);
  program.set_plan_hook(&steady::count_here);
  auto& calls = steady::calls();
  calls.allocations = calls.locks = calls.library_allocations = 0;
  for (int i = 0; i < 5; ++i) run.run(batch, nullptr, read);
  EXPECT_EQ(calls.allocations, 0);
  EXPECT_LE(calls.locks, in_ring ? 10 : 0) << "a job is handed to the group's thread and waited for, once a run";
  const bool met = program.explain().find("1 c_allreduce_sum between processes, device to device") != std::string::npos;
  EXPECT_EQ(met, in_ring);
  EXPECT_GT(calls.library_allocations, 0) << "the simulated device keeps what is put into its queues";
  EXPECT_LT(loss, first);
  EXPECT_EQ(launches(program) >= launched + 5, by_graphs) << program.explain();
  set_flag("FLAGS_device_graphs", least);
}

TEST(SteadyDevices, OneReplica) { expect_no_waste(1, false); }
TEST(SteadyDevices, TwoReplicas) { expect_no_waste(2, false); }
TEST(SteadyDevices, OneReplicaByGraphs) { expect_no_waste(1, true); }
TEST(SteadyDevices, TwoReplicasByGraphs) { expect_no_waste(2, true); }
TEST(SteadyDevices, InARing) {
  rendezvous::join_ring({.ring = 0, .rank = 0, .endpoints = {"127.0.0.1:1"}});
  expect_no_waste(1, false, true);
  expect_no_waste(1, true, true);
  comm::forget_rings();
}

}  // namespace
}  // namespace anabranch
