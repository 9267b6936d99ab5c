#include "comm/board.h"

#include <immintrin.h>
#include <poll.h>

#include <algorithm>
#include <thread>

#include "base/shared_futex.h"

namespace anabranch::comm {
namespace {

constexpr int kLooks = 64, kPauses = 64;  // about 100 us: processes with equal work arrive at nearly the same time
constexpr int64_t kLook = 20;             // milliseconds of sleep between checks that the other process is alive

}  // namespace

// One cache line each, so that a writer does not disturb readers of the others.
struct alignas(64) Board::Member {
  std::atomic<uint64_t> meetings;  // number of meetings started
  std::atomic<uint32_t> left;
};
static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share no lock");
struct alignas(64) Board::Head {
  std::atomic<uint32_t> bell;      // increases when sleepers must check again
  std::atomic<uint32_t> sleepers;  // too high if a process was killed while asleep: then a signal is wasted
};

size_t Board::bytes(int processes) { return sizeof(Head) + processes * (sizeof(Member) + 2 * kSide); }

Board::Board(int rank, Mapping memory, std::vector<File> alive)
    : rank_(rank), size_(static_cast<int>(alive.size())), memory_(std::move(memory)), alive_(std::move(alive)) {}

Board::~Board() {
  member(rank_).left.store(1);
  ring();
}

Board::Head& Board::head() const { return *reinterpret_cast<Head*>(memory_.data()); }
Board::Member& Board::member(int rank) const { return reinterpret_cast<Member*>(memory_.data() + sizeof(Head))[rank]; }
char* Board::side(int rank, uint64_t meeting) const {
  return memory_.data() + sizeof(Head) + size_ * sizeof(Member) +
         (2 * static_cast<uint64_t>(rank) + meeting % 2) * kSide;
}

bool Board::has_come(int rank) const { return member(rank).meetings.load() >= meetings_; }

bool Board::is_gone(int rank) const {
  pollfd process{alive_[rank].number(), POLLIN, 0};
  return member(rank).left.load() || poll(&process, 1, 0) > 0;
}

int Board::gone() const {
  for (int r = 0; r < size_; ++r) {
    if (r != rank_ && is_gone(r)) return r;
  }
  return -1;
}

void Board::ring() {
  if (head().sleepers.load() == 0) return;
  head().bell.fetch_add(1);
  shared_futex_wake_all(head().bell);
}

void Board::abort() {
  aborted_.store(true);
  ring();
}

std::string Board::meet(int64_t within_ms, int* missing) {
  member(rank_).meetings.store(++meetings_);
  ring();
  const auto end = Clock::now() + std::chrono::milliseconds(within_ms);
  for (int r = 0; r < size_; ++r) {
    if (r == rank_ || has_come(r)) continue;
    *missing = r;
    if (std::string why = wait(r, end); !why.empty()) return why;
  }
  return {};
}

std::string Board::wait(int rank, Clock::time_point end) {
  for (int look = 0; look < kLooks; ++look) {
    for (int pause = 0; pause < kPauses; ++pause) {
      if (has_come(rank)) return {};
      _mm_pause();
    }
    std::this_thread::yield();  // to a thread of this process that computes on this core
  }
  while (true) {
    if (aborted_) return "ended";
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
    head().sleepers.fetch_add(1);
    // The bell before the check: a process that arrives after the check sees a sleeper, and rings.
    const uint32_t seen = head().bell.load();
    if (!has_come(rank) && !aborted_) shared_futex_wait(head().bell, seen, std::clamp<int64_t>(left, 1, kLook));
    head().sleepers.fetch_sub(1);
    if (has_come(rank)) return {};
    // Check once more: it may have arrived, and then exited.
    if (is_gone(rank)) return has_come(rank) ? std::string() : "its process has left";
    if (left <= 0) return "no message in time";
  }
}

}  // namespace anabranch::comm
