// A steady step wastes nothing: between entering the plan and leaving it there is no call to the heap, none to a lock,
// and no more waking than one for each parked worker. Real programs, written by Fluid 1.8.5, with their gradients and
// updates.
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <mutex>
#include <random>

#include "base/flags.h"
#include "base/thread_pool.h"
#include "data/row_inputs.h"
#include "engine/prepared_run.h"
#include "ir/serialize.h"
#include "steady/calls.h"

namespace anabranch {
namespace {

constexpr int kWarmUp = 40;  // past the runs in which threads are tried
constexpr int kRuns = 50;

ir::ProgramRef read_program(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(bytes.empty()) << path;
  return ir::parse_program(bytes);
}

struct Input {
  std::string name;
  Shape shape;
  int64_t below = 0;  // integers in [0, below); 0: floats
  bool sequences = false;
};

Tensor make(const Input& in, std::mt19937& random) {
  Tensor t(in.shape, in.below ? DType::kInt64 : DType::kFloat32);
  for (int64_t i = 0; i < t.numel(); ++i) {
    if (in.below)
      t.mutable_data<int64_t>()[i] = static_cast<int64_t>(random() % static_cast<uint64_t>(in.below));
    else
      t.mutable_data<float>()[i] = static_cast<float>(random() % 1000) / 1000;
  }
  if (in.sequences) {
    LoD lod(1);
    for (int64_t i = 0; i <= t.rows(); ++i) lod[0].push_back(static_cast<size_t>(i));
    t.set_lod(lod);
  }
  return t;
}

struct Case {
  std::string golden, loss;
  std::vector<Input> inputs;
  int library_allocations = 0;  // at most, in a run: that of the kernel library is beyond us, and differs by processor
  int replicas = 1;
  ReduceMode mode = ReduceMode::kAllReduce;
};

void train(const Case& c, bool threads_without_asking) {
  if (!steady::can_count()) GTEST_SKIP() << "a sanitizer counts these calls itself";
  set_flag("FLAGS_measure_threads", !threads_without_asking);
  const std::string folder = "tests/golden/data/" + c.golden + "/";
  const auto scope = Scope::make();
  CompiledProgram(read_program(folder + "startup.pb"), scope, {}).run({});
  CompileOptions options;
  options.replicas = c.replicas;
  options.data_parallel = c.replicas > 1;
  options.loss_name = c.replicas > 1 ? c.loss : "";
  options.build.reduce_strategy = c.mode;
  CompiledProgram program(read_program(folder + "main.pb"), scope, options);
  std::vector<std::string> names;
  std::vector<Tensor> batch;
  std::mt19937 random(3);
  for (const Input& in : c.inputs) {
    names.push_back(in.name);
    batch.push_back(make(in, random));
  }
  PreparedRun run(program, names, {c.loss});
  for (int i = 0; i < kWarmUp; ++i) run.run(batch, nullptr, [](const Step&) {});
  program.set_plan_hook(&steady::count);
  auto& calls = steady::calls();
  calls.allocations = calls.library_allocations = calls.locks = calls.waits = calls.wakes = 0;
  for (int i = 0; i < kRuns; ++i) run.run(batch, nullptr, [](const Step&) {});
  EXPECT_EQ(calls.allocations, 0);
  EXPECT_EQ(calls.locks, 0);
  EXPECT_LE(calls.wakes, kRuns * ThreadPool::of_size(0).workers());
  EXPECT_LE(calls.library_allocations, kRuns * c.library_allocations * c.replicas);
  testing::Test::RecordProperty("library_allocations_a_run", calls.library_allocations / kRuns);
}

const Case kLine{"fit_a_line", "mean_0.tmp_0", {{"x", {20, 13}}, {"y", {20, 1}}}};
const Case kMlp{"mnist_mlp", "mean_0.tmp_0", {{"img", {64, 36}}, {"label", {64, 1}, 4}}, 80};
const Case kConv{"mnist_conv", "mean_0.tmp_0", {{"img", {8, 1, 14, 14}}, {"label", {8, 1}, 4}}, 160};

Case ctr() {
  Case c{"ctr_dnn.lazy", "reduce_mean_0.tmp_0", {{"dense", {16, 4}}, {"click", {16, 1}, 2}}, 32};
  for (int s = 0; s < 26; ++s) c.inputs.push_back({"s" + std::to_string(s), {16, 1}, 500, true});
  return c;
}

Case on_replicas(Case c, int replicas, ReduceMode mode) {
  c.replicas = replicas;
  c.mode = mode;
  return c;
}

TEST(Steady, CountsWhatItShould) {
  if (!steady::can_count()) GTEST_SKIP();
  const int before = steady::calls().allocations;
  steady::count(true);
  delete new std::string(100, 'x');
  std::mutex mutex;
  mutex.lock();
  mutex.unlock();
  steady::count(false);
  EXPECT_GE(steady::calls().allocations, before + 2);
  EXPECT_GE(steady::calls().locks, 1);
}

// Raw rows become the inputs of a model: 13 numbers, 26 hashed texts, a list.
TEST(Steady, RawRows) {
  if (!steady::can_count()) GTEST_SKIP();
  std::string features = R"({"name": "l", "type": "text", "columns": ["l"], "split": "|", "steps": [["hash", 9]]})";
  data::Schema slots;
  slots.slots.push_back({"l", DType::kInt64});
  for (int i = 0; i < 39; ++i) {
    const bool number = i < 13;
    features += fmt::format(R"(, {{"name": "c{0}", "type": "{1}", "columns": ["c{0}"], "steps": [{2}]}})", i,
                            number ? "number" : "text", number ? R"(["missing", 0], ["log"])" : R"(["hash", 1000])");
    slots.slots.push_back({fmt::format("c{}", i), number ? DType::kFloat32 : DType::kInt64, true, Shape{1}});
  }
  data::RowInputs rows(
      R"({"version": 1, "separator": ",", "header": true, "ragged": false, "features": [)" + features + "]}", slots);
  std::vector<std::string_view> values(40, "12.5");
  values[0] = "a|b|c";
  for (int run = 0; run < 2 * kRuns; ++run) {
    if (run == kRuns) {
      steady::calls().allocations = 0;
      steady::calls().locks = 0;
      steady::count(true);
    }
    rows.clear();
    for (int row = 0; row < 3; ++row) rows.add(values);
    ASSERT_EQ(rows.tensors()[0].rows(), 9);
  }
  steady::count(false);
  EXPECT_EQ(steady::calls().allocations, 0);
  EXPECT_EQ(steady::calls().locks, 0);
}

TEST(Steady, Regression) { train(kLine, false); }
TEST(Steady, Perceptron) { train(kMlp, false); }
TEST(Steady, Convolutions) { train(kConv, false); }
TEST(Steady, ClickThrough) { train(ctr(), false); }
TEST(Steady, PerceptronOnTwoReplicas) { train(on_replicas(kMlp, 2, ReduceMode::kAllReduce), true); }
TEST(Steady, PerceptronOnTwoReplicasReduced) { train(on_replicas(kMlp, 2, ReduceMode::kReduce), true); }
TEST(Steady, ClickThroughOnTwoReplicas) { train(on_replicas(ctr(), 2, ReduceMode::kAllReduce), true); }

}  // namespace
}  // namespace anabranch
