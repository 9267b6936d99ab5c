// Batches from files: one consumer at a time takes its samples from the blocks that are ready; gathering runs in all
// consumers concurrently.
#include <algorithm>
#include <deque>

#include "data/gather.h"
#include "data/pipeline.h"
#include "data/streams.h"

namespace anabranch::data {
namespace {

class FileStream final : public BatchStream {
 public:
  FileStream(const Settings& settings, const StreamOptions& options)
      : pipeline_(settings,
                  {options.ordered, false, options.threads > 0 ? options.threads : settings.threads, options.idle}),
        gather_(schema()) {}

  bool next(Batch* batch) override {
    BatchScratch& scratch = RowGather::scratch(batch);
    const std::unique_ptr<BatchScratch, void (*)(BatchScratch*)> release(&scratch, [](auto* s) { s->blocks.clear(); });
    error_.check();
    if (!take(&scratch, &batch->index)) {
      error_.check();  // of another consumer, which ended this one's wait
      return false;
    }
    try {
      gather_.gather(batch);
    } catch (...) {
      error_.keep(std::current_exception());
      close();
      throw;
    }
    return true;
  }

  void close() override {
    closed_ = true;
    pipeline_.finish();
  }
  const Schema& schema() const override { return pipeline_.settings().schema; }
  Statistics statistics() const override { return pipeline_.statistics(); }
  int64_t rows_expected() const override { return -1; }
  double progress() const override { return pipeline_.progress(); }

 private:
  bool take(BatchScratch* taken, int64_t* index) {
    const std::lock_guard lock(mutex_);
    const Settings& settings = pipeline_.settings();
    const int64_t needed = settings.batch_size;
    // Rows are taken once all of them are available: Ctrl-C may end the wait for the last one.
    while (rows_ < needed && next_block()) {
    }
    const int64_t count = std::min(rows_, needed);
    if (count == 0 || (count < needed && (settings.drop_last || closed_))) return false;
    for (int64_t have = 0; have < count;) {
      const std::shared_ptr<const Block>& block = blocks_.front();
      taken->blocks.push_back(block);
      const int64_t end = std::min(block->rows(), row_ + count - have);
      have += end - row_;
      for (; row_ < end; ++row_) taken->rows.push_back({block.get(), row_});
      if (row_ < block->rows()) break;
      blocks_.pop_front();
      row_ = 0;
    }
    rows_ -= count;
    *index = index_++;
    return true;
  }

  bool next_block() {
    std::unique_ptr<Block> block = pipeline_.next();
    if (!block) return false;
    if (block->rows() == 0) {
      pipeline_.recycle(std::move(block));
      return true;
    }
    rows_ += block->rows();
    blocks_.emplace_back(block.release(),
                         [this](const Block* b) { pipeline_.recycle(std::unique_ptr<Block>(const_cast<Block*>(b))); });
    return true;
  }

  std::mutex mutex_;
  Pipeline pipeline_;
  RowGather gather_;
  StreamError error_;
  std::deque<std::shared_ptr<const Block>> blocks_;  // declared after the pipeline, to which they return
  // the first remaining row of them, and the number of remaining rows
  int64_t row_ = 0, rows_ = 0;
  int64_t index_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace

std::shared_ptr<BatchStream> file_stream(const Settings& settings, const StreamOptions& options) {
  return std::make_shared<FileStream>(settings, options);
}

}  // namespace anabranch::data
