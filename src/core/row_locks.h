// Spin bits over the rows of all tables of the process. While several training threads update the rows of one table
// without order (Sharing), a thread holds a row's bit to read or write it, so that no reader sees a half-updated row.
// Without such threads nothing is locked: the executors keep conflicting ops apart. A reader that started before them
// takes no locks.
#pragma once
#include <atomic>
#include <cstdint>

namespace anabranch {

class RowLocks {
 public:
  // Rows are held during its lifetime.
  class Sharing {
   public:
    explicit Sharing(bool on = true) : on_(on) { sharing_ += on_; }
    ~Sharing() { sharing_ -= on_; }
    Sharing(const Sharing&) = delete;

   private:
    bool on_;
  };
  // Read once per kernel call; all its chunks use that answer.
  static bool shared() { return sharing_.load(std::memory_order_relaxed) > 0; }

  // The bit of one row; `table` is the address of the table's first element. Does nothing unless `on`.
  class Hold {
   public:
    Hold(const void* table, int64_t row, bool on) : bit_(on ? &bit_of(table, row) : nullptr) {
      if (bit_) take(*bit_);
    }
    ~Hold() {
      if (bit_) bit_->store(0, std::memory_order_release);
    }
    Hold(const Hold&) = delete;

   private:
    std::atomic<uint8_t>* bit_;
  };

  // Locks all rows of all tables, for copying a table or its row state. The caller must not hold a row.
  class HoldAll {
   public:
    explicit HoldAll(bool on);
    ~HoldAll();
    HoldAll(const HoldAll&) = delete;

   private:
    bool on_;
  };

 private:
  friend struct RowLocksAtFork;
  static constexpr int kBits = 16;  // 64 KiB of bytes: two threads rarely contend for one

  static std::atomic<uint8_t>& bit_of(const void* table, int64_t row) {
    const auto key = reinterpret_cast<uint64_t>(table) / 64 + static_cast<uint64_t>(row);
    return bits_[(key * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  }
  static void take(std::atomic<uint8_t>& bit) {
    while (bit.exchange(1, std::memory_order_acquire) != 0) wait_for(bit);
  }
  static void wait_for(const std::atomic<uint8_t>& bit);  // until it appears free; yields when its holder sleeps

  static std::atomic<int> sharing_;
  static std::atomic<uint8_t> bits_[1 << kBits];
};

}  // namespace anabranch
