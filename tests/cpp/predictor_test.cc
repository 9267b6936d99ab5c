// Saved models that are run again and again, by several threads at once.
#include "engine/predictor.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <latch>
#include <thread>

#include "base/error.h"
#include "io/files.h"
#include "ir/serialize.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

constexpr int64_t kWide = 3;

void add_var(ir::Block& block, const std::string& name, const Shape& shape, bool persistable,
             VarKind kind = VarKind::kLoDTensor) {
  ir::Var var;
  var.name = name;
  var.kind = kind;
  var.shape = shape;
  var.persistable = persistable;
  block.create_var(var);
}

// Of files alone: no such op is ever run.
void mark(ir::Block& block, const std::string& type, const std::string& in, const std::string& out) {
  auto op = std::make_shared<ir::Op>();
  op->type = type;
  op->inputs = {{"X", {in}}};
  op->outputs = {{"Out", {out}}};
  op->attrs.emplace("col", 0);
  block.push_op(op);
}

// y = tanh(x w), saved in a folder as Fluid saves it.
std::string saved(const std::string& name, const std::string& op = "tanh") {
  const std::string folder = testing::TempDir() + "/" + name;
  ir::ProgramRef program = ir::Program::make();
  ir::Block& block = program->global_block();
  add_var(block, "x", {kUnknown, kWide}, false);
  add_var(block, "w", {kWide, kWide}, true);
  add_var(block, "feed", {}, true, VarKind::kFeedMinibatch);
  add_var(block, "fetch", {}, true, VarKind::kFetchList);
  append_op(block, {"mul", {{"X", {"x"}}, {"Y", {"w"}}}, {{"Out", {"h"}}}, {}});
  append_op(block, {op, {{op == "print" ? "In" : "X", {"h"}}}, {{"Out", {"y"}}}, {}});
  mark(block, "feed", "feed", "x");
  mark(block, "fetch", "y", "fetch");
  const auto scope = Scope::make();
  Tensor& w = scope->var("w")->as<Tensor>();
  w.resize({kWide, kWide}, DType::kFloat32);
  for (int64_t i = 0; i < w.numel(); ++i) w.mutable_data<float>()[i] = 0.1f * static_cast<float>(i);
  io::FileSet files;
  files.add(folder + "/__model__").write(ir::serialize(*program));
  io::save_vars(*scope, {"w"}, folder, "", &files);
  files.commit();
  return folder;
}

Tensor rows(int64_t n, float value) {
  Tensor x(Shape{n, kWide}, DType::kFloat32);
  std::fill_n(x.mutable_data<float>(), x.numel(), value);
  return x;
}

float expected(float value) { return std::tanh(value * (0.0f + 0.3f + 0.6f)); }

TEST(Predictor, ClonesRunAtTheSameTimeOnTheSameParameters) {
  Predictor first(load_model({saved("clones")}));
  const auto second = first.clone();
  EXPECT_EQ(first.model().scope, second->model().scope);
  std::latch both_inside(2);
  std::atomic<int> met{0};
  for (Predictor* p : {&first, second.get()}) {
    p->program().set_probe([&, met_here = false](const std::string&, int, int) mutable {
      if (std::exchange(met_here, true)) return;
      both_inside.arrive_and_wait();
      ++met;
    });
  }
  std::thread other([&] { second->run(std::vector{rows(2, 1)}); });
  first.run(std::vector{rows(1, 2)});
  other.join();
  EXPECT_EQ(met, 2) << "each waited inside its run for the other";
  for (Predictor* p : {&first, second.get()}) p->program().set_probe({});
  std::vector<std::thread> threads;
  for (Predictor* p : {&first, second.get()}) {
    threads.emplace_back([p] {
      for (int64_t n = 1; n < 50; ++n) {
        const auto value = static_cast<float>(n % 7);
        const Tensor& y = p->run(std::vector{rows(n % 5 + 1, value)})[0];
        ASSERT_EQ(y.shape(), (Shape{n % 5 + 1, kWide}));
        EXPECT_NEAR(y.data<float>()[0], expected(value), 1e-6);
      }
    });
  }
  for (auto& t : threads) t.join();
}

TEST(Predictor, AWrongNumberOfInputsChangesNothing) {
  Predictor p(load_model({saved("count")}));
  EXPECT_THROW(p.run({}), Error);
  EXPECT_THROW(p.run(std::vector{rows(1, 1), rows(1, 1)}), Error);
  EXPECT_THROW(p.run(std::vector{Tensor(Shape{1, kWide + 1}, DType::kFloat32)}), Error);
  EXPECT_NEAR(p.run(std::vector{rows(1, 1)})[0].data<float>()[0], expected(1), 1e-6);
}

TEST(Predictor, AModelThatDoesMoreThanComputeIsRefusedUnlessTrusted) {
  const std::string folder = saved("effects", "print");
  try {
    load_model({folder});
    FAIL() << "it was loaded";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("operator print does more than compute"), std::string::npos) << e.what();
  }
  EXPECT_EQ(load_model({folder, "__model__", "", true}).fetches, std::vector<std::string>{"y"});
}

}  // namespace
}  // namespace anabranch
