// A step of a worker in each mode of its servers, as the ops see it.
#include "ps/exchanger.h"

#include <gtest/gtest.h>

#include <array>
#include <future>
#include <tuple>

#include "ps/background_exchanger.h"
#include "ps_cluster.h"

namespace anabranch::ps {
namespace {

using Taken = Exchanger::Taken;

template <class Ends> void wait_for(const Ends& ends) {
  std::promise<std::exception_ptr> over;
  ends([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  if (const auto error = over.get_future().get()) std::rethrow_exception(error);
}

struct Worker {
  explicit Worker(Mode mode) : cluster(1, 1, mode) { client->subscribe(a); }

  Cluster cluster;
  std::unique_ptr<Client> client = cluster.client(0);
  Remote a = client->remote("toy:0", "a");
  Client::Batch own{*client};
  uint64_t seen = 0;
  Tensor value;

  Exchanger& exchanger() { return client->exchanger(a); }
  Taken take() { return exchanger().take(a, &seen, &value); }
  float server_has() const { return cluster.stores[0]->values_[0].data<float>()[0]; }
};

TEST(PsExchanger, GradientsOfASyncStepLeaveAtItsEnd) {
  Worker w(Mode::kSync);
  EXPECT_EQ(&w.exchanger(), &w.client->exchanger());
  for (uint64_t step = 1; step <= 3; ++step) {
    w.exchanger().push(w.a, filled(-1), &w.own);
    EXPECT_TRUE(w.own.empty());
    EXPECT_EQ(w.server_has(), static_cast<float>(step - 1));
    wait_for([&](const Client::Done& done) { w.exchanger().end_step(done); });
    EXPECT_EQ(w.server_has(), static_cast<float>(step));
    EXPECT_EQ(w.take(), Taken::kNew);
    EXPECT_EQ(std::tuple(w.seen, w.value.data<float>()[0]), std::tuple(step, static_cast<float>(step)));
    EXPECT_EQ(w.take(), Taken::kUnknown);  // each answer once
  }
}

TEST(PsExchanger, AnAsyncOpSendsItsOwnMessages) {
  for (const Mode mode : {Mode::kAsync, Mode::kHalfAsync, Mode::kGeo}) {
    Worker w(mode);
    EXPECT_EQ(&w.exchanger(), &w.client->exchanger());
    w.exchanger().push(w.a, filled(-1), &w.own);
    EXPECT_FALSE(w.own.empty());
    bool ended = false;
    w.exchanger().end_step([&](const std::exception_ptr& e) { ended = !e; });
    EXPECT_TRUE(ended);
    EXPECT_EQ(w.server_has(), 0);
    wait_for([&](const Client::Done& done) { w.own.exchange(done); });
    EXPECT_TRUE(w.own.empty());
    EXPECT_EQ(w.server_has(), 1);
    EXPECT_EQ(w.take(), Taken::kNew);
  }
}

TEST(PsExchanger, AnAttachedOneReplacesAnyMode) {
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    Worker w(mode);
    Exchanger& before = w.exchanger();
    w.client->attach(std::make_shared<BackgroundExchanger>(*w.client, BackgroundOptions{}));
    EXPECT_EQ(&w.exchanger(), w.client->attached());
    EXPECT_EQ(&w.client->exchanger(), w.client->attached());
    w.exchanger().push(w.a, filled(-1), &w.own);
    EXPECT_TRUE(w.own.empty());
    w.exchanger().flush();
    EXPECT_EQ(w.server_has(), 1);
    EXPECT_EQ(w.client->attached()->counts()[0].second, 1);
    w.client->attach(nullptr);
    EXPECT_EQ(&w.exchanger(), &before);
  }
}

TEST(PsExchanger, OnlyGeoEndsLocalSteps) {
  Worker w(Mode::kAsync);
  const std::array<int64_t, 1> ids{0};
  for (const bool attached : {false, true}) {
    if (attached) w.client->attach(std::make_shared<BackgroundExchanger>(*w.client, BackgroundOptions{}));
    EXPECT_THROW(w.exchanger().note("a", ids), Error);
    EXPECT_THROW(w.exchanger().end_local_step(), Error);
    w.exchanger().started();  // nothing
  }
}

}  // namespace
}  // namespace anabranch::ps
