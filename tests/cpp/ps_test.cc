// Trainers and servers in one process: sync steps in any order of arrival, repeated and lost messages, trainers that
// are done, deadlines.
#include <gtest/gtest.h>

#include <thread>

#include "ps_cluster.h"

namespace anabranch::ps {
namespace {

// A counting model: gradients of -1 make a value the number of updates that were applied.
TEST(Ps, SyncStepsCountRightWithAnyLostMessage) {
  for (const int percent : {0, 20}) {
    constexpr int kTrainers = 3, kSteps = 40;
    Cluster cluster(2, kTrainers);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kTrainers; ++t) {
      threads.emplace_back([&, t] {
        const auto client = cluster.client(t, percent);
        const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
        client->subscribe(a);
        client->subscribe(b);
        for (int step = 1; step <= kSteps + static_cast<int>(t); ++step) {  // uneven: the last ones go on alone
          client->push(a, filled(-1));
          client->push(b, filled(-10));
          exchange(*client);
          Tensor value;
          ASSERT_TRUE(client->take(a, &value));
          const int together = std::min(step, kSteps);
          const int more = step <= kSteps ? 0 : (step - kSteps) * 2 - (step - kSteps > 1 ? 1 : 0);
          ASSERT_EQ(value.data<float>()[2], static_cast<float>(3 * together + more))
              << "trainer " << t << " step " << step;
          ASSERT_FALSE(client->take(a, &value));
          ASSERT_TRUE(client->take(b, &value));
        }
        client->complete();
      });
    }
    for (auto& t : threads) t.join();
    for (const auto& s : cluster.servers) EXPECT_TRUE(soon_finished(*s));
    EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], 3.0F * kSteps + 2 + 1);
    EXPECT_EQ(cluster.stores[1]->values_[1].data<float>()[0], 10 * (3.0F * kSteps + 2 + 1));
    EXPECT_EQ(cluster.servers[0]->stats().repeated > 0, percent > 0);
  }
}

TEST(Ps, AsyncPushesAreAppliedOnceEach) {
  constexpr int kTrainers = 4, kSteps = 100;
  Cluster cluster(1, kTrainers, Mode::kAsync);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kTrainers; ++t) {
    threads.emplace_back([&, t] {
      const auto client = cluster.client(t, 15);
      const Remote a = client->remote("toy:0", "a");
      for (int step = 0; step < kSteps; ++step) {
        client->push(a, filled(-1));
        exchange(*client);
      }
      client->complete();
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[3], static_cast<float>(kTrainers * kSteps));
}

// Sums are taken in the order of trainers: bits do not depend on their order of arrival.
TEST(Ps, ArrivalDoesNotChangeBits) {
  const float parts[3] = {1e8F, 1.25F, -1e8F};
  const float expected = (parts[0] + parts[1]) + parts[2];
  for (const auto& order : {std::array{0, 1, 2}, {2, 1, 0}, {1, 2, 0}, {2, 0, 1}}) {
    Cluster cluster(1, 3);
    std::vector<std::unique_ptr<Client>> clients;
    std::atomic<int> done{0};
    for (uint32_t t = 0; t < 3; ++t) clients.push_back(cluster.client(t));
    for (const int t : order) {
      Client& c = *clients[static_cast<size_t>(t)];
      c.push(c.remote("toy:0", "a"), filled(parts[t]));
      c.exchange([&](const std::exception_ptr& e) { done += e ? 100 : 1; });
    }
    EXPECT_EQ(done, 3);
    EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], -expected);
  }
}

TEST(Ps, WaitingHasADeadlineAndANameAndTheNextStepWorks) {
  Cluster cluster(1, 2, Mode::kSync, Milliseconds(50));
  const auto here = cluster.client(0), late = cluster.client(1);
  here->push(here->remote("toy:0", "a"), filled(-1));
  std::promise<std::exception_ptr> over;
  here->exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  auto heard = over.get_future();
  while (heard.wait_for(Milliseconds(10)) != std::future_status::ready) cluster.servers[0]->tick();
  try {
    std::rethrow_exception(heard.get());
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnavailable);
    EXPECT_NE(e.message().find("trainer 1 (never heard)"), std::string::npos) << e.message();
    EXPECT_NE(e.message().find("step 0 of sync training at toy:0"), std::string::npos) << e.message();
  }
  for (const auto* c : {&here, &late}) (*c)->push((*c)->remote("toy:0", "a"), filled(-1));
  std::thread other([&] { exchange(*late); });
  exchange(*here);
  other.join();
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], 2);
}

// A slow trainer keeps the others waiting, and the server names it.
TEST(Ps, HowLongOthersWaitForATrainerIsCounted) {
  struct : Clock {
    TimePoint now() const override { return time; }
    TimePoint time{std::chrono::hours(1)};
  } clock;
  ToyStore store(1);
  ServerOptions o;
  o.trainers = 2;
  o.clock = &clock;
  Server server(o, store);
  uint64_t sent = 0;
  const auto tell = [&](uint32_t trainer, Verb verb, const auto& fill) {
    auto m = std::make_shared<Message>(verb);
    m->header().client = trainer;
    m->header().incarnation = verb == Verb::kStats ? 0 : 1;
    m->header().sequence = verb == Verb::kHello || verb == Verb::kStats ? 0 : sent / 2 + 1;
    fill(*m);
    const auto out = std::make_shared<MessageRef>();  // the first of two is answered when the second has come
    server.handle(std::move(m), [out](MessageRef answer) { *out = std::move(answer); });
    return *out;
  };
  const auto together = [&](uint32_t first, Milliseconds later, Verb verb, const auto& fill) {
    tell(first, verb, fill);
    ++sent;
    clock.time += later;
    tell(1 - first, verb, fill)->throw_if_error();
    ++sent;
  };
  for (const uint32_t t : {0U, 1U}) tell(t, Verb::kHello, [](Message&) {})->throw_if_error();
  together(0, Milliseconds(3), Verb::kExchange, [](Message& m) { m.add(0, filled(-1)); });
  together(0, Milliseconds(4), Verb::kReduce, [](Message& m) { m.add_text("rows"); });
  together(1, Milliseconds(1), Verb::kReduce, [](Message& m) { m.add_text("rows"); });
  const MessageRef stats = tell(0, Verb::kStats, [](Message&) {});
  EXPECT_NE(stats->text(0).find("trainer 0 1000\ntrainer 1 7000\n"), std::string::npos) << stats->text(0);
}

TEST(Ps, ABadGradientIsRefusedWithNothingChanged) {
  Cluster cluster(1, 2);
  const auto a = cluster.client(0), b = cluster.client(1);
  for (const bool bad : {true, false}) {
    a->push(a->remote("toy:0", "a"), filled(-1));
    a->push(a->remote("toy:0", "b"), filled(-1));
    b->push(b->remote("toy:0", "a"), filled(-1, bad ? 5 : 4));
    b->push(b->remote("toy:0", "b"), filled(-1));
    std::exception_ptr failed;
    std::thread other([&] {
      try {
        exchange(*b);
      } catch (...) {
        failed = std::current_exception();
      }
    });
    if (bad) {
      EXPECT_THROW(exchange(*a), Error);
    } else {
      exchange(*a);
    }
    other.join();
    EXPECT_EQ(failed != nullptr, bad);
    EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], bad ? 0 : 2);
    EXPECT_EQ(cluster.stores[0]->values_[1].data<float>()[0], bad ? 0 : 2);
  }
  EXPECT_THROW(a->remote("toy:0", "z"), Error);
  const auto stranger = cluster.client(7);
  EXPECT_THROW(stranger->remote("toy:0", "a"), Error);
}

TEST(Ps, SumsOverTrainers) {
  Cluster cluster(1, 3);
  std::vector<std::thread> threads;
  std::atomic<int> right{0};
  for (uint32_t t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto client = cluster.client(t, 20);
      client->remote("toy:0", "a");
      for (int i = 0; i < 20; ++i) {
        std::promise<MessageRef> over;
        const Tensor mine = filled(static_cast<float>(t + i), 2);
        client->reduce("toy:0", "rows", &mine, [&](MessageRef m) { over.set_value(std::move(m)); });
        const MessageRef answer = over.get_future().get();
        answer->throw_if_error();
        right += Message::tensor(answer, 0).data<float>()[1] == static_cast<float>(3 + 3 * i);
      }
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(right, 60);
}

// As steps of training do it: a sum in the middle of each, and gradients at its end.
TEST(Ps, StepsWithASumInTheMiddle) {
  constexpr int kTrainers = 3, kSteps = 200;
  Cluster cluster(2, kTrainers);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kTrainers; ++t) {
    threads.emplace_back([&, t] {
      const auto client = cluster.client(t);
      const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
      for (int i = 0; i < kSteps; ++i) {
        std::promise<MessageRef> over;
        const Tensor mine = filled(1, 2);
        client->reduce("toy:0", "rows", &mine, [&](MessageRef m) { over.set_value(std::move(m)); });
        over.get_future().get()->throw_if_error();
        client->push(a, filled(-1));
        client->push(b, filled(-1));
        exchange(*client);
      }
      client->complete();
    });
  }
  for (auto& t : threads) t.join();
  EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], 3.0F * kSteps);
}

// A trainer is killed at each point of a step with a sum, and the one after it takes part in that step: none waits
// for ever, and servers are at one step again.
TEST(Ps, ATrainerThatIsStartedAgainTakesPartInTheStep) {
  enum At { kBeforeTheSum, kInTheSum, kAfterTheSum, kBetweenServers, kPoints };
  const std::vector<std::string> servers{"toy:0", "toy:1"};
  for (int at = 0; at < kPoints; ++at) {
    Cluster cluster(2, 2);
    const auto sum = [&](Client& client, float mine) {
      auto over = std::make_shared<std::promise<MessageRef>>();
      client.reduce_in_step(servers, "rows", filled(mine, 2), [over](MessageRef m) { over->set_value(std::move(m)); });
      return over->get_future();
    };
    const auto total = [](std::future<MessageRef> answer) {
      const MessageRef m = answer.get();
      m->throw_if_error();
      return Message::tensor(m, 0).data<float>()[0];
    };
    const auto push = [&](Client& client) {
      client.push(client.remote("toy:0", "a"), filled(-1));
      client.push(client.remote("toy:1", "b"), filled(-1));
    };
    const auto lives = cluster.client(0);
    push(*lives);
    std::thread other([&] {
      EXPECT_EQ(total(sum(*lives, 1)), 3);
      exchange(*lives);
      EXPECT_EQ(total(sum(*lives, 1)), 3);
      push(*lives);
      exchange(*lives);
      lives->complete();
    });
    auto dies = cluster.client(1);
    if (at == kInTheSum) {  // it is not answered before the other one has come, or is at once
      dies->reduce_in_step(servers, "rows", filled(2, 2), [](const MessageRef&) {});
    } else if (at >= kAfterTheSum) {
      EXPECT_EQ(total(sum(*dies, 2)), 3);
    }
    if (at == kBetweenServers) {
      dies->push(dies->remote("toy:0", "a"), filled(-1));
      exchange(*dies);  // the first server is a step ahead of the second one
    }
    const auto again = cluster.client(1, 0, Milliseconds(30000), 1);
    for (int step = at == kBetweenServers ? 1 : 0; step < 2; ++step) {
      EXPECT_EQ(total(sum(*again, 2)), 3) << "killed at " << at;
      push(*again);
      exchange(*again);
    }
    again->complete();
    other.join();
    EXPECT_EQ(cluster.stores[0]->values_[0].data<float>()[0], 4) << "killed at " << at;
    EXPECT_EQ(cluster.stores[1]->values_[1].data<float>()[0], at == kBetweenServers ? 3 : 4) << "killed at " << at;
  }
}

TEST(Ps, AMissingServerIsAnErrorThatNamesIt) {
  Cluster cluster(1, 1);
  const auto client = cluster.client(0, 0, Milliseconds(30));
  try {
    client->remote("toy:9", "a");
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnavailable);
    EXPECT_NE(e.message().find("toy:9"), std::string::npos) << e.message();
  }
}

}  // namespace
}  // namespace anabranch::ps
