// Passes over a stream of batches: one trainer as if fed by hand, several that share the rows of a table, errors, ends.
// Gradients are one and the rate is one, so a value counts the updates it got: a lost, doubled or torn one shows.
#include "engine/train_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "autodiff/backward.h"
#include "base/thread_pool.h"
#include "engine/trainer_states.h"
#include "opdef/append_op.h"

namespace anabranch {
namespace {

constexpr int64_t kHeight = 8, kWidth = 2050;

// Batches of three ids, made from their number.
class Stream final : public data::BatchStream {
 public:
  explicit Stream(int64_t batches) : batches_(batches) {
    schema_.slots = {{.name = "ids", .dtype = DType::kInt64, .dense = true}};
  }
  int64_t bad_batch = -1;  // an id of it is out of range
  int64_t broken_at = -1;  // the reader fails before it

  bool next(data::Batch* batch) override {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed_ || given_ == batches_) return false;
    AB_CHECK(given_ != broken_at, InvalidArgument, "part-0:7: not a number");
    batch->columns.resize(1);
    batch->columns[0] = Tensor({3, 1}, DType::kInt64);
    for (int64_t i = 0; i < 3; ++i) batch->columns[0].mutable_data<int64_t>()[i] = id_of(given_, i);
    if (given_ == bad_batch) batch->columns[0].mutable_data<int64_t>()[1] = kHeight;
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
  double progress() const override { return 0.5; }

  static int64_t id_of(int64_t batch, int64_t i) { return (batch * 7 + i * i * 3) % kHeight; }

 private:
  data::Schema schema_;
  std::mutex mutex_;
  int64_t batches_, given_ = 0;
  bool closed_ = false;
};

struct Counting {
  ir::ProgramRef main = ir::Program::make();
  std::shared_ptr<Scope> scope = Scope::make();

  void parameter(const std::string& name, Shape shape, bool trained) {
    ir::Var v;
    v.name = name;
    v.shape = shape;
    v.persistable = true;
    v.is_parameter = trained;
    v.stop_gradient = !trained;
    main->global_block().create_var(v);
    Tensor& t = scope->var(name)->as<Tensor>();
    t.resize(shape, DType::kFloat32);
    std::fill_n(t.mutable_data<float>(), t.numel(), trained ? 0.f : 1.f);
  }

  explicit Counting(const std::string& rule = "sgd") {
    ir::Block& b = main->global_block();
    ir::Var ids;
    ids.name = "ids";
    ids.shape = {kUnknown, 1};
    ids.dtype = DType::kInt64;
    ids.is_data = ids.stop_gradient = ids.need_check_feed = true;
    b.create_var(ids);
    parameter("table", {kHeight, kWidth}, true);
    parameter("dense", {5}, true);
    parameter("rate", {1}, false);
    append_op(b, {"lookup_table", {{"W", {"table"}}, {"Ids", {"ids"}}}, {{"Out", {"rows"}}}, {{"is_sparse", true}}});
    append_op(b, {"reduce_sum", {{"X", {"rows"}}}, {{"Out", {"a"}}}, {{"reduce_all", true}}});
    append_op(b, {"reduce_sum", {{"X", {"dense"}}}, {{"Out", {"b"}}}, {{"reduce_all", true}}});
    append_op(b, {"elementwise_add", {{"X", {"a"}}, {"Y", {"b"}}}, {{"Out", {"loss"}}}, {}});
    for (const auto& [param, grad] : append_backward(*main, "loss", {})) update(rule, param, grad);
  }

  void update(const std::string& rule, const std::string& param, const std::string& grad) {
    std::vector<ir::Slot> in = {{"Param", {param}}, {"Grad", {grad}}, {"LearningRate", {"rate"}}};
    std::vector<ir::Slot> out = {{"ParamOut", {param}}};
    if (rule != "sgd") {
      const std::string slot = rule == "adagrad" ? "Moment" : "Velocity", moment = param + "_moment";
      parameter(moment, main->global_block().find_var(param)->shape, false);
      Tensor& t = scope->var(moment)->as<Tensor>();
      std::fill_n(t.mutable_data<float>(), t.numel(), 0.f);
      in.push_back({slot, {moment}});
      out.push_back({slot + "Out", {moment}});
    }
    append_op(main->global_block(),
              {rule,
               in,
               out,
               {{"op_role", int32_t{ir::role::kOptimize}}, {"op_role_var", std::vector<std::string>{param, grad}}}});
  }

  std::vector<float> values(const std::string& name) const {
    const Tensor& t = scope->find_var(name)->tensor();
    return {t.data<float>(), t.data<float>() + t.numel()};
  }
};

std::vector<float> expected_table(int64_t batches) {
  std::vector<float> table(kHeight * kWidth);
  for (int64_t b = 0; b < batches; ++b) {
    for (int64_t i = 0; i < 3; ++i) {
      for (int64_t k = 0; k < kWidth; ++k) table[Stream::id_of(b, i) * kWidth + k] -= 1;
    }
  }
  return table;
}

TrainLoopOptions options(int trainers, std::vector<std::string> fetch = {}, int64_t show_every = 1) {
  return {trainers, std::move(fetch), show_every, 0};
}

// More values wait than are kept ahead, so the trainer waits for the caller, which waits for the program.
TEST(TrainLoop, ShowMayRunTheProgramItself) {
  Counting m;
  CompiledProgram program(m.main, m.scope, {});
  TrainLoop loop(program, m.main, options(1, {"loss"}, 1));
  Stream stream(200);
  Tensor ids({1, 1}, DType::kInt64);
  ids.mutable_data<int64_t>()[0] = 0;
  int64_t shown = 0;
  TrainCallbacks callbacks;
  callbacks.show = [&](int64_t batch, const std::vector<Fetched>&, const TrainProgress&) {
    if (batch == 1) std::this_thread::sleep_for(std::chrono::milliseconds(300));
    ++shown;
    EXPECT_EQ(program.run({.feeds = {{{"ids", ids}}}, .fetch = {"loss"}}).size(), 1u);
  };
  EXPECT_EQ(loop.run(stream, callbacks).batches, 200);
  EXPECT_EQ(shown, 200);
  EXPECT_EQ(m.values("dense")[0], -400.f);
}

TEST(TrainLoop, TrainersAreLimited) {
  Counting m;
  EXPECT_THROW(TrainLoop(m.main, m.scope, options(20000)), Error);
  EXPECT_THROW(TrainLoop(m.main, m.scope, options(0)), Error);
  EXPECT_THROW(TrainLoop(m.main, m.scope, options(ThreadPool::kMaxWorkers + 1)), Error);
  EXPECT_NO_THROW(TrainLoop(m.main, m.scope, options(ThreadPool::kMaxWorkers)));
}

TEST(TrainLoop, OneTrainerCountsEveryBatchAndShowsItsValues) {
  Counting m;
  CompiledProgram program(m.main, m.scope, {});
  TrainLoop loop(program, m.main, options(1, {"loss"}, 10));
  Stream stream(95);
  std::vector<int64_t> shown;
  TrainCallbacks callbacks;
  callbacks.show = [&](int64_t batch, const std::vector<Fetched>& values, const TrainProgress&) {
    shown.push_back(batch);
    EXPECT_EQ(values.size(), 1u);
  };
  const TrainProgress done = loop.run(stream, callbacks);
  EXPECT_EQ(done.batches, 95);
  EXPECT_EQ(done.rows, 285);
  EXPECT_EQ(m.values("table"), expected_table(95));
  EXPECT_EQ(m.values("dense"), std::vector<float>(5, -95));
  ASSERT_FALSE(shown.empty());
  for (int64_t batch : shown) EXPECT_EQ(batch % 10, 0);
}

TEST(TrainLoop, TrainersLoseNoUpdateAndTearNoRow) {
  for (int trainers : {2, 3}) {
    Counting m;
    TrainLoop loop(m.main, m.scope, options(trainers, {"rows"}));
    for (int pass = 1; pass <= 2; ++pass) {
      Stream stream(4000);
      TrainCallbacks callbacks;
      callbacks.show = [](int64_t, const std::vector<Fetched>& values, const TrainProgress&) {
        const Tensor& rows = std::get<Tensor>(values[0][0]);
        for (int64_t r = 0; r < rows.rows(); ++r) {
          const float* row = rows.data<float>() + r * kWidth;
          for (int64_t k = 1; k < kWidth; ++k) ASSERT_EQ(row[k], row[0]) << "a row mixes two updates";
        }
      };
      const TrainProgress done = loop.run(stream, callbacks);
      EXPECT_EQ(done.batches, 4000);
      EXPECT_EQ(done.rows, 3 * 4000);
      auto expected = expected_table(4000);
      for (float& w : expected) w *= static_cast<float>(pass);
      EXPECT_EQ(m.values("table"), expected);
      EXPECT_EQ(m.values("dense"), std::vector<float>(5, -4000.f * static_cast<float>(pass)));
    }
  }
}

TEST(TrainLoop, StateOfRowsIsSharedToo) {
  Counting m("adagrad");
  for (const StateVar& v : state_of(*m.main)) {
    const bool rows = v.name.starts_with("table");
    EXPECT_EQ(v.merging == Merging::kNone, rows || v.name == "rate") << v.name;
  }
  TrainLoop loop(m.main, m.scope, options(2));
  Stream stream(500);
  loop.run(stream, {});
  std::vector<float> expected(kHeight * kWidth);  // the sum of squares of what a batch gives a row
  for (int64_t b = 0; b < 500; ++b) {
    for (int64_t row = 0; row < kHeight; ++row) {
      int64_t times = 0;
      for (int64_t i = 0; i < 3; ++i) times += Stream::id_of(b, i) == row;
      for (int64_t k = 0; k < kWidth; ++k) expected[row * kWidth + k] += static_cast<float>(times * times);
    }
  }
  EXPECT_EQ(m.values("table_moment"), expected);
  EXPECT_EQ(m.values("dense_moment"), std::vector<float>(5, 500));
}

TEST(TrainLoop, ARuleThatTakesAllRowsTrainsCopies) {
  Counting m("lars_momentum");
  for (const StateVar& v : state_of(*m.main)) EXPECT_EQ(v.merging == Merging::kNone, v.name == "rate") << v.name;
  TrainLoop loop(m.main, m.scope, options(2));
  Stream stream(50);
  EXPECT_EQ(loop.run(stream, {}).batches, 50);
}

TEST(TrainLoop, TheFirstErrorEndsThePass) {
  for (int trainers : {1, 3}) {
    for (bool of_reader : {false, true}) {
      Counting m;
      CompiledProgram program(m.main, m.scope, {});
      TrainLoop loop =
          trainers == 1 ? TrainLoop(program, m.main, options(1)) : TrainLoop(m.main, m.scope, options(trainers));
      Stream broken(1000);
      (of_reader ? broken.broken_at : broken.bad_batch) = 500;
      try {
        loop.run(broken, {});
        FAIL() << "no error";
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find(of_reader ? "part-0:7" : "lookup_table"), std::string::npos) << e.what();
      }
      Stream whole(10);
      EXPECT_EQ(loop.run(whole, {}).batches, 10);
    }
  }
}

TEST(TrainLoop, ACallbackThatThrowsEndsThePass) {
  Counting m;
  TrainLoop loop(m.main, m.scope, options(2));
  Stream endless(int64_t{1} << 60);
  TrainCallbacks callbacks;
  callbacks.tick = [](const TrainProgress& p) {
    if (p.batches > 0) throw std::runtime_error("enough");
  };
  EXPECT_THROW(loop.run(endless, callbacks), std::runtime_error);
  EXPECT_EQ(m.values("dense")[0], m.values("dense")[4]);
}

}  // namespace
}  // namespace anabranch
