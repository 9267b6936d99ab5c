// Batches from files: one consumer at a time takes its samples from the blocks that are ready; gathering them happens
// in all consumers at once.
#include <algorithm>

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
    if (!take(&scratch, &batch->index)) return false;
    gather_.gather(batch);
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
    const int64_t wanted = settings.batch_size;
    int64_t have = 0;
    while (have < wanted && (current_ || next_block())) {
      taken->blocks.push_back(current_);
      const int64_t end = std::min(current_->rows(), row_ + wanted - have);
      have += end - row_;
      for (; row_ < end; ++row_) taken->rows.push_back({current_.get(), row_});
      if (row_ == current_->rows()) current_.reset();
    }
    const bool enough = have == wanted || (have > 0 && !settings.drop_last && !closed_);
    *index = index_;
    index_ += enough;
    return enough;
  }

  bool next_block() {
    row_ = 0;
    std::unique_ptr<Block> block = pipeline_.next();
    if (!block) return false;
    current_ = std::shared_ptr<const Block>(
        block.release(), [this](const Block* b) { pipeline_.recycle(std::unique_ptr<Block>(const_cast<Block*>(b))); });
    return true;
  }

  std::mutex mutex_;
  Pipeline pipeline_;
  RowGather gather_;
  std::shared_ptr<const Block> current_;  // declared after the pipeline, to which it goes back
  int64_t row_ = 0, index_ = 0;
  std::atomic<bool> closed_{false};
};

}  // namespace

std::shared_ptr<BatchStream> file_stream(const Settings& settings, const StreamOptions& options) {
  return std::make_shared<FileStream>(settings, options);
}

}  // namespace anabranch::data
