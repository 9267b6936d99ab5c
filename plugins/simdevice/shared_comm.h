// Where ranks of a communicator meet that live in several processes: memory that all of them map. It holds what each
// rank says of itself and the bytes that it gives to collectives ("rounds", numbered from 0). It knows nothing of
// queues or devices, and never waits. Called under the lock of the machine; payload() and what it points to need none.
//
// Who writes what, and in which order:
//   Head    key, side: who makes the id, before anybody knows it. ranks: 0 -> number, by the first that joins.
//           failing: 0 -> 1 by the first that finds ranks to disagree or a process to have ended, who then writes
//           failed_rank and text, and -> 2 (release) behind them. Others read them behind 2 (acquire).
//   Slot    one a rank. owner: 0 -> process, by whoever joins as that rank; all else is written by that process alone.
//           start, then state = kThere (release). Round n: the payload, specs[n % 2], then rounds = n + 1 (release);
//           who has seen rounds > n (acquire) may read both. state = kLeft or kAborted (release) is the last word.
//   Sides   two payloads a rank; that of round n lies in side n % 2. A process begins round n + 1 when it has read all
//           payloads of round n, and ends round n + 1 when all ranks have begun it. So who begins round n + 2 knows
//           that nobody reads side n % 2 any more. A side has room for all that a device holds: pages that nobody has
//           written take no memory, so nothing has to grow or to be mapped again.
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
  int rank = -1;  // not known
  std::string why;
  explicit operator bool() const { return !why.empty(); }
};

class SharedComm {
 public:
  static constexpr int kMost = 8;         // ranks
  static size_t file_bytes(size_t side);  // of make_comm_memory()

  // own: the file's descriptor in the process that has named it, which holds it until all ranks have joined; else -1.
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
  const Spec& spec(int rank, uint64_t round) const;  // it has begun

  void tell(const Trouble& trouble);  // all processes; the first one stays
  // A rank has given up, has ended with its process, or has left before it has begun `wanted` rounds. Whether processes
  // live is looked at every few milliseconds.
  Trouble trouble(uint64_t wanted);

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
  std::vector<Peer> peers_;  // by rank; of this process: none
  Peer maker_;
  bool joined_ = false;
  Time::time_point looked_{};
};

}  // namespace anabranch::simdevice
