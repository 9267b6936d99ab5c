// The files that a server keeps: killed at any operation on them, with a full disk, a flipped byte.
#include <gtest/gtest.h>

#include <deque>

#include "ps_one_server.h"
#include "sim/disk.h"

namespace anabranch::ps {
namespace {

// Stops working at its n-th operation, as if the process were killed there.
class Mortal final : public Disk {
 public:
  explicit Mortal(Disk& disk, int left) : disk_(disk), left_(left) {}
  std::unique_ptr<DiskLock> lock(const std::string& folder, const std::string& holder) override {
    return disk_.lock(folder, holder);
  }
  std::unique_ptr<DiskFile> create(const std::string& path) override {
    use();
    return std::make_unique<File>(*this, disk_.create(path));
  }
  bool exists(const std::string& path) const override { return disk_.exists(path); }
  std::unique_ptr<DiskSource> open(const std::string& path) const override { return disk_.open(path); }
  std::vector<std::string> list(const std::string& folder) const override { return disk_.list(folder); }
  void make_folder(const std::string& path) override { use(), disk_.make_folder(path); }
  void rename(const std::string& from, const std::string& to) override { use(), disk_.rename(from, to); }
  void remove(const std::string& path) override { use(), disk_.remove(path); }
  void sync_folder(const std::string& path) override { use(), disk_.sync_folder(path); }
  bool dead() const { return left_ < 0; }

 private:
  class File final : public DiskFile {
   public:
    File(Mortal& disk, std::unique_ptr<DiskFile> file) : disk_(disk), file_(std::move(file)) {}
    void write(std::string_view data) override {
      if (disk_.left_ == 0) file_->write(data.substr(0, data.size() / 2));  // torn
      disk_.use();
      file_->write(data);
    }
    void sync() override { disk_.use(), file_->sync(); }

   private:
    Mortal& disk_;
    std::unique_ptr<DiskFile> file_;
  };
  void use() {
    AB_CHECK(left_-- > 0, Unavailable, "the process was killed");
    left_ = std::max(left_, 0);
  }
  Disk& disk_;
  int left_;
};

TEST(PsHistory, ResumesWhereItWasKilled) {
  for (const Durability d : {Durability::kSnapshot, Durability::kJournal, Durability::kFlushed}) {
    const Folder folder;
    uint64_t sequence = 0;
    int64_t lost = 0;
    for (uint64_t life = 1; life <= 4; ++life) {
      ToyStore store(2);
      Server server(options_of(d, real_disk(), folder.str(), life), store);
      hello(server, sequence);
      lost += server.stats().lost;
      const auto kept = static_cast<float>(d == Durability::kSnapshot ? sequence / 4 * 4 : sequence);
      EXPECT_EQ(value(store) + static_cast<float>(lost), static_cast<float>(sequence));
      if (life == 2) {
        EXPECT_EQ(value(store), kept);
      }
      if (d != Durability::kSnapshot) {
        EXPECT_EQ(server.stats().lost, 0);
      }
      for (int i = 0; i < 7; ++i) ASSERT_TRUE(push(server, ++sequence));
      EXPECT_TRUE(push(server, sequence));  // again: it is answered, and not done
      EXPECT_EQ(server.stats().repeated, 1);
    }
  }
}

// Two servers with one folder would write one journal.
TEST(PsHistory, OneServerAtATimeHasTheFolder) {
  const Folder folder;
  ToyStore store(2), other(2);
  ServerOptions first = options_of(Durability::kJournal, real_disk(), folder.str(), 1);
  first.history.holder = "the server at toy:0 (process 12)";
  auto server = std::make_unique<Server>(first, store);
  hello(*server);
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(push(*server, i));
  const std::vector<std::string> before = real_disk().list(folder.str());
  try {
    const Server second(options_of(Durability::kJournal, real_disk(), folder.str(), 2), other);
    FAIL() << "a second server has the folder, too";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kUnavailable);
    EXPECT_EQ(e.message(), "the folder " + folder.str() + " is in use by the server at toy:0 (process 12)");
  }
  EXPECT_EQ(real_disk().list(folder.str()), before);
  for (uint64_t i = 4; i <= 6; ++i) ASSERT_TRUE(push(*server, i));
  server = nullptr;
  const Server next(options_of(Durability::kJournal, real_disk(), folder.str(), 3), other);
  EXPECT_EQ(value(other), 6);
}

// A journal without its snapshot does not say what its updates were made to.
TEST(PsHistory, AJournalWithoutItsSnapshotIsRefused) {
  const Folder folder;
  {
    ToyStore store(2);
    Server server(options_of(Durability::kJournal, real_disk(), folder.str(), 1), store);
    hello(server);
    for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(push(server, i));
  }
  for (const std::string& name : real_disk().list(folder.str())) {
    if (name.starts_with("snapshot-")) real_disk().remove(folder.str() + "/" + name);
  }
  ToyStore store(2);
  try {
    const Server next(options_of(Durability::kJournal, real_disk(), folder.str(), 2), store);
    FAIL() << "the server starts without its state";
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kInvalidArgument);
    EXPECT_NE(e.message().find("journal-00000001 has updates, but no snapshot is there"), std::string::npos)
        << e.message();
  }
}

// Wherever it is killed, a server that comes after it has all that was acknowledged, and nothing twice or in part.
TEST(PsHistory, KilledAtEachOperationOfTheDisk) {
  int deaths = 0;
  for (int at = 1; at < 400; ++at) {
    sim::World world(static_cast<uint64_t>(at));
    sim::SimDisk disk(world);
    uint64_t acknowledged = 0, sent = 0;
    bool started = false;
    {
      Mortal mortal(disk, at);
      ToyStore store(2);
      try {
        Server server(options_of(Durability::kFlushed, mortal, "state", 1), store);
        started = true;
        hello(server);
        while (sent < 14 && acknowledged == sent) {
          ++sent;
          if (push(server, sent)) ++acknowledged;
        }
      } catch (const Error&) {
      }
    }
    if (sent == 14 && acknowledged == sent) break;
    ++deaths;
    disk.lose_power();
    ToyStore store(2);
    Server server(options_of(Durability::kFlushed, disk, "state", 2), store);
    EXPECT_GE(value(store), static_cast<float>(acknowledged)) << "killed at operation " << at;
    EXPECT_LE(value(store), static_cast<float>(sent)) << "killed at operation " << at;
    EXPECT_EQ(value(store, 0), value(store, 1));
    hello(server, acknowledged);
    EXPECT_EQ(server.stats().lost, 0);
    if (started && sent > 0) {
      EXPECT_TRUE(push(server, sent));
      EXPECT_EQ(value(store), static_cast<float>(sent)) << "killed at operation " << at;
    }
  }
  EXPECT_GT(deaths, 40);
}

TEST(PsHistory, AFullDiskRefusesPushesAndChangesNothing) {
  sim::World world(5);
  sim::SimDisk disk(world);
  ToyStore store(2);
  Server server(options_of(Durability::kJournal, disk, "state", 1), store);
  hello(server);
  for (uint64_t i = 1; i <= 3; ++i) ASSERT_TRUE(push(server, i));
  disk.full = true;
  for (uint64_t i = 4; i <= 6; ++i) EXPECT_FALSE(push(server, i));
  EXPECT_EQ(value(store), 3);
  EXPECT_GT(server.stats().failed_snapshots, 0);
  disk.full = false;
  EXPECT_FALSE(push(server, 7));  // the journal is not to be believed until a snapshot stands for it
  EXPECT_TRUE(push(server, 8));
  EXPECT_EQ(value(store), 4);
  ToyStore next(2);
  Server again(options_of(Durability::kJournal, disk, "state", 2), next);
  EXPECT_EQ(value(next), 4);
}

TEST(PsHistory, AFlippedByteMakesWayForTheSnapshotBefore) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    sim::World world(seed);
    sim::SimDisk disk(world);
    {
      ToyStore store(2);
      Server server(options_of(Durability::kJournal, disk, "state", 1), store);
      hello(server);
      for (uint64_t i = 1; i <= 10; ++i) ASSERT_TRUE(push(server, i));
    }
    std::string last;
    for (const auto& f : disk.files()) {
      if (f.find("/snapshot-") != std::string::npos) last = f;
    }
    disk.damage(last);
    ToyStore store(2);
    Server server(options_of(Durability::kJournal, disk, "state", 2), store);
    EXPECT_EQ(value(store), 10) << last;
  }
}

// Variables of one server that survive other things: a without a journal, b with one.
TEST(PsHistory, EachTableHasItsOwnLevel) {
  sim::World world(5);
  sim::SimDisk disk(world);
  std::vector<std::string> said;
  const auto options = [&](uint64_t incarnation) {
    ServerOptions o = options_of(Durability::kJournal, disk, "state", incarnation);
    o.history.tables["a"] = Durability::kSnapshot;
    o.history.tell = [&](const std::string& what) { said.push_back(what); };
    return o;
  };
  uint64_t sequence = 0;
  for (uint64_t life = 1; life <= 3; ++life) {  // a snapshot after each fourth push
    ToyStore store(2);
    Server server(options(life), store);
    hello(server, sequence);
    const int64_t lost = life == 1 ? 0 : 6 % 4;
    EXPECT_EQ(server.stats().lost, lost);
    EXPECT_EQ(value(store, 1), static_cast<float>(sequence));
    EXPECT_EQ(value(store, 0), static_cast<float>(sequence) - static_cast<float>(lost) * static_cast<float>(life - 1));
    for (int i = 0; i < 6; ++i) ASSERT_TRUE(push(server, ++sequence));
    EXPECT_TRUE(push(server, sequence));  // what was left out of the journal is known, too
    EXPECT_EQ(server.stats().repeated, 1);
  }
  ASSERT_EQ(said.size(), 2U);
  EXPECT_EQ(said[0],
            "2 updates of the table a that toy:0 had acknowledged are lost: its state is that of an older snapshot");
  ToyStore store(2);
  ServerOptions wrong = options(9);
  wrong.history.tables["c"] = Durability::kFlushed;
  EXPECT_THROW(Server(wrong, store), Error);
}

// Only pushes that bring something of a table at L2 wait for the disk, and survive it.
TEST(PsHistory, OnlyWhatHasToSurviveTheMachineIsFlushed) {
  sim::World world(5);
  sim::SimDisk disk(world);
  ServerOptions o = options_of(Durability::kJournal, disk, "state", 1);
  o.history.snapshot_every = 1000;
  o.history.tables["b"] = Durability::kFlushed;
  ToyStore store(2);
  Server server(o, store);
  hello(server);
  const auto push_one = [&](uint64_t sequence, uint32_t variable) {
    auto m = std::make_shared<Message>(Verb::kExchange);
    m->header().incarnation = 7;
    m->header().sequence = sequence;
    m->add(variable, filled(-1));
    return !ask(server, m)->header().error;
  };
  const int begun = disk.flushed;
  for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(push_one(i, 0));
  EXPECT_EQ(disk.flushed, begun);
  ASSERT_TRUE(push_one(6, 1));
  EXPECT_EQ(disk.flushed, begun + 1);
  ASSERT_TRUE(push_one(7, 0));
  EXPECT_EQ(disk.flushed, begun + 1);
}

// Due work is done when a test says so.
class Later final : public Timer {
 public:
  void after(Milliseconds, std::function<void()> what) override { due_.push_back(std::move(what)); }
  bool one() {
    if (due_.empty()) return false;
    const auto what = std::move(due_.front());
    due_.pop_front();
    what();
    return true;
  }

 private:
  std::deque<std::function<void()>> due_;
};

// Pushes go on while a snapshot is written, none of which waits for a slice; wherever it is killed between two of them,
// a server has what it had acknowledged, or, without a journal, all of one moment.
TEST(PsHistory, PushesGoOnBetweenTheSlicesOfASnapshot) {
  for (const Durability d : {Durability::kSnapshot, Durability::kJournal, Durability::kFlushed}) {
    for (int slices = 0; slices <= 6; ++slices) {
      sim::World world(5);
      sim::SimDisk disk(world);
      Later later;
      ServerOptions o = options_of(d, disk, "state", 1);
      o.timer = &later;
      uint64_t sequence = 0;
      bool whole = false;
      {
        ToyStore store(4);
        Server server(o, store);
        hello(server);
        EXPECT_EQ(server.stats().snapshots, 1);
        while (sequence < 4) ASSERT_TRUE(push(server, ++sequence));
        for (int i = 0; i < slices; ++i) {
          later.one();
          ASSERT_TRUE(push(server, ++sequence));
        }
        whole = server.stats().snapshots == 2;
        EXPECT_EQ(whole, slices >= 4);
      }
      while (later.one()) {  // what comes to a server that is gone
      }
      o.incarnation = 2;
      ToyStore next(4);
      Server again(o, next);
      const auto kept = static_cast<float>(d != Durability::kSnapshot ? sequence : whole ? 4 : 0);
      EXPECT_EQ(value(next, 0), kept) << slices << " slices";
      EXPECT_EQ(value(next, 1), kept) << slices << " slices";
      hello(again, sequence);
      EXPECT_EQ(again.stats().lost, static_cast<int64_t>(sequence) - static_cast<int64_t>(kept));
    }
  }
}

// A worker that is complete does not come back to say what was acknowledged to it: without a journal a snapshot of now
// is on disk before the worker receives that answer, and one of before that is under way is given up for it.
TEST(PsHistory, CompletedWorkersAreInASnapshot) {
  sim::World world(5);
  sim::SimDisk disk(world);
  Later later;
  ServerOptions o = options_of(Durability::kSnapshot, disk, "state", 1);
  o.timer = &later;
  {
    ToyStore store(2);
    Server server(o, store);
    hello(server);
    for (uint64_t i = 1; i <= 5; ++i) ASSERT_TRUE(push(server, i));
    later.one();
    auto m = std::make_shared<Message>(Verb::kComplete);
    m->header().incarnation = 7;
    m->header().sequence = 6;
    EXPECT_FALSE(ask(server, m)->header().error);
    EXPECT_EQ(server.stats().snapshots, 2);
  }
  ToyStore next(2);
  o.incarnation = 2;
  const Server again(o, next);
  EXPECT_EQ(value(next), 5);
  EXPECT_TRUE(again.finished());
}

TEST(PsHistory, AnotherModelIsRefused) {
  sim::World world(5);
  sim::SimDisk disk(world);
  {
    ToyStore store(2);
    const Server server(options_of(Durability::kJournal, disk, "state", 1), store);
  }
  ToyStore smaller(1), larger(3);
  EXPECT_THROW(Server(options_of(Durability::kJournal, disk, "state", 2), smaller), Error);
  EXPECT_THROW(Server(options_of(Durability::kJournal, disk, "state", 2), larger), Error);
  ServerOptions sync = options_of(Durability::kJournal, disk, "state", 2);
  sync.mode = Mode::kSync;
  ToyStore same(2);
  EXPECT_THROW(Server(sync, same), Error);
  for (const auto& f : disk.files()) disk.damage(f);
  EXPECT_THROW(Server(options_of(Durability::kJournal, disk, "state", 2), same), Error);
}

}  // namespace
}  // namespace anabranch::ps
