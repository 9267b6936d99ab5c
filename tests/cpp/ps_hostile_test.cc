// What others may do at the port of a server, or at the place where processes meet: bytes that mean nothing, messages
// that are changed, a session that is played again, connections that say nothing. It is refused or passed over, and
// those that belong there notice nothing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <random>

#include "base/flags.h"
#include "ps_cluster.h"
#include "ps_grpc.h"
#include "rendezvous/hub.h"
#include "slow_relay.h"

namespace anabranch::ps {
namespace {

int port_of(const std::string& endpoint) { return std::stoi(endpoint.substr(endpoint.rfind(':') + 1)); }

// A connection that speaks no protocol.
class Raw {
 public:
  explicit Raw(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    open_ = fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  }
  ~Raw() { close(fd_); }
  Raw(const Raw&) = delete;
  bool open() const { return open_; }
  void say(const std::string& bytes) { (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }

 private:
  const int fd_;
  bool open_ = false;
};

constexpr const char* kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

std::string frame(uint32_t size, uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
  std::string out;
  for (const int shift : {16, 8, 0}) out += static_cast<char>(size >> shift);
  out += static_cast<char>(type);
  out += static_cast<char>(flags);
  for (const int shift : {24, 16, 8, 0}) out += static_cast<char>(stream >> shift);
  return out + payload;
}

std::string noise(std::mt19937& rng, size_t most) {
  std::string out(rng() % most, '\0');
  for (char& c : out) c = static_cast<char>(rng());
  return out;
}

// A server with one trainer, on the network.
struct Served {
  Cluster cluster{1, 1};
  std::atomic<std::shared_ptr<const Message>> seen;  // the last message that was one
  std::unique_ptr<Listener> listener = network_transport().listen("127.0.0.1:0", [this](MessageRef m, Answer a) {
    seen = m;
    cluster.servers[0]->handle(std::move(m), std::move(a));
  });
  std::unique_ptr<Client> client;
  Remote a;
  float steps = 0;

  Served() {
    client = std::make_unique<Client>(
        LinkOptions{}, [](const std::string& e) { return network_transport().connect(e); }, cluster.timer);
    a = client->remote(listener->endpoint(), "a");
    client->subscribe(a);
  }
  int port() const { return port_of(listener->endpoint()); }
  // True: a step is done, once.
  bool step() {
    client->push(a, filled(-1));
    exchange(*client);
    Tensor value;
    return client->take(a, &value) && value.data<float>()[2] == ++steps;
  }
};

// The bytes of a message as they are sent, to an endpoint; the answer, or what kind of failure there was.
std::string told(ByteTransport& transport, const std::string& endpoint, const std::string& bytes) {
  const auto copy = std::make_shared<std::string>(bytes);
  std::string failure;
  const auto channel = transport.connect(endpoint, {}, {}, &failure);
  auto over = std::make_shared<std::promise<std::string>>();
  channel->call({std::shared_ptr<const char>(copy, copy->data()), copy->size()}, 20000,
                [over](const Bytes& answer, const ByteFailure& failure) {
                  over->set_value(failure.why.empty() ? std::string(answer.data.get(), answer.size) : failure.why);
                });
  return over->get_future().get();
}

std::string bytes_of(const Message& m) { return {m.bytes().data(), m.bytes().size()}; }

TEST(PsHostile, BytesThatMeanNothing) {
  if (!network()) GTEST_SKIP() << "no gRPC here";
  Served served;
  std::mt19937 rng(5);
  for (int i = 0; i < 300; ++i) {
    Raw raw(served.port());
    ASSERT_TRUE(raw.open());
    if (i % 3) raw.say(kPreface);
    if (i % 3 == 2) raw.say(frame(0, 4, 0, 0, ""));
    for (int n = 0; n < 4; ++n) {
      const std::string payload = noise(rng, 300);
      const bool honest = rng() % 2;  // about its size
      raw.say(i % 3 ? frame(honest ? static_cast<uint32_t>(payload.size()) : static_cast<uint32_t>(rng() % (1U << 24)),
                            static_cast<uint8_t>(rng() % 12), static_cast<uint8_t>(rng()),
                            static_cast<uint32_t>(rng() % 8), payload)
                    : payload);
    }
    if (i % 30 == 0) {
      ASSERT_TRUE(served.step()) << i;
    }
  }
  EXPECT_TRUE(served.step());
}

TEST(PsHostile, ChangedMessages) {
  ByteTransport* transport = network();
  if (!transport) GTEST_SKIP() << "no gRPC here";
  Served served;
  ASSERT_TRUE(served.step());
  const auto sample = served.seen.load();
  std::mt19937 rng(6);
  for (int i = 0; i < 400; ++i) {
    std::string bytes = bytes_of(*sample);
    for (unsigned n = 1 + rng() % 4; n > 0; --n) bytes[rng() % bytes.size()] = static_cast<char>(rng());
    if (i % 4 == 0) bytes.resize(rng() % bytes.size());
    // The trainer's last request stays as it is: another one would count.
    for (const size_t at : {4, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}) {
      if (at < bytes.size()) bytes[at] = bytes_of(*sample)[at];
    }
    ASSERT_NE(told(*transport, served.listener->endpoint(), bytes), "") << i;
  }
  EXPECT_TRUE(served.step());
  EXPECT_GE(served.listener->peers()->malformed, 100);  // those that are cut short, at least
}

// An attacker who has seen the messages of a trainer sends them again.
TEST(PsHostile, ASessionThatIsPlayedAgain) {
  ByteTransport* transport = network();
  if (!transport) GTEST_SKIP() << "no gRPC here";
  Served served;
  std::vector<std::string> session;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(served.step());
    session.push_back(bytes_of(*served.seen.load()));
  }
  for (int round = 0; round < 3; ++round) {
    for (const std::string& bytes : session) told(*transport, served.listener->endpoint(), bytes);
  }
  EXPECT_TRUE(served.step());
  const ServerStats stats = served.cluster.servers[0]->stats();
  EXPECT_EQ(stats.updates, 6);
  EXPECT_EQ(stats.repeated, 3);     // the last one is answered as it was
  EXPECT_EQ(stats.refused, 3 * 4);  // the others are older
}

TEST(PsHostile, AThousandConnectionsAndOneThatStopsInTheMiddle) {
  if (!network()) GTEST_SKIP() << "no gRPC here";
  Served served;
  std::vector<std::unique_ptr<Raw>> idle;
  for (int i = 0; i < 1000; ++i) {
    idle.push_back(std::make_unique<Raw>(served.port()));
    ASSERT_TRUE(idle.back()->open()) << i;
    if (i % 4 == 1) idle.back()->say(kPreface);
    if (i % 4 == 2) idle.back()->say(std::string(kPreface).substr(0, 10));
    if (i % 4 == 3) idle.back()->say(kPreface + frame(1000, 1, 4, 1, "the rest does not come"));
    if (i % 200 == 0) {
      ASSERT_TRUE(served.step()) << i;
    }
  }
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(served.step());
}

// Peers that ask for much and stop to read the answer, or read it byte by byte: their calls end with their deadline,
// and others are served meanwhile.
TEST(PsHostile, PeersThatDoNotReadTheirAnswers) {
  if (!network()) GTEST_SKIP() << "no gRPC here";
  Served served;
  const auto large = std::make_shared<Message>(Verb::kStats);
  large->add(0, filled(1, 4 << 20));
  std::atomic<int64_t> asked{0};
  auto listener = network_transport().listen("127.0.0.1:0", [&](MessageRef m, Answer a) {
    if (m->header().verb != Verb::kStats) return served.cluster.servers[0]->handle(std::move(m), std::move(a));
    ++asked;
    a(large);
  });
  std::vector<std::unique_ptr<SlowRelay>> relays;
  std::vector<std::shared_ptr<Channel>> channels;
  std::vector<std::future<MessageRef>> answers;
  for (int i = 0; i < 8; ++i) {
    const Milliseconds pace(i % 2 ? 20 : 0);
    relays.push_back(std::make_unique<SlowRelay>(port_of(listener->endpoint()), Milliseconds(0), 100000, pace));
    channels.push_back(network_transport().connect(relays.back()->endpoint()));
    auto over = std::make_shared<std::promise<MessageRef>>();
    answers.push_back(over->get_future());
    channels.back()->call(std::make_shared<Message>(Verb::kStats), Milliseconds(2000),
                          [over](MessageRef m) { over->set_value(std::move(m)); });
  }
  Client honest(
      LinkOptions{.incarnation = 7}, [](const std::string& e) { return network_transport().connect(e); },
      served.cluster.timer);
  const Remote a = honest.remote(listener->endpoint(), "a");
  honest.subscribe(a);
  for (int step = 1; step <= 50; ++step) {
    honest.push(a, filled(-1));
    exchange(honest);
    Tensor value;
    ASSERT_TRUE(honest.take(a, &value));
    ASSERT_EQ(value.data<float>()[0], static_cast<float>(step));
  }
  for (auto& answer : answers) {
    const MessageRef m = answer.get();
    EXPECT_EQ(m->header().error, 1 + static_cast<uint8_t>(ErrorKind::kUnavailable));
  }
  Server& server = *served.cluster.servers[0];
  EXPECT_EQ(server.stats().updates, 50);
  server.watch(listener->peers());
  listener.reset();  // all calls are over then
  EXPECT_GT(asked, 0);
  EXPECT_EQ(server.stats().unread, asked);
}

// Processes that add up meet at such a port, too.
TEST(PsHostile, WhereProcessesMeet) {
  ByteTransport* transport = network();
  if (!transport) GTEST_SKIP() << "no gRPC here";
  rendezvous::Hub hub(network_transport(), "127.0.0.1:0", Milliseconds(20000));
  const auto hello = [&](uint32_t rank) {
    Message m(Verb::kHello);
    m.header().client = rank;
    m.header().round = 7;
    m.add_text("a:1,b:2");
    m.add_text(fmt::format("bytes of {}", rank));
    return bytes_of(m);
  };
  std::mt19937 rng(8);
  for (int i = 0; i < 60; ++i) {
    Raw raw(port_of(hub.endpoint()));
    raw.say(i % 2 ? kPreface + noise(rng, 500) : noise(rng, 500));
  }
  for (int i = 0; i < 200; ++i) {
    std::string bytes = hello(0);
    bytes[rng() % sizeof(Header)] = static_cast<char>(rng());
    bytes.resize(1 + rng() % (bytes.size() - 1));
    ASSERT_NE(told(*transport, hub.endpoint(), bytes), "") << i;
  }
  std::string first, second;
  std::thread one([&] { first = told(*transport, hub.endpoint(), hello(0)); });
  second = told(*transport, hub.endpoint(), hello(1));
  one.join();
  EXPECT_NE(first.find("bytes of 1"), std::string::npos);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace anabranch::ps
