// A process of a group: sends and receives with errors that name the other side. Every wait ends: with the message,
// with the deadline, or because a process has left the group. A failure is final, and each later call repeats it. For
// one thread, except fail() and look().
#pragma once
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "comm/board.h"
#include "comm/wire.h"

namespace anabranch::comm {

using Milliseconds = std::chrono::milliseconds;

// Where processes exchange the reason for the end of a group: the first to notice publishes it, so that all report one
// reason.
class Witness {
 public:
  virtual ~Witness() = default;
  // The reason that was published first, possibly this one.
  virtual std::string report(const std::string& why) = 0;
};

class Peers {
 public:
  Peers(int rank, std::vector<std::string> endpoints, std::unique_ptr<Wire> wire, Milliseconds deadline);

  int rank() const { return rank_; }
  int size() const { return static_cast<int>(endpoints_.size()); }
  const std::vector<std::string>& endpoints() const { return endpoints_; }
  Wire& wire() { return *wire_; }
  Milliseconds deadline() const { return deadline_; }
  std::string name(int rank) const;  // "rank 2 (10.0.0.3:6170)"

  // A new message number, the same in all processes: they run the same collectives in the same order.
  void begin(const char* what);
  // `phase`: of this collective, below 8.
  void send(Region& from, int to, int phase, size_t offset, size_t bytes);
  void receive(Region& into, int from, int phase, size_t offset, size_t bytes);
  void wait_sent(Region& region, int to);
  void wait_received(Region& region, int from);

  // Memory that all of them share; null: none.
  Board* board() const { return board_.get(); }
  void use(std::unique_ptr<Board> board);
  void meet();  // a meeting at the board

  void listen_to(std::shared_ptr<Witness> witness) { witness_ = std::move(witness); }
  void fail(const std::string& why);
  std::string failure() const;  // empty: the group works
  // Throws without a meeting if the group has failed or a process is gone. Only a board shows which process is gone;
  // with a wire the next meeting does.
  void look();

 private:
  uint64_t tag(int phase) const { return number_ * 8 + static_cast<uint64_t>(phase); }
  void wait(Region& region, int other, bool receives);
  [[noreturn]] void lost(const char* doing, int other, const std::string& why, bool late);
  void check();

  const int rank_;
  const std::vector<std::string> endpoints_;
  const std::unique_ptr<Wire> wire_;
  const Milliseconds deadline_;
  std::shared_ptr<Witness> witness_;
  std::unique_ptr<Board> board_;
  uint64_t number_ = 0;
  const char* what_ = "";

  mutable std::mutex mutex_;
  std::string failure_;
  Region* waiting_ = nullptr;
};

}  // namespace anabranch::comm
