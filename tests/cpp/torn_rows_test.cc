// No reader sees a row that mixes two updates: trainers that share a table, another program that reads it meanwhile,
// and copies of table and state. All elements of a row begin alike and get the same gradients, so after every whole
// update they are alike again. Under ThreadSanitizer this is also the proof that rows are touched with their bit only.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <mutex>
#include <set>
#include <thread>

#include "autodiff/backward.h"
#include "core/row_locks.h"
#include "engine/train_loop.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

constexpr int64_t kHeight = 12, kWidth = 512, kIds = 4;

// An update op and its state: names of the inputs, which are those of the outputs up to "Out" unless given.
struct Rule {
  const char* name;
  const char* op;
  std::vector<std::pair<std::string, std::string>> state, scalars;
  AttrMap attrs;
  bool fused;  // the update is done by the op that scatters the gradients
};

void PrintTo(const Rule& rule, std::ostream* out) { *out << rule.name; }

std::vector<Rule> rules() {
  const std::vector<std::pair<std::string, std::string>> moments = {{"Moment1", "Moment1Out"},
                                                                    {"Moment2", "Moment2Out"}},
                                                         powers = {{"Beta1Pow", "Beta1PowOut"},
                                                                   {"Beta2Pow", "Beta2PowOut"}},
                                                         moment = {{"Moment", "MomentOut"}},
                                                         velocity = {{"Velocity", "VelocityOut"}};
  return {
      {"sgd", "sgd", {}, {}, {}, true},
      {"adagrad", "adagrad", moment, {}, {}, true},
      {"adam_lazy", "adam", moments, powers, {{"lazy_mode", true}}, true},
      {"adam", "adam", moments, powers, {}, false},
      {"momentum", "momentum", velocity, {}, {{"mu", 0.5f}}, false},
      {"decayed_adagrad", "decayed_adagrad", moment, {}, {}, false},
      {"rmsprop",
       "rmsprop",
       {{"MeanSquare", "MeanSquareOut"}, {"MeanGrad", "MeanGradOut"}, {"Moment", "MomentOut"}},
       {},
       {{"centered", true}},
       false},
      {"ftrl",
       "ftrl",
       {{"SquaredAccumulator", "SquaredAccumOut"}, {"LinearAccumulator", "LinearAccumOut"}},
       {},
       {{"l1", 0.1f}},
       false},
      {"adadelta",
       "adadelta",
       {{"AvgSquaredGrad", "AvgSquaredGradOut"}, {"AvgSquaredUpdate", "AvgSquaredUpdateOut"}},
       {},
       {},
       false},
  };
}

int64_t id_of(int64_t batch, int64_t slot, int64_t i) { return (batch * 7 + slot * 5 + i * i * 3) % kHeight; }

Tensor ids_of(int64_t batch, int64_t slot, bool sequences) {
  Tensor t({kIds, 1}, DType::kInt64);
  for (int64_t i = 0; i < kIds; ++i) t.mutable_data<int64_t>()[i] = id_of(batch, slot, i);
  if (sequences) t.set_lod(LoD{{0, 1, 1, kIds}});
  return t;
}

class Stream final : public data::BatchStream {
 public:
  // The last batch waits until `watched`, so that the reader has read while the others were trained.
  Stream(int64_t batches, std::function<bool()> watched) : watched_(std::move(watched)), batches_(batches) {
    schema_.slots = {{.name = "plain", .dense = true}, {.name = "left"}, {.name = "right"}};
  }
  bool next(data::Batch* batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || given_ == batches_) return false;
    while (given_ + 1 == batches_ && !watched_()) std::this_thread::yield();
    batch->columns.resize(3);
    for (int64_t s = 0; s < 3; ++s) batch->columns[static_cast<size_t>(s)] = ids_of(given_, s, s > 0);
    batch->rows = 3;
    batch->index = given_++;
    return true;
  }
  void close() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
  }
  const data::Schema& schema() const override { return schema_; }
  data::Statistics statistics() const override { return {}; }
  int64_t rows_expected() const override { return 3 * batches_; }
  double progress() const override { return 0; }

 private:
  data::Schema schema_;
  std::mutex mutex_;
  std::function<bool()> watched_;
  int64_t batches_, given_ = 0;
  bool closed_ = false;
};

// Lookups of one table: plain, and pooled and put side by side as the slots of a ranking model are.
struct Model {
  ir::ProgramRef main = ir::Program::make();
  std::shared_ptr<Scope> scope;
  std::vector<std::string> tables = {"table"};  // and the state of its rows

  Model(std::shared_ptr<Scope> values, const Rule* rule) : scope(std::move(values)) {
    for (const char* name : {"plain", "left", "right"}) slot(name, name[0] != 'p');
    parameter("table", {kHeight, kWidth}, 0.5f, true);
    op("lookup_table", {{"W", {"table"}}, {"Ids", {"plain"}}}, "rows", {{"is_sparse", true}});
    for (const std::string name : {"left", "right"}) {
      op("lookup_table", {{"W", {"table"}}, {"Ids", {name}}}, name + "_rows", {{"is_sparse", true}});
      op("sequence_pool", {{"X", {name + "_rows"}}}, name + "_pooled", {{"pooltype", std::string("SUM")}});
    }
    op("concat", {{"X", {"left_pooled", "right_pooled"}}}, "deep", {{"axis", int32_t{1}}});
    if (!rule) return;
    op("reduce_sum", {{"X", {"rows"}}}, "a", {{"reduce_all", true}});
    op("reduce_sum", {{"X", {"deep"}}}, "b", {{"reduce_all", true}});
    op("elementwise_add", {{"X", {"a"}}, {"Y", {"b"}}}, "loss");
    parameter("rate", {1}, 0.01f, false);
    for (const auto& [param, grad] : append_backward(*main, "loss", {})) update(*rule, param, grad);
  }

  void slot(const std::string& name, bool sequences) {
    ir::Var v;
    v.name = name;
    v.shape = {kUnknown, 1};
    v.dtype = DType::kInt64;
    v.lod_level = sequences;
    v.is_data = v.stop_gradient = v.need_check_feed = true;
    main->global_block().create_var(v);
  }

  void parameter(const std::string& name, Shape shape, float value, bool trained) {
    ir::Var v;
    v.name = name;
    v.shape = shape;
    v.persistable = true;
    v.is_parameter = trained;
    v.stop_gradient = !trained;
    main->global_block().create_var(v);
    if (scope->find_var(name)) return;
    Tensor& t = scope->var(name)->as<Tensor>();
    t.resize(shape, DType::kFloat32);
    std::fill_n(t.mutable_data<float>(), t.numel(), value);
  }

  void op(const std::string& type, std::vector<ir::Slot> in, const std::string& out, AttrMap attrs = {}) {
    append_op(main->global_block(), {type, std::move(in), {{"Out", {out}}}, std::move(attrs)});
  }

  void update(const Rule& rule, const std::string& param, const std::string& grad) {
    std::vector<ir::Slot> in = {{"Param", {param}}, {"Grad", {grad}}};
    if (rule.op != std::string("adadelta")) in.push_back({"LearningRate", {"rate"}});
    std::vector<ir::Slot> out = {{"ParamOut", {param}}};
    for (const auto& [from, to] : rule.state) {
      parameter(from, {kHeight, kWidth}, 0.f, false);
      tables.push_back(from);
      in.push_back({from, {from}});
      out.push_back({to, {from}});
    }
    for (const auto& [from, to] : rule.scalars) {
      parameter(from, {1}, 0.9f, false);
      in.push_back({from, {from}});
      if (!to.empty()) out.push_back({to, {from}});
    }
    AttrMap attrs = rule.attrs;
    attrs["op_role"] = int32_t{ir::role::kOptimize};
    attrs["op_role_var"] = std::vector<std::string>{param, grad};
    append_op(main->global_block(), {rule.op, in, out, attrs});
  }
};

// Rows of an array of any number of tables side by side.
int64_t torn_rows(const Tensor& t) {
  int64_t torn = 0;
  const float* x = t.data<float>();
  for (int64_t r = 0; r < t.numel() / kWidth; ++r) {
    bool same = true;
    for (int64_t k = 1; k < kWidth; ++k) same = same && x[r * kWidth + k] == x[r * kWidth];
    torn += !same;
  }
  return torn;
}

// A separate program that looks up rows while they are trained, as a service next to the training does.
class Reader {
 public:
  explicit Reader(const std::shared_ptr<Scope>& scope) : model_(scope, nullptr), program_(model_.main, scope, {}) {
    read(0);
    thread_ = std::thread([this] {
      for (int64_t batch = 1; !stop_; ++batch) read(batch);
    });
  }
  void end() {
    stop_ = true;
    thread_.join();
  }
  int64_t torn = 0;
  std::atomic<int64_t> runs{0};

 private:
  void read(int64_t batch) {
    RunRequest request;
    request.feeds.emplace_back();
    const char* names[] = {"plain", "left", "right"};
    for (int64_t s = 0; s < 3; ++s) request.feeds[0].emplace_back(names[s], ids_of(batch, s, s > 0));
    request.fetch = {"rows", "deep", "table"};
    for (const Fetched& f : program_.run(request)) torn += torn_rows(std::get<Tensor>(f[0]));
    ++runs;
  }

  Model model_;
  CompiledProgram program_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

class TornRows : public testing::TestWithParam<Rule> {};

TEST_P(TornRows, NoReaderSeesARowThatMixesTwoUpdates) {
  const auto scope = Scope::make();
  Model m(scope, &GetParam());
  std::vector<std::string> fetch = m.tables;
  fetch.insert(fetch.end(), {"rows", "deep"});
  TrainLoop loop(m.main, scope, {3, fetch, 1, 0});
  int64_t torn = 0, seen = 0;
  TrainCallbacks callbacks;
  callbacks.show = [&](int64_t, const std::vector<Fetched>& values, const TrainProgress&) {
    for (const Fetched& f : values) torn += torn_rows(std::get<Tensor>(f[0]));
    ++seen;
  };
  // Held from before the reader's first read until after its last one: it must not be in the middle of a row when the
  // trainers start.
  const RowLocks::Sharing sharing;
  Reader reader(scope);
  Stream stream(200, [&] { return reader.runs > 1; });
  EXPECT_EQ(loop.run(stream, callbacks).batches, 200);
  reader.end();
  EXPECT_EQ(torn, 0) << "seen by a trainer";
  EXPECT_EQ(reader.torn, 0) << "seen by a reader";
  EXPECT_GT(seen, 0);
  EXPECT_GT(reader.runs, 1);
  for (const auto& name : m.tables) EXPECT_EQ(torn_rows(scope->find_var(name)->tensor()), 0) << name;
  EXPECT_NE(scope->find_var("table")->tensor().data<float>()[0], 0.5f);
}

TEST_P(TornRows, TheUpdateIsTheOneThatIsMeant) {
  Model m(Scope::make(), &GetParam());
  CompiledProgram program(m.main, m.scope, {});
  std::set<std::string> ops;
  program.set_probe([&](const std::string& type, int, int) { ops.insert(type); });
  RunRequest request;
  request.feeds = {{{"plain", ids_of(0, 0, false)}, {"left", ids_of(0, 1, true)}, {"right", ids_of(0, 2, true)}}};
  program.run(request);
  EXPECT_EQ(ops.count("fused_embedding_update"), GetParam().fused);
  EXPECT_EQ(ops.count(GetParam().op), !GetParam().fused);
}

INSTANTIATE_TEST_SUITE_P(Rules, TornRows, testing::ValuesIn(rules()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace anabranch
