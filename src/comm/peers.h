// A process among those of its group: sends and receives that name the other side where they fail. All waits end: with
// the message, with the deadline, or because somebody has left the group. A failure is final, and each later call
// repeats it. For one thread, but for fail() and look().
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

// Where processes tell each other why a group has ended: who notices first tells all, so that all give one reason.
class Witness {
 public:
  virtual ~Witness() = default;
  // What was reported first, which may be this.
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

  // A new number for messages, the same in all processes: they run the same collectives in the same order.
  void begin(const char* what);
  // `phase`: of this collective, below 8.
  void send(Region& from, int to, int phase, size_t offset, size_t bytes);
  void receive(Region& into, int from, int phase, size_t offset, size_t bytes);
  void wait_sent(Region& region, int to);
  void wait_received(Region& region, int from);

  // Memory that all of them share; null: there is none.
  Board* board() const { return board_.get(); }
  void use(std::unique_ptr<Board> board);
  void turn();  // of the board

  void listen_to(std::shared_ptr<Witness> witness) { witness_ = std::move(witness); }
  void fail(const std::string& why);
  std::string failure() const;  // empty: the group works
  // Throws when the group has failed, or somebody is gone, without a meeting. Only a board shows who is gone; of those
  // behind a wire the next meeting tells.
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
