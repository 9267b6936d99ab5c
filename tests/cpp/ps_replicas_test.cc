// Replicas of a worker as threads: each pushes its own gradients without sync, with and without a BackgroundExchanger.
// Run under ThreadSanitizer as well.
#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "ps/background_exchanger.h"
#include "ps_cluster.h"

namespace anabranch::ps {
namespace {

constexpr int kReplicas = 4, kSteps = 100;
constexpr uint32_t kWorkers = 2;
constexpr float kAll = static_cast<float>(kReplicas * kSteps * kWorkers);

template <class Train> void on_replicas(const Train& train) {
  std::vector<std::thread> threads;
  for (int r = 0; r < kReplicas; ++r) threads.emplace_back(train);
  for (auto& t : threads) t.join();
}

template <class Work> void on_workers(const Work& work) {
  std::vector<std::thread> threads;
  for (uint32_t w = 0; w < kWorkers; ++w) threads.emplace_back(work, w);
  for (auto& t : threads) t.join();
}

template <class Exchanges> void wait_for(Exchanges& of) {
  std::promise<std::exception_ptr> over;
  of.exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  if (const auto error = over.get_future().get()) std::rethrow_exception(error);
}

float pulled(Client& client, const Remote& variable) {
  std::promise<MessageRef> over;
  client.pull(variable, [&](MessageRef m) { over.set_value(std::move(m)); });
  const MessageRef m = over.get_future().get();
  m->throw_if_error();
  return Message::tensor(m, 0).data<float>()[0];
}

// An exchange ends when its own gradients are applied, also if other replicas send some meanwhile.
TEST(PsReplicas, AnExchangeSendsTheGradientsOfOneReplica) {
  Cluster cluster(2, kWorkers, Mode::kAsync);
  std::atomic<int> early{0}, waits{0};
  on_workers([&](uint32_t w) {
    const auto client = cluster.client(w, 5);
    const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
    client->subscribe(a);
    on_replicas([&] {
      uint64_t seen = 0;
      for (int step = 1; step <= kSteps; ++step) {
        Client::Batch own(*client);
        own.push(a, filled(-1));
        own.push(b, filled(-1));
        wait_for(own);
        if (client->oldest_wait("toy:0")) ++waits;  // as a stall report does
        if (step % 10 == 0 && pulled(*client, b) < static_cast<float>(step)) ++early;
        Tensor newest;
        client->newer(a, &seen, &newest);
      }
    });
    EXPECT_GE(pulled(*client, a), static_cast<float>(kReplicas * kSteps));
    EXPECT_FALSE(client->oldest_wait("toy:1"));
    client->complete();
  });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[3], kAll);
  EXPECT_EQ(cluster.stores[1]->values_[1].data<float>()[3], kAll);
  EXPECT_EQ(cluster.servers[0]->stats().updates, static_cast<int64_t>(kAll));
}

// Merged gradients are summed: each counts once.
TEST(PsReplicas, TheBackgroundExchangerSumsThem) {
  Cluster cluster(2, kWorkers, Mode::kAsync);
  on_workers([&](uint32_t w) {
    const auto client = cluster.client(w, 5);
    const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
    {
      BackgroundExchanger exchanger(*client, {.queue = 3});
      on_replicas([&] {
        uint64_t seen = 0;
        for (int step = 0; step < kSteps; ++step) {
          exchanger.push(a, filled(-1));
          exchanger.push(b, filled(-1));
          Tensor newest;
          exchanger.take(a, &seen, &newest);
        }
      });
      exchanger.flush();
      EXPECT_EQ(exchanger.counts()[0].second, 2 * kReplicas * kSteps);
    }
    client->complete();
  });
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], kAll);
  EXPECT_EQ(cluster.stores[1]->values_[1].data<float>()[0], kAll);
}

BackgroundExchanger::Taken taken(BackgroundExchanger& exchanger, const Remote& from, uint64_t* seen, float expected) {
  Tensor value;
  const auto found = exchanger.take(from, seen, &value);
  if (found == BackgroundExchanger::Taken::kNew) {
    EXPECT_EQ(value.data<float>()[0], expected);
  }
  return found;
}

// The message with its gradient requests a parameter that was taken since the last request; so does any other message
// after two takes.
TEST(PsReplicas, TheBackgroundExchangerRequestsAParameterWithItsGradient) {
  using Taken = BackgroundExchanger::Taken;
  Cluster cluster(1, 1, Mode::kAsync);
  const auto client = cluster.client(0);
  const Remote a = client->remote("toy:0", "a", "a"), b = client->remote("toy:0", "b", "b");
  BackgroundExchanger exchanger(*client, {});
  const auto send = [&](const Remote& to) {
    exchanger.push(to, filled(-1));
    exchanger.flush();
  };
  uint64_t seen = 0;
  EXPECT_EQ(taken(exchanger, a, &seen, 0), Taken::kNothing) << "no gradient was sent yet";
  send(b);
  EXPECT_EQ(taken(exchanger, a, &seen, 0), Taken::kUnknown);
  send(b);
  EXPECT_EQ(taken(exchanger, a, &seen, 0), Taken::kNew) << "two takes, and its gradient has not come";
  send(b);
  EXPECT_EQ(taken(exchanger, a, &seen, 0), Taken::kNothing);
  send(a);
  EXPECT_EQ(taken(exchanger, a, &seen, 1), Taken::kNew);
  send(a);
  send(a);  // requests nothing: there was no take since
  EXPECT_EQ(taken(exchanger, a, &seen, 2), Taken::kNew);
  exchanger.flush();
  client->complete();
}

TEST(PsReplicas, AMessageRequestsWhatItsGradientsUpdate) {
  Cluster cluster(1, 1, Mode::kAsync);
  const auto client = cluster.client(0);
  const Remote a = client->remote("toy:0", "a", "a"), b = client->remote("toy:0", "b", "b");
  client->subscribe(a);
  client->subscribe(b);
  Tensor value;
  for (const auto& [sent, other] : {std::pair(a, b), std::pair(b, a)}) {
    Client::Batch own(*client);
    own.push(sent, filled(-1));
    wait_for(own);
    EXPECT_TRUE(client->take(sent, &value));
    EXPECT_EQ(value.data<float>()[0], 1);
    EXPECT_FALSE(client->take(other, &value));
  }
  client->complete();
}

// Half-async: the replicas of a step meet, and one mean leaves.
TEST(PsReplicas, TheBackgroundExchangerAveragesThoseOfAStep) {
  Cluster cluster(2, kWorkers, Mode::kAsync);
  on_workers([&](uint32_t w) {
    const auto client = cluster.client(w, 5);
    const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
    {
      BackgroundExchanger exchanger(*client, {.average = true, .threads = kReplicas});
      on_replicas([&] {
        for (int step = 0; step < kSteps; ++step) {
          exchanger.push(a, filled(-1));
          exchanger.push(b, filled(-2));
          std::promise<std::exception_ptr> over;
          exchanger.end_step([&](std::exception_ptr e) { over.set_value(std::move(e)); });
          EXPECT_FALSE(over.get_future().get());
        }
      });
      EXPECT_EQ(exchanger.counts()[1].second, kSteps);
    }
    client->complete();
  });
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], kAll / kReplicas);
  EXPECT_EQ(cluster.stores[1]->values_[1].data<float>()[0], 2 * kAll / kReplicas);
}

}  // namespace
}  // namespace anabranch::ps
