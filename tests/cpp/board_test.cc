// Memory that processes share: which ranks come, which are late, and which have ended.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "comm/group.h"
#include "comm/share_memory.h"

namespace anabranch::comm {
namespace {

constexpr int64_t kLong = 60000;  // milliseconds: of tests in which no rank is late

File process_of(pid_t process) { return File(static_cast<int>(syscall(SYS_pidfd_open, process, 0))); }

// A board of two, as both of them have it.
struct Two {
  File memory{memfd_create("test", MFD_CLOEXEC)};
  Two() { EXPECT_EQ(ftruncate(memory.number(), static_cast<off_t>(Board::bytes(2))), 0); }
  std::unique_ptr<Board> of(int rank, pid_t other = getpid()) const {
    std::vector<File> alive(2);
    alive[1 - rank] = process_of(other);
    return std::make_unique<Board>(rank, Mapping(memory, Board::bytes(2)), std::move(alive));
  }
};

TEST(Board, MeetingsFollowEachOther) {
  const Two two;
  constexpr uint64_t kMeetings = 20000;
  const auto run = [&](int rank) {
    const auto board = two.of(rank);
    for (uint64_t meeting = 1; meeting <= kMeetings; ++meeting) {
      const uint64_t mine = meeting * 2 + rank;
      std::memcpy(board->mine(), &mine, sizeof(mine));
      std::memcpy(board->mine() + Board::kSide - sizeof(mine), &mine, sizeof(mine));
      int missing = -1;
      ASSERT_EQ(board->meet(kLong, &missing), "");
      for (int r = 0; r < 2; ++r) {
        uint64_t first = 0, last = 0;
        std::memcpy(&first, board->of(r), sizeof(first));
        std::memcpy(&last, board->of(r) + Board::kSide - sizeof(last), sizeof(last));
        ASSERT_EQ(first, meeting * 2 + r);
        ASSERT_EQ(last, meeting * 2 + r);
      }
    }
  };
  std::thread other([&] { run(1); });
  run(0);
  other.join();
}

TEST(Board, LateProcessesAreNamed) {
  const Two two;
  const auto first = two.of(0), second = two.of(1);
  int missing = -1;
  EXPECT_EQ(first->meet(30, &missing), "no message in time");
  EXPECT_EQ(missing, 1);
}

TEST(Board, AMessageWrittenBeforeLeavingIsRead) {
  const Two two;
  const auto first = two.of(0);
  auto second = two.of(1);
  std::strcpy(second->mine(), "farewell");
  int missing = -1;
  second->meet(1, &missing);
  second = nullptr;
  EXPECT_EQ(first->meet(kLong, &missing), "");
  EXPECT_STREQ(first->of(1), "farewell");
  EXPECT_EQ(first->meet(kLong, &missing), "its process has left");
  EXPECT_EQ(missing, 1);
}

TEST(Board, AProcessThatIsKilledEndsTheWait) {
  const Two two;
  const pid_t other = fork();
  if (other == 0) {
    while (true) pause();
  }
  const auto board = two.of(0, other);
  std::thread killer([&] { kill(other, SIGKILL); });
  int missing = -1;
  EXPECT_EQ(board->meet(kLong, &missing), "its process has left");
  EXPECT_EQ(missing, 1);
  killer.join();
  waitpid(other, nullptr, 0);
}

TEST(Board, AWaitCanBeEnded) {
  const Two two;
  const auto first = two.of(0), second = two.of(1);
  std::thread ends([&] { first->abort(); });
  int missing = -1;
  EXPECT_EQ(first->meet(kLong, &missing), "ended");
  ends.join();
}

TEST(Board, UsedOnlyIfAllProcessesRequestIt) {
  std::vector<std::unique_ptr<Group>> groups;
  auto wires = local_wires(3);
  for (int r = 0; r < 3; ++r) {
    const std::vector<std::string> endpoints = {"a:1", "b:1", "c:1"};
    groups.push_back(
        std::make_unique<Group>(std::make_unique<Peers>(r, endpoints, std::move(wires[r]), Milliseconds(kLong))));
  }
  std::vector<std::thread> threads;
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      groups[r]->call([&](Peers& peers) {
        EXPECT_FALSE(share_memory(peers, r != 2));
        EXPECT_EQ(peers.board(), nullptr);
        float one = 1;
        const Chunk chunk{&one, 1};
        What what(CollectiveKind::kAllReduce, DType::kFloat32, "x");
        what.add(Shape{1});
        Collective().all_reduce(peers, what, Combine::kSum, {&chunk, 1});
        EXPECT_EQ(one, 3);
        EXPECT_TRUE(share_memory(peers, true));
        EXPECT_NE(peers.board(), nullptr);
      });
    });
  }
  for (auto& t : threads) t.join();
}

}  // namespace
}  // namespace anabranch::comm
