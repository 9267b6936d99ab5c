// A program that uses the variables of another one's replicas: they do not change while it runs.
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "base/run_gate.h"
#include "engine/compiled_program.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

ir::ProgramRef doubled() {
  ir::ProgramRef program = ir::Program::make();
  ir::Var x;
  x.name = "x";
  x.shape = {kUnknown, 2};
  x.is_data = true;
  program->global_block().create_var(x);
  append_op(program->global_block(), {"scale", {{"X", {"x"}}}, {{"Out", {"y"}}}, {{"scale", 2.0f}}});
  return program;
}

TEST(ShareVars, TheScopeOfTheOtherProgramIsInUseToo) {
  const auto lent = Scope::make(), own = Scope::make();
  CompileOptions options;
  options.replicas = 2;
  options.data_parallel = true;
  CompiledProgram lender(doubled(), lent, options);
  options.share_vars_from = &lender;
  CompiledProgram borrower(doubled(), own, options);
  std::atomic<int> asked{0};
  borrower.set_probe([&](const std::string&, int, int) {
    std::thread other([&] {
      for (const auto& scope : {lent, own}) {
        if (scope->gate().try_begin_change() == RunGate::Begun::kBusy) ++asked;
      }
    });
    other.join();
  });
  Tensor fed(Shape{4, 2}, DType::kFloat32);
  std::fill_n(fed.mutable_data<float>(), 8, 3.0f);
  RunRequest request;
  request.feeds = {{{"x", fed}}};
  request.fetch = {"y"};
  const auto fetched = borrower.run(request);
  EXPECT_EQ(std::get<Tensor>(merge_fetched(fetched[0], "y")).data<float>()[7], 6.0f);
  EXPECT_EQ(asked, 2 * 2) << "both scopes in the node of either replica";
  for (const auto& scope : {lent, own}) {
    EXPECT_EQ(scope->gate().try_begin_change(), RunGate::Begun::kYes);
    scope->gate().end_change();
  }
}

}  // namespace
}  // namespace anabranch
