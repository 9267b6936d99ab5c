// Causes that a worker is told: missing workers, another job, a lost state, a server without memory.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <thread>

#include "ps_one_server.h"

namespace anabranch::ps {
namespace {

std::string refusal_of(const std::function<void()>& work, ErrorKind kind = ErrorKind::kUnavailable) {
  try {
    work();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind) << e.message();
    return e.message();
  }
  ADD_FAILURE() << "not refused";
  return {};
}

testing::AssertionResult has(const std::string& text, const std::string& part) {
  if (text.find(part) != std::string::npos) return testing::AssertionSuccess();
  return testing::AssertionFailure() << "\"" << part << "\" is not in: " << text;
}

// Servers and workers have the same deadline by default; the server's answer has the missing worker's name.
TEST(PsCauses, TheServerAnswersBeforeItsWorkersGiveUp) {
  for (const auto& [servers, workers] : {std::pair(800, 800), std::pair(60000, 800)}) {
    Cluster cluster(1, 2, Mode::kSync, Milliseconds(servers));
    const auto client = cluster.client(0, 0, Milliseconds(workers));
    cluster.client(1)->connect("toy:0");
    std::atomic<bool> over{false};
    std::thread ticks([&] { cluster.servers[0]->wait_finished([&] { return over.load(); }, Milliseconds(10)); });
    const Remote a = client->remote("toy:0", "a");
    for (const bool sums : {false, true}) {
      const auto begun = std::chrono::steady_clock::now();
      const std::string why = refusal_of([&] {
        if (!sums) {
          client->push(a, filled(-1));
          return exchange(*client);
        }
        std::promise<MessageRef> come;
        client->reduce("toy:0", "count", nullptr, [&](MessageRef m) { come.set_value(std::move(m)); });
        come.get_future().get()->throw_if_error();
      });
      EXPECT_TRUE(has(why, "for trainer 1 (last heard"));
      EXPECT_LT(std::chrono::steady_clock::now() - begun, Milliseconds(workers));
    }
    over = true;
    ticks.join();
  }
}

Description job_of(const std::string& rule, int workers) {
  return {"strategy: sync", fmt::format("workers: {}", workers), "w: float32 [4], " + rule};
}

std::shared_ptr<Message> hello_of(const Description& job) {
  auto m = std::make_shared<Message>(Verb::kHello);
  m->header().incarnation = 7;
  m->header().flags = Header::kDescribes;
  for (const std::string& line : job) m->add_text(line);
  return m;
}

TEST(PsCauses, AWorkerOfAnotherJobIsRefusedWithWhatDiffers) {
  ToyStore store(2);
  ServerOptions o = options_of(Durability::kNone, real_disk(), "", 1);
  std::vector<std::string> said;
  o.history.tell = [&](const std::string& text) { said.push_back(text); };
  o.job = job_of("adam", 2);
  Server server(o, store);
  EXPECT_FALSE(ask(server, hello_of(job_of("adam", 2)))->header().error);
  const auto refused = [&](const Description& job) {
    return refusal_of([&] { ask(server, hello_of(job))->throw_if_error(); }, ErrorKind::kInvalidArgument);
  };
  EXPECT_EQ(refused(job_of("sgd", 2)),
            "trainer 0 does not fit the server at toy:0: w is float32 [4], sgd, not float32 [4], adam");
  EXPECT_TRUE(has(refused(job_of("adam", 4)), "workers is 4, not 2"));
  EXPECT_TRUE(has(refused({"strategy: sync", "workers: 2"}), "w is absent, not float32 [4], adam"));
  EXPECT_TRUE(has(refused({"a: 1", "b: 1", "c: 1"}), "; and 3 more"));
  EXPECT_EQ(said.size(), 4U);
  auto old = std::make_shared<Message>(Verb::kHello);
  old->header().version = 0;
  EXPECT_TRUE(has(refusal_of([&] { ask(server, old)->throw_if_error(); }, ErrorKind::kInvalidArgument),
                  "install the same release"));
}

TEST(PsCauses, AStateFolderOfAnotherJobIsRefused) {
  const Folder folder;
  const auto options = [&](const Description& job) {
    ServerOptions o = options_of(Durability::kJournal, real_disk(), folder.str(), 1);
    o.job = job;
    return o;
  };
  ToyStore store(2);
  { const Server first(options(job_of("adam", 2)), store); }
  { const Server more_workers(options(job_of("adam", 3)), store); }
  { const Server unknown(options({}), store); }
  { const Server unknown(options({}), store); }
  const std::string why =
      refusal_of([&] { const Server other(options(job_of("sgd", 2)), store); }, ErrorKind::kInvalidArgument);
  EXPECT_TRUE(has(why, "belongs to another job: w is float32 [4], adam, not float32 [4], sgd in this one"));
}

// A server without memory says so, to each worker that waits, and goes on.
class FullStore final : public Store {
 public:
  uint32_t number(std::string_view) const override { return 0; }
  std::string name(uint32_t) const override { return "emb"; }
  void apply(std::span<const Change>) override {
    if (full) throw std::bad_alloc();
  }
  uint32_t variables() const override { return 1; }
  Extent extent(uint32_t) const override { return {10, 640}; }
  void read(uint32_t, Message* into) const override {
    if (full) throw std::bad_alloc();
    into->add(0, filled(1));
  }
  void read_rows(uint32_t variable, std::span<const int64_t>, Message* into) const override { read(variable, into); }
  std::vector<std::string> kept() const override { return {}; }
  std::unique_ptr<Saving> begin_save() const override { return std::make_unique<SavedCopies>(); }
  void load(const std::string&, const Tensor&) override {}

  bool full = true;
};

TEST(PsCauses, AServerWithoutMemoryNamesTheTableAndGoesOn) {
  for (const Mode mode : {Mode::kSync, Mode::kAsync}) {
    FullStore store;
    ServerOptions o = options_of(Durability::kNone, real_disk(), "", 1);
    o.mode = mode;
    Server server(o, store);
    hello(server);
    const auto rows = std::make_shared<Message>(Verb::kRows);
    const std::vector<int64_t> ids{1, 2};
    rows->add_ids(0, ids);
    const auto refused = [&](const MessageRef& answer) {
      ASSERT_TRUE(answer != nullptr);
      const std::string why = refusal_of([&] { answer->throw_if_error(); }, ErrorKind::kResourceExhausted);
      EXPECT_TRUE(has(why, "the server at toy:0 has no memory left for a request ("));
      EXPECT_TRUE(has(why, "of trainer 0: it holds emb with 640 bytes"));
    };
    const auto push = [&](uint64_t sequence) {
      auto m = std::make_shared<Message>(Verb::kExchange);
      m->header().incarnation = 7;
      m->header().sequence = sequence;
      m->add(0, filled(-1));
      return ask(server, m);
    };
    refused(ask(server, rows));
    refused(push(1));
    store.full = false;
    EXPECT_FALSE(ask(server, rows)->header().error);
    EXPECT_FALSE(push(2)->header().error);
  }
}

// A link to a server that is replaced by another one between two requests.
class Replaced {
 public:
  explicit Replaced(const std::function<ServerOptions(uint64_t)>& options) : options_(options) { start(1); }
  void start(uint64_t incarnation) {
    listener_ = nullptr;
    server_ = nullptr;
    server_ = std::make_unique<Server>(options_(incarnation), store_);
    listener_ = local_transport().listen(
        "toy:0", [this](MessageRef m, Answer a) { server_->handle(std::move(m), std::move(a)); });
  }
  std::unique_ptr<Client> client(uint64_t incarnation) const {
    LinkOptions o;
    o.incarnation = incarnation;
    o.deadline = Milliseconds(5000);
    o.first_pause = Milliseconds(1);
    return std::make_unique<Client>(
        o, [](const std::string& e) { return local_transport().connect(e); }, timer_);
  }

 private:
  const std::function<ServerOptions(uint64_t)> options_;
  const std::shared_ptr<Timer> timer_ = std::make_shared<ThreadTimer>();
  ToyStore store_{2};
  std::unique_ptr<Server> server_;
  std::unique_ptr<Listener> listener_;
};

std::string push_once(Client& client) {
  client.push(client.remote("toy:0", "a"), filled(-1));
  try {
    exchange(client);
  } catch (const Error& e) {
    return e.message();
  }
  return {};
}

TEST(PsCauses, ARestartedServerThatHasLostItsStateSaysWhy) {
  const Folder folder, other;
  std::string where;
  const auto options = [&](uint64_t incarnation) {
    return options_of(where.empty() ? Durability::kNone : Durability::kJournal, real_disk(), where, incarnation);
  };
  Replaced server(options);
  const auto none = server.client(7);
  EXPECT_EQ(push_once(*none), "");
  server.start(2);
  EXPECT_TRUE(has(push_once(*none), "it keeps no state (FLAGS_ps_state_dir)"));

  where = folder.str();
  server.start(3);
  const auto kept = server.client(8);
  EXPECT_EQ(push_once(*kept), "");
  server.start(4);
  EXPECT_EQ(push_once(*kept), "");  // the same state
  where = other.str();
  server.start(5);
  EXPECT_TRUE(has(push_once(*kept), "its state folder was empty"));
  server.start(6);
  EXPECT_TRUE(has(push_once(*kept), "its folder has the state of another job"));
}

TEST(PsCauses, AWorkerWhoseNumberAnotherProcessHasIsToldSo) {
  const Folder folder;
  Replaced server([&](uint64_t i) { return options_of(Durability::kJournal, real_disk(), folder.str(), i); });
  const auto first = server.client(7);
  EXPECT_EQ(push_once(*first), "");
  const auto second = server.client(8);
  EXPECT_EQ(push_once(*second), "");
  const std::string why = "another process has taken the place of this trainer 0 at toy:0";
  EXPECT_EQ(push_once(*first), why);
  server.start(2);
  EXPECT_EQ(push_once(*first), why);
  EXPECT_EQ(push_once(*second), "");
}

}  // namespace
}  // namespace anabranch::ps
