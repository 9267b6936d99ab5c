#include "comm/peers.h"

#include "base/error.h"

namespace anabranch::comm {

Peers::Peers(int rank, std::vector<std::string> endpoints, std::unique_ptr<Wire> wire, Milliseconds deadline)
    : rank_(rank), endpoints_(std::move(endpoints)), wire_(std::move(wire)), deadline_(deadline) {}

std::string Peers::name(int rank) const { return fmt::format("rank {} ({})", rank, endpoints_[rank]); }

void Peers::begin(const char* what) {
  check();
  what_ = what;
  ++number_;
}

void Peers::send(Region& from, int to, int phase, size_t offset, size_t bytes) {
  check();
  if (std::string why = from.send(to, tag(phase), offset, bytes); !why.empty()) lost(what_, to, why, false);
}

void Peers::receive(Region& into, int from, int phase, size_t offset, size_t bytes) {
  check();
  if (std::string why = into.receive(from, tag(phase), offset, bytes); !why.empty()) lost(what_, from, why, false);
}

void Peers::wait_sent(Region& region, int to) { wait(region, to, false); }
void Peers::wait_received(Region& region, int from) { wait(region, from, true); }

void Peers::wait(Region& region, int other, bool receives) {
  {
    const std::lock_guard lock(mutex_);
    AB_CHECK(failure_.empty(), Unavailable, "{}", failure_);
    waiting_ = &region;
  }
  const auto begun = std::chrono::steady_clock::now();
  const std::string why = receives ? region.wait_received(deadline_.count()) : region.wait_sent(deadline_.count());
  {
    const std::lock_guard lock(mutex_);
    waiting_ = nullptr;
  }
  if (!why.empty()) lost(what_, other, why, std::chrono::steady_clock::now() - begun >= deadline_);
}

void Peers::use(std::unique_ptr<Board> board) {
  const std::lock_guard lock(mutex_);
  board_ = std::move(board);
}

void Peers::meet() {
  check();
  const auto begun = std::chrono::steady_clock::now();
  int other = rank_;
  const std::string why = board_->meet(deadline_.count(), &other);
  if (!why.empty()) lost(what_, other, why, std::chrono::steady_clock::now() - begun >= deadline_);
}

void Peers::lost(const char* doing, int other, const std::string& why, bool late) {
  if (std::string earlier = failure(); !earlier.empty()) AB_THROW(Unavailable, "{}", earlier);
  std::string reason =
      late ? fmt::format("{} of {}: {} has not come to it for {:.1f} s (FLAGS_collective_deadline)", doing, name(rank_),
                         name(other), std::chrono::duration<double>(deadline_).count())
           : fmt::format("{} of {}: {} is gone: {}", doing, name(rank_), name(other), why);
  if (witness_) reason = witness_->report(reason);
  fail(reason);
  AB_THROW(Unavailable, "{}", failure());
}

void Peers::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = why;
  if (waiting_) waiting_->abort();
  if (board_) board_->abort();
}

std::string Peers::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Peers::look() {
  check();
  const int gone = board_ ? board_->gone() : -1;
  if (gone >= 0) lost("collective on devices", gone, "its process has left", false);
}

void Peers::check() {
  const std::lock_guard lock(mutex_);
  AB_CHECK(failure_.empty(), Unavailable, "{}", failure_);
}

}  // namespace anabranch::comm
