// Programs of the CPU and of a device that use one scope: its values lie where the one that runs needs them.
#include <gtest/gtest.h>

#include <thread>

#include "base/flags.h"
#include "device/devices.h"
#include "engine/compiled_program.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

// w = w + 1, by an update.
ir::ProgramRef counting() {
  ir::ProgramRef program = ir::Program::make();
  ir::Block& block = program->global_block();
  const auto add = [&](const std::string& name, int64_t extent, bool persistable) {
    ir::Var v;
    v.name = name;
    v.shape = {extent};
    v.persistable = persistable;
    block.create_var(v);
  };
  const auto fill = [&](const std::string& name, int64_t extent, float value) {
    add(name, extent, false);
    append_op(block, {"fill_constant",
                      {},
                      {{"Out", {name}}},
                      {{"shape", std::vector<int64_t>{extent}},
                       {"dtype", static_cast<int32_t>(DType::kFloat32)},
                       {"value", value}}});
  };
  add("w", 64, true);
  fill("gradient", 64, 1);
  fill("rate", 1, -1);
  append_op(block, {"sgd",
                    {{"Param", {"w"}}, {"Grad", {"gradient"}}, {"LearningRate", {"rate"}}},
                    {{"ParamOut", {"w"}}},
                    {{"op_role", int32_t{ir::role::kOptimize}}}});
  return program;
}

TEST(DeviceScope, ProgramsOnTwoDevicesAlternate) {
  set_flag("FLAGS_device_plugin", std::string("simdevice"));
  if (!device::Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
  device::Devices::get();
  const auto scope = Scope::make();
  Tensor& w = scope->var("w")->as<Tensor>();
  w.resize(Shape{64}, DType::kFloat32);
  std::fill_n(w.mutable_data<float>(), 64, 0.0f);
  constexpr int kRuns = 200;
  const auto run = [&](Place place) {
    CompileOptions options;
    if (!place.on_host()) options.places = {place};
    CompiledProgram program(counting(), scope, options);
    RunRequest request;
    request.fetch = {"w"};
    for (int i = 0; i < kRuns; ++i) {
      const auto fetched = program.run(request);
      const float* got = std::get<Tensor>(fetched[0][0]).data<float>();
      ASSERT_EQ(std::count(got, got + 64, got[0]), 64) << "a fetched value is whole";
    }
    EXPECT_EQ(program.explain().find("run on a device") == std::string::npos, place.on_host()) << program.explain();
  };
  std::thread on_cpu([&] { run(Place()); });
  std::thread on_device([&] { run(Place::cuda(0)); });
  std::thread on_the_other([&] { run(Place::cuda(1)); });
  for (std::thread* t : {&on_cpu, &on_device, &on_the_other}) t->join();
  Tensor counted;
  counted.copy_from(scope->var("w")->tensor());
  for (int i = 0; i < 64; ++i) EXPECT_EQ(counted.data<float>()[i], 3.0f * kRuns);
}

}  // namespace
}  // namespace anabranch
