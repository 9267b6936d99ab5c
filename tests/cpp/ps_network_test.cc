// The same between processes: gRPC over TCP and unix sockets, large messages, servers that go away.
#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/flags.h"
#include "ps_cluster.h"
#include "slow_relay.h"

namespace anabranch::ps {
namespace {

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
        client.subscribe(a);
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
    EXPECT_TRUE(soon_finished(*cluster.servers[0]));
  }
}

// A message of 150 MiB is sent in chunks; one above the limit is refused before it is gathered, and the server goes on.
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

  const FlagValue usual = get_flag("FLAGS_rpc_message_limit_mb");
  set_flag("FLAGS_rpc_message_limit_mb", int64_t{1});
  const auto strict = network_transport().listen("127.0.0.1:0", echo);
  set_flag("FLAGS_rpc_message_limit_mb", usual);
  sum = 0;
  const MessageRef refused = ask(strict->endpoint(), int64_t{1} << 20);
  EXPECT_NE(refused->header().error, 0);
  EXPECT_NE(refused->text(0).find("above the limit"), std::string_view::npos) << refused->text(0);
  EXPECT_EQ(sum, 0);
  ask(strict->endpoint(), 100)->throw_if_error();
}

TEST(PsNetwork, AddressesOfThisMachineAreNotTakenByTheirFirstLetters) {
  for (const char* own : {"127.0.0.1:6174", "127.255.0.9:1", "localhost:6174", "[::1]:6174", "unix:/tmp/a:b"}) {
    EXPECT_TRUE(on_this_machine(own)) << own;
  }
  for (const char* other :
       {"127.example.com:6174", "127.0.0.1.example.com:6174", "localhost.example.com:6174", "[::1].example.com:6174",
        "127.:6174", "0.0.0.0:6174", "[::]:6174", "10.127.0.1:6174", "unixes:6174", ":6174", ""}) {
    EXPECT_FALSE(on_this_machine(other)) << other;
  }
}

TEST(PsNetwork, AMissingServerAndATrustedNetwork) {
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

TEST(PsNetwork, AddressesThatCannotBeListenedAtAreNamedWithTheReason) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  const Handler nothing = [](const MessageRef&, const Answer&) {};
  const std::string file = "unix:" + testing::TempDir() + "/taken.sock";
  const auto taken = network_transport().listen(file, nothing);
  const auto port = network_transport().listen("127.0.0.1:0", nothing);
  const std::pair<std::string, std::string> wrong[] = {{file, "in use"},
                                                       {port->endpoint(), "in use"},
                                                       {"unix:/nowhere/x.sock", "No such file"},
                                                       {"unix:" + std::string(200, 'x'), "too long"}};
  for (const auto& [endpoint, reason] : wrong) {
    try {
      network_transport().listen(endpoint, nothing);
      ADD_FAILURE() << endpoint;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(reason), std::string::npos) << e.what();
    }
  }
}

// A machine that is busy takes its time before it greets: a connection is waited for as long as the call allows.
TEST(PsNetwork, AServerThatGreetsLateIsWaitedFor) {
  if (!networked()) GTEST_SKIP() << "no gRPC here";
  const auto listener = network_transport().listen(
      "127.0.0.1:0", [](const MessageRef&, const Answer& a) { a(std::make_shared<Message>(Verb::kStats)); });
  const std::string endpoint = listener->endpoint();
  const SlowRelay relay(std::stoi(endpoint.substr(endpoint.rfind(':') + 1)), Milliseconds(400));
  const auto channel = network_transport().connect(relay.endpoint());
  std::promise<MessageRef> over;
  channel->call(std::make_shared<Message>(Verb::kStats), Milliseconds(60000),
                [&](MessageRef m) { over.set_value(std::move(m)); });
  over.get_future().get()->throw_if_error();
}

// A server that ends while trainers wait for it leaves no trainer waiting.
TEST(PsNetwork, ALostServerIsReported) {
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
  kept(std::make_shared<Message>(Verb::kStats));  // too late: no server is there
}

}  // namespace
}  // namespace anabranch::ps
