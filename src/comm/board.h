// Memory shared by all processes of a group on one machine. Each process writes its own part and reads the others',
// meeting by meeting. A part has two sides: while the others read one, its owner may write the other. A wait ends with
// a deadline, when the awaited process is gone, or by abort(); like those of a wire, failures are returned as text. For
// one thread, except gone() and abort().
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
  static constexpr size_t kSide = size_t{1} << 18;  // bytes of a side, small enough to be read from the cache
  static constexpr int kMost = 64;                  // maximum number of processes
  static size_t bytes(int processes);               // size of the memory for all of them

  // `memory`: bytes(alive.size()) bytes, initially zero. `alive`: for each other process, an object that knows whether
  // it runs.
  Board(int rank, Mapping memory, std::vector<File> alive);
  ~Board();  // notifies the others that this process has left
  Board(const Board&) = delete;

  char* mine() { return side(rank_, meetings_ + 1); }               // to be written before the next meeting
  const char* of(int rank) const { return side(rank, meetings_); }  // as of the last meeting, until the next one
  // Publishes this process's side and waits until it can read the others'. `missing`: the process that did not arrive.
  std::string meet(int64_t within_ms, int* missing);
  int gone() const;  // the first process that is gone; -1: none. From any thread
  void abort();      // from any thread: ends the current wait and all later ones

 private:
  struct Member;
  struct Head;
  using Clock = std::chrono::steady_clock;

  Head& head() const;
  Member& member(int rank) const;
  char* side(int rank, uint64_t meeting) const;
  bool has_come(int rank) const;
  bool is_gone(int rank) const;
  void ring();
  std::string wait(int rank, Clock::time_point end);

  const int rank_, size_;
  const Mapping memory_;
  const std::vector<File> alive_;
  uint64_t meetings_ = 0;
  std::atomic<bool> aborted_{false};
};

}  // namespace anabranch::comm
