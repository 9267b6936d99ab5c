// A wire between threads: a message and its sender wait until it is received.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <list>
#include <mutex>

#include "comm/wire.h"

namespace anabranch::comm {
namespace {

struct Parcel {
  int from, to;
  uint64_t tag;
  char* memory;
  size_t bytes;
  class LocalRegion* owner;
};

// Operations whose other side has not started.
struct Office {
  std::mutex mutex;
  std::condition_variable changed;
  std::list<Parcel> sends, receives;
  std::vector<bool> gone;
};

class LocalRegion final : public Region {
 public:
  LocalRegion(std::shared_ptr<Office> office, int rank, void* memory)
      : office_(std::move(office)), rank_(rank), memory_(static_cast<char*>(memory)) {}
  ~LocalRegion() override {
    const std::lock_guard lock(office_->mutex);
    const auto mine = [this](const Parcel& p) { return p.owner == this; };
    office_->sends.remove_if(mine);
    office_->receives.remove_if(mine);
  }
  std::string send(int to, uint64_t tag, size_t offset, size_t bytes) override {
    const std::lock_guard lock(office_->mutex);
    office_->sends.push_back({rank_, to, tag, memory_ + offset, bytes, this});
    return meet();
  }
  std::string receive(int from, uint64_t tag, size_t offset, size_t bytes) override {
    const std::lock_guard lock(office_->mutex);
    office_->receives.push_back({from, rank_, tag, memory_ + offset, bytes, this});
    return meet();
  }
  std::string wait_sent(int64_t within_ms) override { return wait(&LocalRegion::sent_, office_->sends, within_ms); }
  std::string wait_received(int64_t within_ms) override {
    return wait(&LocalRegion::received_, office_->receives, within_ms);
  }
  void abort() override {
    const std::lock_guard lock(office_->mutex);
    aborted_ = true;
    office_->changed.notify_all();
  }

 private:
  // Delivers messages that have both sides. The lock is held.
  std::string meet() {
    for (auto s = office_->sends.begin(); s != office_->sends.end();) {
      const auto same = [&](const Parcel& r) { return r.from == s->from && r.to == s->to && r.tag == s->tag; };
      const auto r = std::find_if(office_->receives.begin(), office_->receives.end(), same);
      if (r == office_->receives.end()) {
        ++s;
        continue;
      }
      if (r->bytes != s->bytes) return "a message does not have the expected size";
      if (s->bytes > 0) std::memcpy(r->memory, s->memory, s->bytes);
      ++s->owner->sent_;
      ++r->owner->received_;
      office_->receives.erase(r);
      s = office_->sends.erase(s);
      office_->changed.notify_all();
    }
    return {};
  }

  bool waits_for_gone(const std::list<Parcel>& open) const {
    return std::any_of(open.begin(), open.end(), [&](const Parcel& p) {
      return p.owner == this && office_->gone[p.from == rank_ ? p.to : p.from];
    });
  }

  std::string wait(int LocalRegion::*count, const std::list<Parcel>& open, int64_t within_ms) {
    std::unique_lock lock(office_->mutex);
    const auto over = [&] { return this->*count > 0 || aborted_ || waits_for_gone(open); };
    const bool in_time = office_->changed.wait_for(lock, std::chrono::milliseconds(within_ms), over);
    if (this->*count > 0) return --(this->*count), std::string();
    if (aborted_) return "ended";
    return in_time ? "its connection is closed" : "no message in time";
  }

  const std::shared_ptr<Office> office_;
  const int rank_;
  char* const memory_;
  int sent_ = 0, received_ = 0;
  bool aborted_ = false;
};

class LocalWire final : public Wire {
 public:
  LocalWire(std::shared_ptr<Office> office, int rank) : office_(std::move(office)), rank_(rank) {}
  ~LocalWire() override {
    const std::lock_guard lock(office_->mutex);
    office_->gone[rank_] = true;
    office_->changed.notify_all();
  }
  std::unique_ptr<Region> region(void* memory, size_t) override {
    return std::make_unique<LocalRegion>(office_, rank_, memory);
  }

 private:
  const std::shared_ptr<Office> office_;
  const int rank_;
};

}  // namespace

std::vector<std::unique_ptr<Wire>> local_wires(int size) {
  const auto office = std::make_shared<Office>();
  office->gone.resize(size);
  std::vector<std::unique_ptr<Wire>> wires;
  for (int r = 0; r < size; ++r) wires.push_back(std::make_unique<LocalWire>(office, r));
  return wires;
}

}  // namespace anabranch::comm
