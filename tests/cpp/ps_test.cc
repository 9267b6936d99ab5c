// Trainers and servers in one process: a store that counts, sync steps in any order of arrival, repeated and lost
// messages, trainers that are done, deadlines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <future>
#include <random>
#include <thread>

#include "base/flags.h"
#include "ps/client.h"
#include "ps/server.h"

namespace anabranch::ps {
namespace {

// Variables a, b, ... of four numbers, and their gradients a@GRAD: an update subtracts.
class ToyStore final : public Store {
 public:
  explicit ToyStore(int variables) {
    for (int i = 0; i < variables; ++i) {
      Tensor t(Shape{4}, DType::kFloat32);
      for (int k = 0; k < 4; ++k) t.mutable_data<float>()[k] = 0;
      values_.push_back(std::move(t));
    }
  }
  uint32_t number(std::string_view name) const override {
    const auto i = static_cast<uint32_t>(name.at(0) - 'a');
    AB_CHECK(i < values_.size(), NotFound, "this server has no variable {}", name);
    return i;
  }
  std::string name(uint32_t number) const override { return std::string(1, static_cast<char>('a' + number)); }
  void apply(std::span<const Change> changes) override {
    for (const Change& c : changes) {
      AB_CHECK(c.dense.numel() == 4, ShapeMismatch, "gradient of {} must have 4 elements, got {}", name(c.variable),
               c.dense.numel());
    }
    for (const Change& c : changes) {
      for (int k = 0; k < 4; ++k) values_[c.variable].mutable_data<float>()[k] -= c.dense.data<float>()[k];
    }
  }
  void read(uint32_t variable, Message* into) const override { into->add(variable, values_.at(variable)); }
  void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const override {
    auto* to =
        static_cast<float*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), 1}, DType::kFloat32));
    for (size_t i = 0; i < ids.size(); ++i) to[i] = values_.at(variable).data<float>()[ids[i]];
  }

  std::vector<Tensor> values_;
};

Tensor filled(float x, int64_t n = 4) {
  Tensor t(Shape{n}, DType::kFloat32);
  for (int64_t k = 0; k < n; ++k) t.mutable_data<float>()[k] = x;
  return t;
}

// Loses requests, and answers after the server has done what was asked.
class Lossy final : public Channel {
 public:
  Lossy(std::shared_ptr<Channel> inner, uint32_t seed, int percent)
      : inner_(std::move(inner)), rng_(seed), percent_(percent) {}
  void call(MessageRef request, Milliseconds deadline, Answer answer) override {
    const auto lost = [verb = request->header().verb, answer] {
      answer(Message::error(verb, Error(ErrorKind::kUnavailable, "lost on the way")));
    };
    if (chance()) return lost();
    if (chance()) {  // twice
      inner_->call(request, deadline, [](MessageRef) {});
    }
    const bool lose_answer = chance();
    inner_->call(std::move(request), deadline,
                 [answer, lost, lose_answer](MessageRef m) { lose_answer ? lost() : answer(std::move(m)); });
  }

 private:
  bool chance() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(rng_() % 100) < percent_;
  }
  std::shared_ptr<Channel> inner_;
  std::mutex mutex_;
  std::mt19937 rng_;
  const int percent_;
};

struct Cluster {
  std::vector<std::unique_ptr<ToyStore>> stores;
  std::vector<std::unique_ptr<Server>> servers;
  std::vector<std::unique_ptr<Listener>> listeners;
  std::shared_ptr<Timer> timer = std::make_shared<ThreadTimer>();

  Cluster(int n_servers, int trainers, Mode mode = Mode::kSync, Milliseconds patience = Milliseconds(60000)) {
    for (int s = 0; s < n_servers; ++s) {
      stores.push_back(std::make_unique<ToyStore>(3));
      ServerOptions o;
      o.name = fmt::format("toy:{}", s);
      o.mode = mode;
      o.trainers = trainers;
      o.patience = patience;
      servers.push_back(std::make_unique<Server>(o, *stores.back()));
      listeners.push_back(local_transport().listen(o.name, [server = servers.back().get()](MessageRef m, Answer a) {
        server->handle(std::move(m), std::move(a));
      }));
    }
  }
  std::unique_ptr<Client> client(uint32_t trainer, int loss_percent = 0, Milliseconds deadline = Milliseconds(30000)) {
    LinkOptions o;
    o.trainer = trainer;
    o.incarnation = 100 + trainer;
    o.deadline = deadline;
    o.first_pause = Milliseconds(1);
    o.longest_pause = Milliseconds(4);
    return std::make_unique<Client>(
        o,
        [=](const std::string& endpoint) -> std::shared_ptr<Channel> {
          auto channel = local_transport().connect(endpoint);
          if (loss_percent == 0) return channel;
          return std::make_shared<Lossy>(std::move(channel), trainer + 1, loss_percent);
        },
        timer);
  }
};

void exchange(Client& client) {
  std::promise<std::exception_ptr> over;
  client.exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  if (const auto error = over.get_future().get()) std::rethrow_exception(error);
}

// A counting model: gradients of -1 make a value the number of updates that were applied.
TEST(Ps, SyncStepsCountRightWhateverIsLost) {
  for (const int percent : {0, 20}) {
    constexpr int kTrainers = 3, kSteps = 40;
    Cluster cluster(2, kTrainers);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < kTrainers; ++t) {
      threads.emplace_back([&, t] {
        const auto client = cluster.client(t, percent);
        const Remote a = client->remote("toy:0", "a"), b = client->remote("toy:1", "b");
        client->want(a);
        client->want(b);
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
    for (const auto& s : cluster.servers) EXPECT_TRUE(s->finished());
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

// Sums are taken in the order of trainers: bits do not depend on who comes first.
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

TEST(Ps, NobodyThereIsAnErrorThatSaysWhere) {
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

// ---- the network

// Whether this build has the plug-in. ThreadSanitizer knows nothing of the locks inside of gRPC, and would tell of
// races that are none: the local transport stands for it there.
bool networked() {
#ifdef __SANITIZE_THREAD__
  return false;
#endif
  try {
    network_transport().connect("127.0.0.1:1");
    return true;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnsupported) << e.message();
    return false;
  }
}

std::string socket_path() { return fmt::format("unix:/tmp/anabranch_ps_test_{}", getpid()); }

TEST(PsNetwork, StepsOverTcpAndUnixSockets) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  for (const std::string& where : {std::string("127.0.0.1:0"), socket_path()}) {
    Cluster cluster(1, 2);
    const auto listener = network_transport().listen(
        where, [&](MessageRef m, Answer a) { cluster.servers[0]->handle(std::move(m), std::move(a)); });
    EXPECT_EQ(listener->endpoint().ends_with(":0"), false);
    std::vector<std::thread> threads;
    for (uint32_t t = 0; t < 2; ++t) {
      threads.emplace_back([&, t] {
        LinkOptions o;
        o.trainer = t;
        Client client(
            o, [](const std::string& e) { return network_transport().connect(e); }, cluster.timer);
        const Remote a = client.remote(listener->endpoint(), "a");
        client.want(a);
        for (int step = 1; step <= 50; ++step) {
          client.push(a, filled(-1));
          exchange(client);
          Tensor value;
          ASSERT_TRUE(client.take(a, &value));
          ASSERT_EQ(value.data<float>()[1], 2.0F * static_cast<float>(step));
        }
        client.complete();
      });
    }
    for (auto& t : threads) t.join();
    EXPECT_TRUE(cluster.servers[0]->finished());
  }
}

// A message of 150 MiB goes in pieces; one above the limit is refused before it is gathered, and the server goes on.
TEST(PsNetwork, LargeMessagesAndTheLimit) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  std::atomic<int64_t> sum{0};
  const Handler echo = [&](const MessageRef& m, const Answer& answer) {
    const Tensor t = Message::tensor(m, 0);
    sum = t.numel();
    auto out = std::make_shared<Message>(Verb::kRows);
    out->add(0, t);
    answer(out);
  };
  const auto ask = [](const std::string& endpoint, int64_t n) {
    auto m = std::make_shared<Message>(Verb::kRows);
    m->add(0, filled(1.5F, n));
    std::promise<MessageRef> over;
    const auto channel = network_transport().connect(endpoint);
    channel->call(m, Milliseconds(60000), [&](MessageRef answer) { over.set_value(std::move(answer)); });
    return over.get_future().get();
  };
  const auto listener = network_transport().listen("127.0.0.1:0", echo);
  const int64_t n = int64_t{150} << 18;
  const MessageRef back = ask(listener->endpoint(), n);
  back->throw_if_error();
  EXPECT_EQ(Message::tensor(back, 0).data<float>()[n - 1], 1.5F);
  EXPECT_EQ(sum, n);

  set_flag("FLAGS_rpc_message_limit_mb", int64_t{1});
  const auto strict = network_transport().listen("127.0.0.1:0", echo);
  set_flag("FLAGS_rpc_message_limit_mb", int64_t{16384});
  sum = 0;
  const MessageRef refused = ask(strict->endpoint(), int64_t{1} << 20);
  EXPECT_NE(refused->header().error, 0);
  EXPECT_NE(refused->text(0).find("above the limit"), std::string_view::npos) << refused->text(0);
  EXPECT_EQ(sum, 0);
  ask(strict->endpoint(), 100)->throw_if_error();
}

TEST(PsNetwork, NobodyThereAndATrustedNetwork) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  Cluster cluster(1, 1);
  LinkOptions o;
  o.deadline = Milliseconds(300);
  Client client(
      o, [](const std::string& e) { return network_transport().connect(e); }, cluster.timer);
  EXPECT_THROW(client.remote("127.0.0.1:1", "a"), Error);
  const Handler nothing = [](const MessageRef&, const Answer&) {};
  EXPECT_THROW(network_transport().listen("0.0.0.0:0", nothing), Error);
  set_flag("FLAGS_rpc_insecure", true);
  EXPECT_NE(network_transport().listen("0.0.0.0:0", nothing), nullptr);
  set_flag("FLAGS_rpc_insecure", false);
  const auto first = network_transport().listen("127.0.0.1:0", nothing);
  EXPECT_THROW(network_transport().listen(first->endpoint(), nothing), Error);
}

// A server that ends while trainers wait for it leaves nobody waiting.
TEST(PsNetwork, AServerThatGoesAwayIsHeardOf) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  Answer kept;
  auto listener = network_transport().listen("127.0.0.1:0", [&](const MessageRef&, Answer a) { kept = std::move(a); });
  const auto channel = network_transport().connect(listener->endpoint());
  std::promise<MessageRef> over;
  channel->call(std::make_shared<Message>(Verb::kStats), Milliseconds(30000),
                [&](MessageRef m) { over.set_value(std::move(m)); });
  auto heard = over.get_future();
  EXPECT_EQ(heard.wait_for(Milliseconds(100)), std::future_status::timeout);
  listener = nullptr;
  EXPECT_NE(heard.get()->header().error, 0);
  kept(std::make_shared<Message>(Verb::kStats));  // too late: nobody is there
}

// ---- bytes from outside

std::shared_ptr<char> copy_of(const Message& m, size_t shift = 0) {
  std::shared_ptr<char> bytes(static_cast<char*>(std::aligned_alloc(64, (m.bytes().size() / 64 + 2) * 64)), std::free);
  std::copy(m.bytes().begin(), m.bytes().end(), bytes.get() + shift);
  return {bytes, bytes.get() + shift};
}

TEST(PsMessage, ComesBackAsItWas) {
  Message m(Verb::kExchange);
  m.add(3, filled(2.5F, 7));
  const int64_t ids[] = {5, -1, 5};
  const float values[] = {1, 2, 3, 4, 5, 6};
  m.add_rows(4, ids, 10, values, DType::kFloat32, 2);
  m.add_text("text");
  const uint32_t wanted[] = {1, 2, 3};
  m.add_wanted(wanted);
  for (const size_t shift : {size_t{0}, size_t{8}}) {
    const MessageRef back = Message::parse(copy_of(m, shift), m.bytes().size());
    ASSERT_EQ(back->parts(), 5);
    EXPECT_EQ(Message::tensor(back, 0).data<float>()[6], 2.5F);
    EXPECT_EQ(back->ids(1)[1], -1);
    EXPECT_EQ(Message::tensor(back, 2).shape(), (Shape{3, 2}));
    EXPECT_EQ(back->part(2).height, 10);
    EXPECT_EQ(back->text(3), "text");
    EXPECT_EQ(back->wanted(4)[2], 3U);
  }
}

// Any byte changed, any length: refused with a typed error, or read within its bounds.
TEST(PsMessage, HostileBytesAreRefused) {
  Message m(Verb::kExchange);
  m.add(3, filled(2.5F, 7));
  const int64_t ids[] = {5, 6};
  m.add_ids(1, ids);
  m.add_text("text");
  const size_t size = m.bytes().size();
  std::mt19937 rng(7);
  int refused = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    const auto bytes = copy_of(m);
    for (unsigned k = 1 + rng() % 3; k > 0; --k) bytes.get()[rng() % size] = static_cast<char>(rng());
    const size_t length = rng() % 4 == 0 ? rng() % (size + 1) : size;
    std::shared_ptr<char> exact(static_cast<char*>(std::aligned_alloc(64, (length / 64 + 1) * 64)), std::free);
    std::copy(bytes.get(), bytes.get() + length, exact.get());
    try {
      const MessageRef parsed = Message::parse(exact, length);
      for (int i = 0; i < parsed->parts(); ++i) {
        int64_t sum = 0;
        for (uint64_t b = 0; b < parsed->part(i).bytes; ++b) sum += parsed->payload(i)[b];
        EXPECT_GE(std::abs(sum), 0);
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument) << e.message();
      ++refused;
    }
  }
  EXPECT_GT(refused, 2000);
}

}  // namespace
}  // namespace anabranch::ps
