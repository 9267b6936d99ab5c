// The work of a step besides its kernels: a layout that ends early is made again, branches that are ready at once run
// on several threads, and workers without work leave their cores to others.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <new>
#include <thread>

#include "base/flags.h"
#include "base/thread_pool.h"
#include "engine/compiled_program.h"
#include "exec/run.h"
#include "opdef/append_op.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

bool short_of_memory = false;

AB_OP(test_short_of_memory)
    .doc("Out = X, unless a test says that the shape function finds no memory.")
    .in("X", "[...] float")
    .out("Out", "as X")
    .infer([](InferContext& c) {
      if (c.runtime() && short_of_memory) throw std::bad_alloc();
      c.same_as("Out", "X");
    })
    .no_grad("for tests")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      return [x = op.in("X"), out = op.out("Out")](KernelContext& c) { c[out].copy_from(c[x]); };
    });

void add_var(ir::Block& block, const std::string& name, Shape shape, DType dtype = DType::kFloat32) {
  ir::Var v;
  v.name = name;
  v.shape = shape;
  v.dtype = dtype;
  v.is_data = v.stop_gradient = true;
  block.create_var(v);
}

Tensor ones(int64_t rows) {
  Tensor t({rows, 2}, DType::kFloat32);
  std::fill(t.mutable_data<float>(), t.mutable_data<float>() + t.numel(), 1.0f);
  return t;
}

std::vector<float> numbers(const std::vector<Fetched>& fetched) {
  const auto& t = std::get<Tensor>(fetched.at(0).at(0));
  return {t.data<float>(), t.data<float>() + t.numel()};
}

TEST(LayOut, OneThatFoundNoMemoryIsMadeAgain) {
  auto main = ir::Program::make();
  ir::Block& block = main->global_block();
  add_var(block, "x", {kUnknown, 2});
  append_op(block, {"scale", {{"X", {"x"}}}, {{"Out", {"s"}}}, {{"scale", 3.0f}}});
  append_op(block, {"test_short_of_memory", {{"X", {"s"}}}, {{"Out", {"m"}}}, {}});
  append_op(block, {"scale", {{"X", {"m"}}}, {{"Out", {"y"}}}, {{"scale", 2.0f}}});
  CompiledProgram program(main, Scope::make(), {});
  RunRequest request;
  request.fetch = {"y"};
  request.feeds = {{{"x", ones(2)}}};
  EXPECT_EQ(numbers(program.run(request)), std::vector<float>(4, 6.0f));
  request.feeds = {{{"x", ones(500)}}};
  short_of_memory = true;
  try {
    program.run(request);
    ADD_FAILURE() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kResourceExhausted);
    EXPECT_NE(e.text().find("test_short_of_memory"), std::string::npos) << e.text();
  }
  short_of_memory = false;
  EXPECT_EQ(numbers(program.run(request)), std::vector<float>(1000, 6.0f));
}

TEST(Branches, ThoseThatAreReadyAtOnceMayBeginOnSeveralThreads) {
  set_flag("FLAGS_measure_threads", false);
  constexpr int kBranches = 4;
  auto main = ir::Program::make();
  ir::Block& block = main->global_block();
  add_var(block, "x", {kUnknown, 2});
  add_var(block, "yes", {1}, DType::kBool);
  std::vector<std::string> results;
  for (int i = 0; i < kBranches; ++i) {
    const std::string out = "b" + std::to_string(i);
    results.push_back(out);
    add_var(block, out, {kUnknown, 2});
    ir::Block& branch = main->create_block(0);
    append_op(branch, {"scale", {{"X", {"x"}}}, {{"Out", {out}}}, {{"scale", static_cast<float>(i)}}});
    append_op(block, {"conditional_block",
                      {{"Cond", {"yes"}}, {"Input", {"x"}}},
                      {{"Out", {out}}, {"Scope", {}}},
                      {{"sub_block", BlockRef{branch.idx()}}, {"is_scalar_condition", true}}});
  }
  append_op(block, {"sum", {{"X", results}}, {{"Out", {"y"}}}, {}});
  Tensor yes({1}, DType::kBool);
  *yes.mutable_data<bool>() = true;
  CompileOptions options;
  options.execution.num_threads = 2;
  for (int i = 0; i < 20; ++i) {  // each program starts its branches once
    CompiledProgram program(main, Scope::make(), options);
    RunRequest request;
    request.fetch = {"y"};
    request.feeds = {{{"x", ones(3)}, {"yes", yes}}};
    for (int k = 0; k < 2; ++k) EXPECT_EQ(numbers(program.run(request)), std::vector<float>(6, 6.0f));
  }
}

constexpr double kNode = 0.4;  // seconds

double cpu_seconds() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

TEST(ThreadPool, WorkersThatWaitForALongNodeSleep) {
  std::vector<NodeSpec> specs(3);
  for (int i = 0; i < 3; ++i) specs[static_cast<size_t>(i)].writes = {i};
  specs[0].kernel = [](KernelContext&) { std::this_thread::sleep_for(std::chrono::duration<double>(kNode)); };
  for (size_t i : {1, 2}) specs[i].kernel = [](KernelContext&) {};
  Plan plan(std::move(specs));
  RunState state(plan);
  const double before = cpu_seconds();
  run_threaded(plan, state, ThreadPool::of_size(2), {});
  EXPECT_LT(cpu_seconds() - before, kNode / 2);
}

}  // namespace
}  // namespace anabranch
