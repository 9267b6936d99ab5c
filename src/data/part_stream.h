// The first batches of a stream as a separate stream: a pass in parts, between which no batch is read. Closing a part
// leaves the whole open for the next one.
#pragma once
#include <atomic>
#include <memory>

#include "data/dataset.h"

namespace anabranch::data {

class PartStream final : public BatchStream {
 public:
  PartStream(std::shared_ptr<BatchStream> whole, int64_t batches) : whole_(std::move(whole)), left_(batches) {}

  bool next(Batch* batch) override {
    if (left_.fetch_sub(1, std::memory_order_relaxed) <= 0) return false;
    if (whole_->next(batch)) return true;
    ended_.store(true, std::memory_order_relaxed);
    return false;
  }
  void close() override { left_.store(0, std::memory_order_relaxed); }
  bool ended() const { return ended_.load(std::memory_order_relaxed); }  // the whole has no more batches

  const Schema& schema() const override { return whole_->schema(); }
  Statistics statistics() const override { return whole_->statistics(); }
  int64_t rows_expected() const override { return whole_->rows_expected(); }
  double progress() const override { return whole_->progress(); }

 private:
  const std::shared_ptr<BatchStream> whole_;
  std::atomic<int64_t> left_;
  std::atomic<bool> ended_{false};
};

// Skips this number of batches; returns how many there were.
inline int64_t skip_batches(BatchStream* stream, int64_t count) {
  Batch batch;
  int64_t done = 0;
  while (done < count && stream->next(&batch)) ++done;
  return done;
}

}  // namespace anabranch::data
