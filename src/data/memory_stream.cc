// Batches from memory. The order is given: each consumer takes a number and gathers, without waiting.
#include <algorithm>
#include <atomic>

#include "data/gather.h"
#include "data/streams.h"

namespace anabranch::data {
namespace {

class MemoryStream final : public BatchStream {
 public:
  MemoryStream(const Settings& settings, std::shared_ptr<const Records> records)
      : settings_(settings), records_(std::move(records)), gather_(settings_.schema) {
    const auto rows = static_cast<int64_t>(records_->order.size());
    batches_ = rows / settings_.batch_size;
    if (!settings_.drop_last && rows % settings_.batch_size) ++batches_;
  }

  bool next(Batch* batch) override {
    error_.check();
    const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
    if (index >= batches_) return false;
    BatchScratch& scratch = RowGather::scratch(batch);
    const int64_t begin = index * settings_.batch_size;
    const int64_t end = std::min(begin + settings_.batch_size, static_cast<int64_t>(records_->order.size()));
    for (int64_t i = begin; i < end; ++i) {
      const Records::At at = records_->order[static_cast<size_t>(i)];
      scratch.rows.push_back({records_->blocks[at.block].get(), at.row});
    }
    batch->index = index;
    try {
      gather_.gather(batch);
    } catch (...) {
      error_.keep(std::current_exception());
      close();
      throw;
    }
    given_.fetch_add(end - begin, std::memory_order_relaxed);
    return true;
  }

  void close() override { next_ = batches_; }
  const Schema& schema() const override { return settings_.schema; }
  int64_t rows_expected() const override { return static_cast<int64_t>(records_->order.size()); }

  // Statistics of the load, except for what this pass has returned.
  Statistics statistics() const override {
    Statistics now = records_->statistics;
    now.rows = given_.load(std::memory_order_relaxed);
    return now;
  }

  double progress() const override {
    const int64_t rows = rows_expected();
    return rows ? static_cast<double>(given_.load(std::memory_order_relaxed)) / static_cast<double>(rows) : 0;
  }

 private:
  const Settings settings_;
  std::shared_ptr<const Records> records_;
  RowGather gather_;
  StreamError error_;
  int64_t batches_ = 0;
  std::atomic<int64_t> next_{0}, given_{0};
};

}  // namespace

std::shared_ptr<BatchStream> memory_stream(const Settings& settings, std::shared_ptr<const Records> records) {
  return std::make_shared<MemoryStream>(settings, std::move(records));
}

}  // namespace anabranch::data
