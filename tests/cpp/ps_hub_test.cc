// Processes that come together, leave, and tell each other what went wrong.
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <map>
#include <mutex>

#include "rendezvous/hub.h"
#include "rendezvous/join.h"

namespace anabranch::rendezvous {
namespace {

using namespace rpc;

// The answers so far, by the number of the question.
class Answered {
 public:
  Answer as(int number) {
    return [this, number](const MessageRef& m) {
      const std::lock_guard lock(mutex_);
      const bool texts = m->parts() > 0 && m->part(0).kind == PartKind::kText;
      said_[number] = texts ? std::string(m->text(0)) : "nothing";
      refused_[number] = m->header().error != 0;
      changed_.notify_all();
    };
  }
  std::string wait(int number) {
    std::unique_lock lock(mutex_);
    const auto there = [&] { return said_.count(number) != 0; };
    return changed_.wait_for(lock, std::chrono::seconds(20), there) ? said_[number] : "no answer";
  }
  bool has(int number) {
    const std::lock_guard lock(mutex_);
    return said_.count(number) != 0;
  }
  bool refused(int number) { return wait(number), refused_[number]; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, std::string> said_;
  std::map<int, bool> refused_;
};

class PsHub : public testing::Test {
 protected:
  void ask(int number, Verb verb, uint32_t rank, const std::vector<std::string>& texts) {
    auto m = std::make_shared<Message>(verb);
    m->header().client = rank;
    for (const auto& text : texts) m->add_text(text);
    channel_->call(m, Milliseconds(20000), answered_.as(number));
  }
  void come(int number, uint32_t rank, const std::string& members = "a:1,b:2") {
    ask(number, Verb::kHello, rank, {members, fmt::format("bytes of {}", rank)});
  }

  Answered answered_;
  Hub hub_{local_transport(), "hub:1", Milliseconds(200)};
  std::shared_ptr<Channel> channel_ = local_transport().connect("hub:1");
};

TEST_F(PsHub, AllProcessesReceiveAllData) {
  come(0, 0);
  EXPECT_FALSE(answered_.has(0));
  come(1, 1);
  EXPECT_EQ(answered_.wait(0), "bytes of 0");
  EXPECT_EQ(answered_.wait(1), "bytes of 0");
}

TEST_F(PsHub, MissingProcessesAreNamed) {
  come(0, 0, "a:1,b:2,c:3,d:4");
  come(2, 2, "a:1,b:2,c:3,d:4");
  EXPECT_NE(answered_.wait(0).find("rank 1, 3 of the group has not come"), std::string::npos) << answered_.wait(0);
  EXPECT_TRUE(answered_.refused(2));
  come(3, 0);  // the next ones start a new round
  come(4, 1);
  EXPECT_FALSE(answered_.refused(3));
}

TEST_F(PsHub, ThoseThatDoNotFitAreRefused) {
  come(0, 0);
  come(1, 1, "a:1,other:2");
  EXPECT_NE(answered_.wait(1).find("belongs to a group of a:1,other:2"), std::string::npos);
  come(2, 0);
  EXPECT_NE(answered_.wait(2).find("rank 0 already"), std::string::npos);
  come(3, 2);
  EXPECT_NE(answered_.wait(3).find("rank 2 of 2 processes"), std::string::npos);
  ask(4, Verb::kHello, 1, {"a:1,b:2"});
  ask(5, Verb::kRows, 1, {});
  EXPECT_TRUE(answered_.refused(4) && answered_.refused(5));
  come(6, 1);
  EXPECT_EQ(answered_.wait(0), "bytes of 0");
}

TEST_F(PsHub, TheFirstReasonIsEverybodysReason) {
  ask(9, Verb::kBeat, 0, {});
  EXPECT_TRUE(answered_.refused(9));  // there is no group yet
  come(0, 0);
  come(1, 1);
  ask(2, Verb::kBeat, 0, {});
  ask(3, Verb::kComplete, 1, {"a wheel came off"});
  ask(4, Verb::kComplete, 0, {"rank 1 does not come"});
  ask(5, Verb::kBeat, 1, {});
  for (int n : {2, 3, 4, 5}) EXPECT_EQ(answered_.wait(n), "a wheel came off") << n;
}

TEST_F(PsHub, GoodbyesWaitForEachOther) {
  come(0, 0);
  come(1, 1);
  ask(2, Verb::kBeat, 0, {});
  ask(3, Verb::kComplete, 0, {});
  ask(4, Verb::kComplete, 0, {});  // the same process again
  EXPECT_FALSE(answered_.has(3));
  ask(5, Verb::kComplete, 1, {});
  for (int n : {2, 3, 4, 5}) EXPECT_FALSE(answered_.refused(n)) << n;
}

TEST_F(PsHub, ARestartedProcessEndsTheGroup) {
  come(0, 0);
  come(1, 1);
  ask(2, Verb::kBeat, 0, {});
  come(3, 1);
  EXPECT_EQ(answered_.wait(2), "rank 1 has restarted");
  come(4, 0);
  EXPECT_EQ(answered_.wait(3), "bytes of 0");
}

// ---- joining

// Sums are not encrypted, so neither this process nor any other one may be on another machine.
TEST(PsJoin, AnAddressOfAnotherMachineNeedsATrustedNetwork) {
  const std::vector<std::string> wrong[] = {{"203.0.113.5:1", "127.0.0.1:2"},
                                            {"127.0.0.1:1", "203.0.113.5:2"},
                                            {"127.example.com:1", "127.0.0.1:2"},
                                            {"127.0.0.1:1", "127.0.0.1:2", "[2001:db8::1]:3"}};
  for (const auto& endpoints : wrong) {
    for (int rank = 0; rank < 2; ++rank) {
      JoinOptions o;
      o.endpoints = endpoints;
      o.rank = rank;
      try {
        join_ring(o);
        ADD_FAILURE() << fmt::format("{}", fmt::join(endpoints, ","));
      } catch (const Error& e) {
        EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument) << e.message();
        EXPECT_NE(e.message().find("FLAGS_rpc_insecure=1"), std::string::npos) << e.message();
      }
    }
  }
}

}  // namespace
}  // namespace anabranch::rendezvous
