// GEO: trainers that train alone and exchange differences, over channels that lose messages.
#include <gtest/gtest.h>

#include <thread>

#include "base/flags.h"
#include "device/devices.h"
#include "ps/geo.h"
#include "ps_cluster.h"

namespace anabranch::ps {
namespace {

constexpr int64_t kRows = 6, kWidth = 2;

// A tensor "a" of 4 numbers, and a table "b" of rows. Differences are added to them, and remembered.
class GeoStore final : public Store {
 public:
  GeoStore() {
    dense.resize(Shape{4}, DType::kFloat32);
    table.resize(Shape{kRows, kWidth}, DType::kFloat32);
    for (int i = 0; i < 4; ++i) dense.mutable_data<float>()[i] = 1;
    for (int i = 0; i < kRows * kWidth; ++i) table.mutable_data<float>()[i] = static_cast<float>(i);
  }
  uint32_t number(std::string_view name) const override {
    return static_cast<uint32_t>(name.at(0) - 'a') + (name.ends_with(".delta") ? 2 : 0);
  }
  std::string name(uint32_t number) const override { return fmt::format("variable {}", number); }
  uint32_t table_of(uint32_t gradient) const override { return gradient == 3 ? 1 : gradient; }
  void apply(std::span<const Change> changes) override {
    for (const Change& c : changes) {
      if (!c.rows) {
        for (int i = 0; i < 4; ++i) dense.mutable_data<float>()[i] += c.dense.data<float>()[i];
        continue;
      }
      for (size_t r = 0; r < c.rows->rows.size(); ++r) {
        for (int64_t k = 0; k < kWidth; ++k) {
          table.mutable_data<float>()[c.rows->rows[r] * kWidth + k] +=
              c.rows->value.data<float>()[static_cast<int64_t>(r) * kWidth + k];
        }
      }
    }
  }
  uint32_t variables() const override { return 4; }
  void read(uint32_t variable, Message* into) const override { into->add(variable, variable == 0 ? dense : table); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    auto* to =
        static_cast<float*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), kWidth}, DType::kFloat32));
    rows_sent += static_cast<int64_t>(ids.size());
    for (const int64_t id : ids) {
      for (int64_t k = 0; k < kWidth; ++k) *to++ = table.data<float>()[id * kWidth + k];
    }
  }
  std::vector<std::string> kept() const override { return {"a", "b"}; }
  std::unique_ptr<Saving> begin_save() const override {
    auto saving = std::make_unique<SavedCopies>();
    saving->add("a", dense);
    saving->add("b", table);
    return saving;
  }
  void load(const std::string& name, const Tensor& value) override { (name == "a" ? dense : table).copy_from(value); }

  Tensor dense, table;
  mutable int64_t rows_sent = 0;
};

struct GeoCluster {
  GeoStore store;
  std::unique_ptr<Server> server;
  std::unique_ptr<Listener> listener;
  std::shared_ptr<Timer> timer = std::make_shared<ThreadTimer>();

  explicit GeoCluster(int trainers) {
    ServerOptions o;
    o.name = "geo:0";
    o.mode = Mode::kGeo;
    o.trainers = trainers;
    server = std::make_unique<Server>(o, store);
    listener = local_transport().listen(o.name,
                                        [this](MessageRef m, Answer a) { server->handle(std::move(m), std::move(a)); });
  }
};

// A trainer's variables, and its steps: w changes by what is given.
struct GeoTrainer {
  std::unique_ptr<Client> client;
  std::shared_ptr<Value> w, rows;
  std::unique_ptr<Geo> geo;

  GeoTrainer(GeoCluster& cluster, uint32_t number, int trainers, int64_t every, int loss_percent = 0)
      : w(std::make_shared<Value>(std::make_shared<RunGate>())), rows(std::make_shared<Value>(w->gate())) {
    LinkOptions o;
    o.trainer = number;
    o.incarnation = 100 + number;
    o.first_pause = o.longest_pause = Milliseconds(1);
    client = std::make_unique<Client>(
        o,
        [=](const std::string& endpoint) -> std::shared_ptr<Channel> {
          return std::make_shared<Lossy>(local_transport().connect(endpoint), number + 1, loss_percent);
        },
        cluster.timer);
    const auto shard = [&](const std::string& name, int64_t n) {
      return GeoVariable::Shard{client->remote("geo:0", name + ".delta"), client->remote("geo:0", name), n};
    };
    geo = std::make_unique<Geo>(
        *client, GeoOptions{trainers, every},
        std::vector<GeoVariable>{{"a", w, false, {shard("a", 4)}}, {"b", rows, true, {shard("b", kRows)}}});
    w->as<Tensor>().copy_from(cluster.store.dense);
    rows->as<Tensor>().copy_from(cluster.store.table);
    geo->begin();
  }
  void step(float dense, std::vector<int64_t> ids, float change) {
    const RunGate::Run running(*w->gate());
    for (int i = 0; i < 4; ++i) w->as<Tensor>().mutable_data<float>()[i] += dense;
    for (const int64_t id : ids) rows->as<Tensor>().mutable_data<float>()[id * kWidth] += change;
    geo->note("b", ids);
    geo->end_local_step();
  }
  float dense(int i = 0) const { return w->tensor().data<float>()[i]; }
  float row(int64_t id) const { return rows->tensor().data<float>()[id * kWidth]; }
};

TEST(PsGeo, OneTrainerThatExchangesEachStepIsAlone) {
  GeoCluster cluster(1);
  GeoTrainer t(cluster, 0, 1, 1, 20);
  for (int step = 1; step <= 50; ++step) {
    t.step(0.1F, {step % kRows, 1}, 0.7F);
    t.geo->flush();
    float w = 1;
    for (int i = 0; i < step; ++i) w += 0.1F;
    ASSERT_EQ(t.dense(), w) << step;
    ASSERT_NEAR(cluster.store.dense.data<float>()[3], w, 1e-5);
    ASSERT_NEAR(cluster.store.table.data<float>()[kWidth], t.row(1), 1e-4);
  }
  const auto counts = t.geo->counts();
  EXPECT_EQ(counts[0].second, 50);
  EXPECT_GE(counts[1].second, 50);
}

// A program of a device has left the parameters there: exchanges bring them back.
TEST(PsGeo, ParametersOnADevice) {
  set_flag("FLAGS_device_plugin", std::string("simdevice"));
  if (!device::Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
  GeoCluster cluster(1);
  GeoTrainer t(cluster, 0, 1, 100);
  const auto move = [](Value& value) {
    const RunGate::Change change(value.gate().get());
    Tensor there;
    there.copy_from(value.tensor(), Place::cuda(0));
    value.as<Tensor>() = std::move(there);
  };
  t.step(1, {0, 2}, 8);
  move(*t.w);
  move(*t.rows);
  Message sent(Verb::kExchange);
  sent.add(0, t.w->tensor());
  EXPECT_EQ(reinterpret_cast<const float*>(sent.payload(0))[3], 2);
  t.geo->flush();
  EXPECT_EQ(t.w->tensor().place(), Place());
  EXPECT_EQ(cluster.store.dense.data<float>()[3], 2);
  EXPECT_EQ(cluster.store.table.data<float>()[2 * kWidth], 2 * 2 + 8);
  EXPECT_EQ(t.dense(), 2);
  EXPECT_EQ(t.row(0), 8);
}

// Each sends its share of what is new, and keeps the rest of it.
TEST(PsGeo, TwoWorkersAlternate) {
  GeoCluster cluster(2);
  GeoTrainer first(cluster, 0, 2, 1), second(cluster, 1, 2, 1);
  first.step(1, {0, 2}, 8);
  first.geo->flush();
  EXPECT_EQ(cluster.store.dense.data<float>()[0], 1.5F);
  EXPECT_EQ(cluster.store.table.data<float>()[0], 4);
  EXPECT_EQ(first.dense(), 2);  // its own half that was not sent stays
  second.step(4, {1}, 2);
  second.geo->flush();
  EXPECT_EQ(cluster.store.dense.data<float>()[0], 3.5F);
  EXPECT_EQ(second.dense(), 1 + 4 + 0.5F);
  EXPECT_EQ(second.row(0), 4);  // changed by the other one
  EXPECT_EQ(second.row(2), 2 * 2 + 4);
  EXPECT_EQ(cluster.store.rows_sent, 2 + 3);
  first.step(0, {3}, 2);
  first.geo->flush();
  EXPECT_EQ(cluster.store.dense.data<float>()[0], 3.75F);  // half of the half that was left
  EXPECT_EQ(first.dense(), 2 + 2);
  EXPECT_EQ(first.row(1), 2 + 1);
  EXPECT_EQ(cluster.store.rows_sent, 2 + 3 + 2);  // rows 1 and 3: those that are new to it
}

// Messages may be lost on the way: servers hold what was sent, and in the end everyone's share of it.
TEST(PsGeo, NothingIsLostOrAddedTwice) {
  constexpr int kTrainers = 4, kSteps = 64;
  GeoCluster cluster(kTrainers);
  std::vector<std::unique_ptr<GeoTrainer>> trainers;
  for (uint32_t t = 0; t < kTrainers; ++t) {
    trainers.push_back(std::make_unique<GeoTrainer>(cluster, t, kTrainers, 4, 20));
  }
  std::vector<std::thread> threads;
  for (auto& t : trainers) {
    threads.emplace_back([&t] {
      for (int step = 0; step < kSteps; ++step) t->step(1, {step % kRows}, 1);
      t->geo->flush();
    });
  }
  for (auto& t : threads) t.join();
  // The difference of a trainer from the server is what it has not sent; the sum of all is what was learned, in full.
  for (auto& t : trainers) t->geo->flush();
  double left = 0;
  for (int round = 0; round < 200; ++round) {
    for (auto& t : trainers) {
      t->step(0, {0, 1, 2, 3, 4, 5}, 0);
      t->geo->flush();
    }
  }
  for (auto& t : trainers) left += std::abs(t->dense() - cluster.store.dense.data<float>()[0]);
  EXPECT_LT(left, 1e-2);
  EXPECT_NEAR(cluster.store.dense.data<float>()[0], 1 + kTrainers * kSteps, 1e-2);
  double rows = 0;
  for (int64_t id = 0; id < kRows; ++id) rows += cluster.store.table.data<float>()[id * kWidth];
  EXPECT_NEAR(rows, 2.0 * kRows * (kRows - 1) / 2 + kTrainers * kSteps, 1e-1);
  EXPECT_GT(cluster.server->stats().repeated, 0);
}

TEST(PsGeo, ErrorsAreReportedAtTheNextStep) {
  GeoCluster cluster(1);
  GeoTrainer t(cluster, 0, 1, 1);
  EXPECT_THROW(t.geo->note("a", {}), Error);
  const int64_t beyond[] = {kRows};
  EXPECT_THROW(t.geo->note("b", beyond), Error);
  {
    const RunGate::Change change(t.w->gate().get());
    t.w->as<Tensor>().resize(Shape{3}, DType::kFloat32);
  }
  t.geo->end_local_step();
  EXPECT_THROW(t.geo->flush(), Error);
  EXPECT_THROW(t.geo->end_local_step(), Error);
  EXPECT_THROW(Geo(*t.client, GeoOptions{0, 1}, {}), Error);
  EXPECT_THROW(Geo(*t.client, GeoOptions{1, 0}, {}), Error);
}

}  // namespace
}  // namespace anabranch::ps
