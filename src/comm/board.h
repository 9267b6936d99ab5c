// Memory that all processes of a group see, where they are on one machine: each writes its own part and reads those of
// the others, turn by turn. A part has two sides: while the others read one, its owner may write the other one. Waits
// end with a deadline, when the process that is waited for is gone, or by abort(); as those of a wire they tell
// failures as text. For one thread, but for gone() and abort().
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "comm/mapping.h"

namespace anabranch::comm {

class Board {
 public:
  static constexpr size_t kSide = size_t{1} << 18;  // bytes of a side: what is written there is read from the cache
  static constexpr int kMost = 64;                  // processes
  static size_t bytes(int processes);               // of the memory of all

  // `memory`: of bytes(alive.size()), zero at first. `alive`: of each other process what tells that it has ended.
  Board(int rank, Mapping memory, std::vector<File> alive);
  ~Board();  // the others hear that this process has left
  Board(const Board&) = delete;

  char* mine() { return side(rank_, turn_ + 1); }               // to be written before the next turn()
  const char* of(int rank) const { return side(rank, turn_); }  // as it was at the last turn(); until the next one
  // What this process has written can be read by all, and it waits until it can read theirs. `missing`: for whom it
  // has waited in vain.
  std::string turn(int64_t within_ms, int* missing);
  int gone() const;  // the first process that is; -1: none. From any thread
  void abort();      // from any thread: ends a wait, and all that follow

 private:
  struct Place;
  struct Head;
  using Clock = std::chrono::steady_clock;

  Head& head() const;
  Place& place(int rank) const;
  char* side(int rank, uint64_t turn) const;
  bool has_come(int rank) const;
  bool is_gone(int rank) const;
  void ring();
  std::string wait(int rank, Clock::time_point end);

  const int rank_, size_;
  const Mapping memory_;
  const std::vector<File> alive_;
  uint64_t turn_ = 0;
  std::atomic<bool> aborted_{false};
};

}  // namespace anabranch::comm
