// Rendezvous of a communicator's ranks in several processes: memory that all of them map. It holds each rank's state
// and the bytes it contributes to collectives ("rounds", numbered from 0). It does not know queues or devices, and
// never waits. Called under the lock of the machine; payload() and its memory need no lock.
//
// Writers and their order:
//   Head    key, side: by the creator of the id, before it is published. ranks: 0 -> number, by the first rank to join.
//           failing: 0 -> 1 by the first process that finds a disagreement or a dead process; it then writes
//           failed_rank and text, and finally 2 (release). Others read them after they have seen 2 (acquire).
//   Slot    one per rank. owner: 0 -> process, by the process that joins as that rank and alone writes all the rest:
//           start, then state = kThere (release). Round n: the payload, specs[n % 2], then rounds = n + 1 (release);
//           a process that has seen rounds > n (acquire) may read both. state = kLeft or kAborted (release) comes last.
//   Sides   two payloads per rank; that of round n is in side n % 2. A process starts round n + 1 when it has read all
//           payloads of round n, and ends round n + 1 when all ranks have started it. So at the start of round n + 2
//           no process reads side n % 2 any more. A side has room for a whole device: untouched pages take no memory,
//           so nothing has to grow or to be mapped again.
#pragma once
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "comm_name.h"
#include "peer.h"
#include "spec.h"

namespace anabranch::simdevice {

struct Trouble {
  int rank = -1;  // unknown
  std::string why;
  explicit operator bool() const { return !why.empty(); }
};

class SharedComm {
 public:
  static constexpr int kMost = 8;         // ranks
  static size_t file_bytes(size_t side);  // of make_comm_memory()

  // own: the file's descriptor in the process that created it, which holds it until all ranks have joined; else -1.
  SharedComm(const CommName& name, int own, int ranks);
  ~SharedComm();
  SharedComm(const SharedComm&) = delete;

  void join(int rank);
  void leave(int rank, bool abort);
  bool mine(int rank) const { return mine_[static_cast<size_t>(rank)]; }
  bool joined();  // all ranks have

  size_t room() const { return side_; }  // of a payload
  char* payload(int rank, uint64_t round) const;
  void begin(int rank, uint64_t round, const Spec& spec);  // its payload has been written
  bool has_begun(int rank, uint64_t round) const;
  const Spec& spec(int rank, uint64_t round) const;  // it has started

  void tell(const Trouble& trouble);  // notifies all processes; the first reason is kept
  // A rank has given up, has ended with its process, or has left before starting `needed` rounds. Processes are checked
  // every few milliseconds.
  Trouble trouble(uint64_t needed);

 private:
  struct Head;
  struct Slot;
  using Time = std::chrono::steady_clock;

  Head& head() const;
  Slot& slot(int rank) const;
  size_t bytes() const;  // that are mapped
  Trouble ended();
  Trouble ended_maker() const;

  const CommName name_;
  const int ranks_;
  size_t side_ = 0;
  char* memory_ = nullptr;
  std::vector<bool> mine_;
  std::vector<Peer> peers_;  // by rank; none for ranks of this process
  Peer maker_;
  bool joined_ = false;
  Time::time_point looked_{};
};

}  // namespace anabranch::simdevice
