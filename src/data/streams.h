// The two kinds of BatchStream.
#pragma once
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "data/block.h"
#include "data/dataset.h"

namespace anabranch::data {

// The result of load(): blocks, and the order of their samples. Constant once it is shared; a copy shares the blocks.
struct Records {
  struct At {
    uint32_t block, row;
  };
  std::vector<std::shared_ptr<const Block>> blocks;
  std::vector<At> order;
  Statistics statistics;

  int64_t memory_bytes() const;
};

// The error of a stream: every later next() throws it again.
class StreamError {
 public:
  void check() const {
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(error_);
  }
  void keep(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    if (failed_.load(std::memory_order_relaxed)) return;
    error_ = std::move(error);
    failed_.store(true, std::memory_order_release);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr error_;
  std::atomic<bool> failed_{false};
};

std::shared_ptr<BatchStream> file_stream(const Settings& settings, const StreamOptions& options);
std::shared_ptr<BatchStream> memory_stream(const Settings& settings, std::shared_ptr<const Records> records);

}  // namespace anabranch::data
