#include "comm/shared_memory.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <optional>

#include "comm/shared_segment.h"

namespace anabranch::comm {
namespace {

constexpr uint64_t kWhole = 4;  // added to the tag of a message that goes over the wire after all; tags use 0 to 3
constexpr uint32_t kOverWire = UINT32_MAX;

// What the small message says.
struct Note {
  uint32_t slot = kOverWire;
  uint32_t reserved = 0;
  uint64_t bytes = 0;
};

struct Shared {
  std::unique_ptr<Wire> wire;
  int rank = 0;
  size_t least = 0;
  std::unique_ptr<Segment> mine;
  std::vector<std::unique_ptr<Segment>> theirs;  // by rank; null where messages go over the wire

  bool takes(int other, size_t bytes) const {
    return mine && theirs[static_cast<size_t>(other)] && bytes >= least && bytes <= mine->slot_bytes();
  }
  // A slot that was filled; kOverWire when all wait to be emptied.
  uint32_t fill(int to, const char* from, size_t bytes) const {
    for (int s = 0; s < Segment::kSlots; ++s) {
      if (mine->full(to, s).load(std::memory_order_acquire)) continue;
      std::memcpy(mine->data(to, s), from, bytes);
      mine->full(to, s).store(1, std::memory_order_release);
      return static_cast<uint32_t>(s);
    }
    return kOverWire;
  }
  std::string empty(int from, const Note& note, char* to, size_t bytes) const {
    const Segment& segment = *theirs[static_cast<size_t>(from)];
    if (note.slot >= Segment::kSlots || note.bytes != bytes) {
      return "a message has another size than it was waited for with";
    }
    const int s = static_cast<int>(note.slot);
    std::memcpy(to, segment.data(rank, s), bytes);
    segment.full(rank, s).store(0, std::memory_order_release);
    return {};
  }
};

// A note on its way, in memory of its own.
struct Box {
  Note note;
  std::unique_ptr<Region> region;
  bool busy = false;
};

// What was begun and not waited for.
struct Step {
  int other;
  Box* box;  // null: the bytes go over the wire
  uint64_t tag;
  size_t offset, bytes;
};

// First in, first out; memory stays.
class Steps {
 public:
  void push(const Step& s) { all_.push_back(s); }
  std::optional<Step> pop() {
    if (next_ == all_.size()) return std::nullopt;
    const Step s = all_[next_++];
    if (next_ == all_.size()) {
      all_.clear();
      next_ = 0;
    }
    return s;
  }

 private:
  std::vector<Step> all_;
  size_t next_ = 0;
};

class SharedRegion final : public Region {
 public:
  SharedRegion(std::shared_ptr<Shared> shared, void* memory, size_t bytes)
      : shared_(std::move(shared)), memory_(static_cast<char*>(memory)), bytes_(bytes) {}

  std::string send(int to, uint64_t tag, size_t offset, size_t bytes) override {
    if (!shared_->takes(to, bytes)) {
      sent_.push({to, nullptr, tag, offset, bytes});
      return whole().send(to, tag, offset, bytes);
    }
    Box& box = free_box();
    box.note = {shared_->fill(to, memory_ + offset, bytes), 0, bytes};
    sent_.push({to, &box, tag, offset, bytes});
    std::string why = box.region->send(to, tag, 0, sizeof(Note));
    if (why.empty() && box.note.slot == kOverWire) why = whole().send(to, tag + kWhole, offset, bytes);
    return why;
  }
  std::string receive(int from, uint64_t tag, size_t offset, size_t bytes) override {
    if (!shared_->takes(from, bytes)) {
      received_.push({from, nullptr, tag, offset, bytes});
      return whole().receive(from, tag, offset, bytes);
    }
    Box& box = free_box();
    received_.push({from, &box, tag, offset, bytes});
    return box.region->receive(from, tag, 0, sizeof(Note));
  }
  std::string wait_sent(int64_t within_ms) override {
    const auto step = sent_.pop();
    if (!step || !step->box) return whole().wait_sent(within_ms);
    std::string why = step->box->region->wait_sent(within_ms);
    step->box->busy = !why.empty();
    return why.empty() && step->box->note.slot == kOverWire ? whole().wait_sent(within_ms) : why;
  }
  std::string wait_received(int64_t within_ms) override {
    const auto step = received_.pop();
    if (!step || !step->box) return whole().wait_received(within_ms);
    std::string why = step->box->region->wait_received(within_ms);
    step->box->busy = !why.empty();
    if (!why.empty()) return why;
    const Note note = step->box->note;
    if (note.slot != kOverWire) return shared_->empty(step->other, note, memory_ + step->offset, step->bytes);
    why = whole().receive(step->other, step->tag + kWhole, step->offset, step->bytes);
    return why.empty() ? whole().wait_received(within_ms) : why;
  }
  void abort() override {
    const std::lock_guard lock(mutex_);
    if (whole_) whole_->abort();
    for (const auto& box : boxes_) box->region->abort();
  }

 private:
  Region& whole() {
    const std::lock_guard lock(mutex_);
    if (!whole_) whole_ = shared_->wire->region(memory_, bytes_);
    return *whole_;
  }
  Box& free_box() {
    const auto found = std::find_if(boxes_.begin(), boxes_.end(), [](const auto& b) { return !b->busy; });
    if (found != boxes_.end()) {
      (*found)->busy = true;
      return **found;
    }
    auto box = std::make_unique<Box>();
    box->region = shared_->wire->region(&box->note, sizeof(Note));
    box->busy = true;
    const std::lock_guard lock(mutex_);
    boxes_.push_back(std::move(box));
    return *boxes_.back();
  }

  const std::shared_ptr<Shared> shared_;
  char* const memory_;
  const size_t bytes_;
  Steps sent_, received_;
  std::mutex mutex_;  // of what abort() looks at
  std::unique_ptr<Region> whole_;
  std::vector<std::unique_ptr<Box>> boxes_;
};

class SharedWire final : public Wire {
 public:
  explicit SharedWire(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  std::unique_ptr<Region> region(void* memory, size_t bytes) override {
    return std::make_unique<SharedRegion>(shared_, memory, bytes);
  }

 private:
  const std::shared_ptr<Shared> shared_;
};

// Gives all others `own`, and fills `all`, by rank, with what they gave.
template <class T>
std::string swap_with_all(Wire& wire, int rank, uint64_t tag, int64_t within_ms, const std::vector<T>& own,
                          std::vector<T>* all) {
  std::vector<T> given = own;
  const auto out = wire.region(given.data(), given.size() * sizeof(T));
  const auto in = wire.region(all->data(), all->size() * sizeof(T));
  std::string why;
  const auto each = [&](auto&& fn) {
    for (int r = 0; r < static_cast<int>(all->size()); ++r) {
      if (r != rank && why.empty()) why = fn(r);
    }
  };
  each([&](int r) { return in->receive(r, tag, static_cast<size_t>(r) * sizeof(T), sizeof(T)); });
  each([&](int r) { return out->send(r, tag, static_cast<size_t>(r) * sizeof(T), sizeof(T)); });
  each([&](int) { return in->wait_received(within_ms); });
  each([&](int) { return out->wait_sent(within_ms); });
  return why;
}

}  // namespace

std::unique_ptr<Wire> share_memory(std::unique_ptr<Wire> wire, int rank, int size, int64_t within_ms,
                                   std::string* failure, const SharingOptions& options) {
  auto shared = std::make_shared<Shared>();
  shared->rank = rank;
  shared->least = options.least_bytes;
  shared->theirs.resize(static_cast<size_t>(size));
  const size_t slots = static_cast<size_t>(size) * Segment::kSlots;
  shared->mine = Segment::make(size, std::min(options.most_of_slot, options.memory_bytes / slots));
  const SegmentAddress mine = shared->mine ? shared->mine->address() : SegmentAddress();
  std::vector<SegmentAddress> addresses(static_cast<size_t>(size));
  // Both sides of a pair use it, or none.
  std::vector<uint8_t> reached(static_cast<size_t>(size)), reaches(static_cast<size_t>(size));
  *failure = swap_with_all(*wire, rank, 0, within_ms, std::vector<SegmentAddress>(addresses.size(), mine), &addresses);
  if (!failure->empty()) return nullptr;
  for (size_t r = 0; r < addresses.size(); ++r) {
    const bool alike = static_cast<int>(r) != rank && addresses[r].slot_bytes == mine.slot_bytes;
    if (alike) shared->theirs[r] = Segment::open(addresses[r], size);
    reached[r] = shared->theirs[r] != nullptr;
  }
  *failure = swap_with_all(*wire, rank, 1, within_ms, reached, &reaches);
  if (!failure->empty()) return nullptr;
  for (size_t r = 0; r < reaches.size(); ++r) {
    if (!reaches[r]) shared->theirs[r] = nullptr;
  }
  const auto there = [](const auto& segment) { return segment != nullptr; };
  if (std::none_of(shared->theirs.begin(), shared->theirs.end(), there)) return wire;
  shared->wire = std::move(wire);
  return std::make_unique<SharedWire>(std::move(shared));
}

}  // namespace anabranch::comm
