// Queues of files at one server: what is leased, what goes back, what is kept on disk, and what strangers may ask.
#include <gtest/gtest.h>

#include "ps_one_server.h"
#include "sim/disk.h"

namespace anabranch::ps {
namespace {

const std::vector<std::string> kNames{"one", "two", "three"};

// A server with a clock that stands until it is told, and trainers that number their requests.
struct Desk {
  sim::World world{1};
  ToyStore store{2};
  std::unique_ptr<Server> server;
  std::map<uint32_t, uint64_t> sequence, incarnation;

  explicit Desk(Mode mode = Mode::kAsync, const std::string& folder = "", Durability durability = Durability::kNone) {
    start(mode, folder, durability, 1);
  }
  void start(Mode mode, const std::string& folder, Durability durability, uint64_t life) {
    server.reset();
    ServerOptions o = options_of(durability, real_disk(), folder, life);
    o.mode = mode;
    o.trainers = 3;
    o.clock = &world;
    o.file_lease = Milliseconds(60000);
    server = std::make_unique<Server>(o, store);
  }
  MessageRef say(uint32_t worker, const std::shared_ptr<Message>& m, bool numbered = true) {
    m->header().client = worker;
    m->header().incarnation = incarnation[worker];
    if (numbered) m->header().sequence = ++sequence[worker];
    return ask(*server, m);
  }
  void hello(uint32_t worker) {
    ++incarnation[worker];
    sequence[worker] = 0;
    EXPECT_FALSE(say(worker, std::make_shared<Message>(Verb::kHello), false)->header().error);
  }
  void hello_and_offer(uint32_t worker) {
    hello(worker);
    EXPECT_FALSE(say(worker, offer_files("q", kNames))->header().error);
  }
  // The name; "" when there is none now, "over" when there will be none.
  std::string take(uint32_t worker) {
    const MessageRef m = say(worker, take_file("q"));
    if (m->header().error) return std::string(m->text(0));
    if (m->parts() == 2) return std::string(m->text(1));
    return m->header().flags & Header::kOver ? "over" : "";
  }
  bool end(uint32_t worker, int64_t file, bool trained = true) {
    const MessageRef m = say(worker, end_file("q", file, trained));
    EXPECT_FALSE(m->header().error);
    return m->header().flags & Header::kTrained;
  }
  void beat(uint32_t worker) { say(worker, std::make_shared<Message>(Verb::kBeat), false); }
  int64_t counted(const std::string& what) {
    const MessageRef m = ask(*server, std::make_shared<Message>(Verb::kStats));
    const std::string text(m->text(0));
    return std::stoll(text.substr(text.find(what + " ") + what.size() + 1));
  }
};

TEST(PsFiles, EachGoesToOneTrainerAndIsDoneOnce) {
  Desk d;
  d.hello_and_offer(0);
  d.hello_and_offer(1);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_EQ(d.take(1), "two");
  EXPECT_TRUE(d.end(0, 0));
  EXPECT_EQ(d.take(0), "three");
  EXPECT_EQ(d.take(0), "");  // trainer 1 has one, which may come back
  EXPECT_TRUE(d.end(0, 2));
  EXPECT_TRUE(d.end(1, 1));
  EXPECT_EQ(d.take(0), "over");
  EXPECT_EQ(d.take(1), "over");
  EXPECT_EQ(d.counted("files_taken"), 3);
  EXPECT_EQ(d.counted("files_done"), 3);
  EXPECT_EQ(d.counted("files_returned"), 0);
  // A worker that comes late to a queue that is over finds it so.
  d.hello_and_offer(2);
  EXPECT_EQ(d.take(2), "over");
}

TEST(PsFiles, InSyncTrainingNoWorkerWaitsForFilesOfOthers) {
  Desk d(Mode::kSync);
  d.hello_and_offer(0);
  d.hello_and_offer(1);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_EQ(d.take(0), "two");
  EXPECT_EQ(d.take(0), "three");
  EXPECT_EQ(d.take(1), "over");
  d.hello_and_offer(0);  // started again: what it had is there for it
  EXPECT_EQ(d.take(0), "one");
}

TEST(PsFiles, GoBackToTheHeadWhenTheirTrainerStartsAgainOrEnds) {
  Desk d;
  for (const uint32_t worker : {0, 1}) d.hello_and_offer(worker);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_EQ(d.take(1), "two");
  d.hello_and_offer(0);
  EXPECT_EQ(d.take(1), "one");
  EXPECT_FALSE(d.say(1, std::make_shared<Message>(Verb::kComplete))->header().error);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_EQ(d.take(0), "two");
  EXPECT_EQ(d.counted("files_returned"), 3);
  EXPECT_TRUE(d.end(0, 1, /*trained=*/false));  // given back, which is not counted
  EXPECT_EQ(d.take(0), "two");
  EXPECT_EQ(d.counted("files_returned"), 3);
}

TEST(PsFiles, GoBackWhenNothingIsHeardForTheTimeOfALease) {
  Desk d;
  for (const uint32_t worker : {0, 1, 2}) d.hello_and_offer(worker);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_EQ(d.take(1), "two");
  d.world.jump(Milliseconds(40000));
  d.beat(1);
  EXPECT_EQ(d.take(2), "three");
  d.world.jump(Milliseconds(21000));
  EXPECT_EQ(d.take(2), "one");
  EXPECT_EQ(d.take(2), "");   // trainer 1 lives
  EXPECT_FALSE(d.end(0, 0));  // too late: trainer 2 has it
  EXPECT_EQ(d.counted("files_returned"), 1);
  EXPECT_EQ(d.counted("files_late"), 1);
  EXPECT_TRUE(d.end(2, 0));
}

// No worker has asked for it since: it is trained, after all.
TEST(PsFiles, ASilentWorkerMayStillEndFilesThatNoOtherTook) {
  Desk d;
  for (const uint32_t worker : {0, 1}) d.hello_and_offer(worker);
  EXPECT_EQ(d.take(0), "one");
  d.world.jump(Milliseconds(61000));
  EXPECT_TRUE(d.end(0, 0));
  EXPECT_EQ(d.take(1), "two");
}

TEST(PsFiles, WhatWasDecidedSurvivesTheServer) {
  for (const Durability durability : {Durability::kJournal, Durability::kFlushed}) {
    for (const int snapshots : {0, 1}) {
      const Folder folder;
      Desk d(Mode::kAsync, folder.str(), durability);
      for (const uint32_t worker : {0, 1, 2}) d.hello_and_offer(worker);
      EXPECT_EQ(d.take(0), "one");
      EXPECT_EQ(d.take(1), "two");
      EXPECT_TRUE(d.end(0, 0));
      const uint64_t last = d.sequence[0];
      for (uint64_t life = 2; life < 4; ++life) {
        d.start(Mode::kAsync, folder.str(), durability, life);  // starts with a snapshot, which the next one reads
        if (snapshots == 0) break;
      }
      d.sequence[0] = last - 1;
      EXPECT_TRUE(d.end(0, 0)) << "again, and answered as it was";
      EXPECT_EQ(d.take(0), "three");
      const uint64_t taken = d.sequence[0];
      d.start(Mode::kAsync, folder.str(), durability, 5);
      d.sequence[0] = taken - 1;
      EXPECT_EQ(d.take(0), "three") << "again, and no other one";
      EXPECT_EQ(d.take(2), "");
      d.world.jump(Milliseconds(30000));
      d.beat(0);
      d.world.jump(Milliseconds(31000));
      EXPECT_EQ(d.take(2), "two") << "no message of trainer 1 came since";
      EXPECT_TRUE(d.end(2, 1));
      EXPECT_TRUE(d.end(0, 2));
      d.start(Mode::kAsync, folder.str(), durability, 6);
      EXPECT_EQ(d.take(1), "over");
      EXPECT_EQ(d.server->stats().lost, 0);
    }
  }
}

TEST(PsFiles, AFileThatCannotBeNotedIsNotGiven) {
  sim::World world(5);
  sim::SimDisk disk(world);
  ToyStore store(2);
  Server server(options_of(Durability::kJournal, disk, "state", 1), store);
  hello(server);
  const auto said = [&](const std::shared_ptr<Message>& m, uint64_t sequence) {
    m->header().incarnation = 7;
    m->header().sequence = sequence;
    return ask(server, m);
  };
  EXPECT_FALSE(said(offer_files("q", kNames), 1)->header().error);
  disk.full = true;
  EXPECT_TRUE(said(take_file("q"), 2)->header().error);
  disk.full = false;
  EXPECT_TRUE(said(take_file("q"), 3)->header().error);  // until a snapshot succeeds, which it makes room for
  EXPECT_EQ(said(take_file("q"), 4)->text(1), "one");
}

TEST(PsFiles, StrangersAreRefused) {
  Desk d;
  d.hello_and_offer(0);
  const auto refused = [&](const std::shared_ptr<Message>& m, const std::string& why, uint32_t worker = 0,
                           bool numbered = true) {
    const MessageRef answer = d.say(worker, m, numbered);
    ASSERT_TRUE(answer->header().error) << why;
    EXPECT_NE(answer->text(0).find(why), std::string::npos) << answer->text(0);
  };
  refused(take_file("q"), "has trainers 0 to 2", 9);
  d.incarnation[1] = 5;
  refused(take_file("q"), "has not connected", 1);
  refused(take_file("q"), "has no number", 0, false);
  refused(take_file("other"), "there is no queue of files other");
  refused(take_file(std::string(5000, 'k')), "there is no queue of files kkk");
  refused(offer_files("", kNames), "from 1 to 256 bytes, got 0");
  refused(offer_files(std::string(257, 'k'), kNames), "from 1 to 256 bytes, got 257");
  refused(offer_files("r", {"a", ""}), "from 1 to 4096 bytes, got 0");
  refused(offer_files("r", {std::string(4097, 'n')}), "from 1 to 4096 bytes, got 4097");
  refused(offer_files("r", {std::string(65 << 20, 'n')}), "have 68157440 bytes");
  refused(offer_files("q", {"one", "two"}),
          "all trainers must name the same files for the queue q, which has 3; got 2");
  refused(offer_files("q", {"one", "two", "four"}), "or others");
  for (const int64_t file : {-1L, 3L, INT64_MAX})
    refused(end_file("q", file, true), "the queue of files q has 3 files");
  refused(end_file("other", 0, true), "there is no queue of files other");
  auto more = take_file("q");
  more->add_ids(0, std::vector<int64_t>{2});
  refused(more, "takes a file without a name of its queue");
  auto two = std::make_shared<Message>(Verb::kEndFile);
  two->add_text("q");
  two->add_ids(0, std::vector<int64_t>{0, 1});
  refused(two, "without its number");
  for (const Verb verb : {Verb::kOfferFiles, Verb::kTakeFile, Verb::kEndFile}) {
    refused(std::make_shared<Message>(verb), "without");
    auto tensors = std::make_shared<Message>(verb);
    tensors->add(0, filled(1));
    tensors->add(0, filled(1));
    refused(tensors, "without");
  }
  EXPECT_EQ(d.take(0), "one");  // all of that has changed nothing
}

TEST(PsFiles, WhatOneDoesNotHaveOneCannotEnd) {
  Desk d;
  for (const uint32_t worker : {0, 1}) d.hello_and_offer(worker);
  EXPECT_EQ(d.take(0), "one");
  EXPECT_FALSE(d.end(1, 0));
  EXPECT_FALSE(d.end(1, 2));  // no worker has it
  EXPECT_TRUE(d.end(0, 0));
  EXPECT_FALSE(d.end(0, 0));  // twice
  EXPECT_EQ(d.take(1), "two");
  EXPECT_EQ(d.counted("files_done"), 1);
  EXPECT_EQ(d.counted("files_late"), 3);
}

TEST(PsFiles, AQueueWithoutFilesIsOver) {
  Desk d;
  d.hello(0);
  EXPECT_FALSE(d.say(0, offer_files("q", {}))->header().error);
  EXPECT_EQ(d.take(0), "over");
  EXPECT_FALSE(d.end(0, 0));
}

}  // namespace
}  // namespace anabranch::ps
