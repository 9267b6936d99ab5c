// Loops and branches that do not wait for each other run at once, in block 0 and within a loop, on any number of
// threads with the same result.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "base/flags.h"
#include "base/thread_pool.h"
#include "engine/compiled_program.h"
#include "opdef/append_op.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

std::atomic<int> inside{0}, most{0};

// Says how many of these ops have been at work at once.
AB_OP(test_overlap)
    .doc("Out = X, after a millisecond.")
    .in("X", "[...] float")
    .out("Out", "as X")
    .infer([](InferContext& c) { c.same_as("Out", "X"); })
    .no_grad("for tests")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) {
        const int now = inside.fetch_add(1) + 1;
        for (int seen = most.load(); seen < now && !most.compare_exchange_weak(seen, now);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        c[out].copy_from(c[x]);
        inside.fetch_sub(1);
      };
    });

void add_var(ir::Block& block, const std::string& name, const Shape& shape, DType dtype = DType::kFloat32) {
  ir::Var v;
  v.name = name;
  v.shape = shape;
  v.dtype = dtype;
  block.create_var(v);
}

void constant(ir::Block& block, const std::string& name, DType dtype, float value) {
  append_op(block, {"fill_constant",
                    {},
                    {{"Out", {name}}},
                    {{"shape", std::vector<int64_t>{1}}, {"dtype", static_cast<int32_t>(dtype)}, {"value", value}}});
}

// `out` is scaled by `factor` in each iteration; the counter and the condition are named after it.
void append_loop(ir::Block& block, const std::string& out, int iterations, float factor) {
  const std::string i = out + ".i", n = out + ".n", going_on = out + ".on";
  constant(block, i, DType::kInt64, 0);
  constant(block, n, DType::kInt64, static_cast<float>(iterations));
  append_op(block, {"less_than", {{"X", {i}}, {"Y", {n}}}, {{"Out", {going_on}}}, {}});
  ir::Block& body = block.program().create_block(block.idx());
  append_op(body, {"test_overlap", {{"X", {out}}}, {{"Out", {out + ".t"}}}, {}});
  append_op(body, {"scale", {{"X", {out + ".t"}}}, {{"Out", {out}}}, {{"scale", factor}, {"bias", 0.25f}}});
  append_op(body, {"increment", {{"X", {i}}}, {{"Out", {i}}}, {}});
  append_op(body, {"less_than", {{"X", {i}}, {"Y", {n}}}, {{"Out", {going_on}}}, {}});
  append_op(block, {"while",
                    {{"X", {out, i, n}}, {"Condition", {going_on}}},
                    {{"Out", {out, i, going_on}}, {"StepScopes", {out + ".scopes"}}},
                    {{"sub_block", BlockRef{body.idx()}}}});
}

// Two loops, side by side or, within a third one, in the order of the program.
ir::ProgramRef two_loops(bool nested) {
  auto main = ir::Program::make();
  ir::Block& top = main->global_block();
  for (const char* name : {"a", "b"}) {
    add_var(top, name, {1});
    constant(top, name, DType::kFloat32, 1.0f);
  }
  if (!nested) {
    append_loop(top, "a", 20, 0.5f);
    append_loop(top, "b", 20, 0.75f);
  } else {
    constant(top, "i", DType::kInt64, 0);
    constant(top, "n", DType::kInt64, 4);
    append_op(top, {"less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"on"}}}, {}});
    ir::Block& body = main->create_block(0);
    for (const char* name : {"a", "b"}) {  // the loops stand next to each other
      const std::string i = std::string(name) + ".i", n = std::string(name) + ".n", on = std::string(name) + ".on";
      constant(body, i, DType::kInt64, 0);
      constant(body, n, DType::kInt64, 10);
      append_op(body, {"less_than", {{"X", {i}}, {"Y", {n}}}, {{"Out", {on}}}, {}});
    }
    float factor = 0.5f;
    for (const std::string name : {"a", "b"}) {
      ir::Block& inner = main->create_block(body.idx());
      const std::string i = name + ".i", n = name + ".n", on = name + ".on";
      append_op(inner, {"test_overlap", {{"X", {name}}}, {{"Out", {name + ".t"}}}, {}});
      append_op(inner, {"scale", {{"X", {name + ".t"}}}, {{"Out", {name}}}, {{"scale", factor}, {"bias", 0.25f}}});
      append_op(inner, {"increment", {{"X", {i}}}, {{"Out", {i}}}, {}});
      append_op(inner, {"less_than", {{"X", {i}}, {"Y", {n}}}, {{"Out", {on}}}, {}});
      append_op(body, {"while",
                       {{"X", {name, i, n}}, {"Condition", {on}}},
                       {{"Out", {name, i, on}}, {"StepScopes", {name + ".scopes"}}},
                       {{"sub_block", BlockRef{inner.idx()}}}});
      factor = 0.75f;
    }
    append_op(body, {"increment", {{"X", {"i"}}}, {{"Out", {"i"}}}, {}});
    append_op(body, {"less_than", {{"X", {"i"}}, {"Y", {"n"}}}, {{"Out", {"on"}}}, {}});
    append_op(top, {"while",
                    {{"X", {"a", "b", "i", "n"}}, {"Condition", {"on"}}},
                    {{"Out", {"a", "b", "i", "on"}}, {"StepScopes", {"scopes"}}},
                    {{"sub_block", BlockRef{body.idx()}}}});
  }
  append_op(top, {"sum", {{"X", {"a", "b"}}}, {{"Out", {"y"}}}, {}});
  return main;
}

float run(const ir::ProgramRef& main, int threads) {
  set_flag("FLAGS_measure_threads", false);
  CompileOptions options;
  options.execution.num_threads = threads;
  CompiledProgram program(main, Scope::make(), options);
  RunRequest request;
  request.fetch = {"y"};
  float result = 0;
  most = 0;
  for (int k = 0; k < 3; ++k) result = std::get<Tensor>(program.run(request).at(0).at(0)).data<float>()[0];
  return result;
}

class Blocks : public testing::TestWithParam<bool> {};

TEST_P(Blocks, LoopsThatAreReadyAtOnceRunAtOnce) {
  const auto main = two_loops(GetParam());
  const float alone = run(main, 1);
  EXPECT_EQ(most.load(), 1);
  for (int threads : {2, 7}) {
    EXPECT_EQ(run(main, threads), alone);
    EXPECT_EQ(most.load(), 2) << threads << " threads";
  }
}

INSTANTIATE_TEST_SUITE_P(InBlock0AndInALoop, Blocks, testing::Bool());

}  // namespace
}  // namespace anabranch
