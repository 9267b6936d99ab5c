// The memory that a process shares with the others of its machine: for each of them a few slots, which it fills and
// they empty. It has no name: others open it by the number of the process and its descriptor, and find a secret in it.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace anabranch::comm {

// What a process tells the others of its segment.
struct SegmentAddress {
  std::array<uint64_t, 2> machine{};  // boot and space of process numbers
  std::array<uint64_t, 2> secret{};
  uint64_t bytes = 0, slot_bytes = 0;  // 0: there is none
  int32_t pid = 0, fd = -1;
};

class Segment {
 public:
  static constexpr int kSlots = 2;
  // Null when there is no memory.
  static std::unique_ptr<Segment> make(int processes, size_t slot_bytes);
  // Another process's; null when it is not within reach.
  static std::unique_ptr<Segment> open(const SegmentAddress& address, int processes);
  ~Segment();
  Segment(const Segment&) = delete;

  const SegmentAddress& address() const { return address_; }
  size_t slot_bytes() const { return address_.slot_bytes; }
  // Not 0 while it holds bytes that were not taken.
  std::atomic<uint32_t>& full(int process, int slot) const;
  char* data(int process, int slot) const;

 private:
  Segment() = default;
  bool map(int processes);
  char* slot(int process, int slot) const;

  SegmentAddress address_;
  int fd_ = -1;
  char* memory_ = nullptr;
};

}  // namespace anabranch::comm
