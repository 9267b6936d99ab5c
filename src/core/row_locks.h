// Spin bits over the rows of all tables of the process. While several trainers update the rows of one table without
// order, whoever reads or writes a row holds its bit, so that nobody sees a row that mixes two updates. Nothing is
// locked in a thread that is not told to (Sharing): the executors keep conflicting ops apart by themselves.
#pragma once
#include <atomic>
#include <cstdint>

namespace anabranch {

class RowLocks {
 public:
  // While it lives, this thread's kernels share tables with other threads.
  class Sharing {
   public:
    explicit Sharing(bool on = true) : before_(shared_) { shared_ = on; }
    ~Sharing() { shared_ = before_; }
    Sharing(const Sharing&) = delete;

   private:
    bool before_;
  };
  // Asked once a kernel, in the thread that the kernel is called in; its pieces may run in others.
  static bool shared() { return shared_; }

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

 private:
  static constexpr int kBits = 16;  // 64 KiB of bytes: two trainers rarely meet at one

  static std::atomic<uint8_t>& bit_of(const void* table, int64_t row) {
    const auto key = reinterpret_cast<uint64_t>(table) / 64 + static_cast<uint64_t>(row);
    return bits_[(key * 0x9e3779b97f4a7c15u) >> (64 - kBits)];
  }
  static void take(std::atomic<uint8_t>& bit) {
    while (bit.exchange(1, std::memory_order_acquire) != 0) wait_for(bit);
  }
  static void wait_for(const std::atomic<uint8_t>& bit);  // until it looks free; yields when its holder sleeps

  static thread_local bool shared_;
  static std::atomic<uint8_t> bits_[1 << kBits];
};

}  // namespace anabranch
