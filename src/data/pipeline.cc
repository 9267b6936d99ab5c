#include "data/pipeline.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <system_error>

#include "base/error.h"
#include "io/atomic_file.h"

namespace anabranch::data {
namespace {

constexpr int kBlocksPerThread = 4;
constexpr auto kIdlePeriod = std::chrono::milliseconds(100);

using Clock = std::chrono::steady_clock;
double since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

int64_t size_of_file(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? static_cast<int64_t>(info.st_size) : 0;
}

}  // namespace

Pipeline::Pipeline(const Settings& settings, PipelineOptions options)
    : settings_(settings),
      options_(std::move(options)),
      parser_(make_parser(settings_)),
      bad_rows_(settings_.bad_rows, settings_.schema),
      in_order_(settings_.files.size()),
      lines_(settings_.files.size()) {
  const int threads = std::max(options_.threads, 1);
  const auto files = static_cast<int>(std::min<size_t>(settings_.files.size(), 1 << 16));
  const int open_files = options_.ordered && !options_.keep ? 1 : std::clamp(files, 1, threads);
  for (int i = 0; i < open_files; ++i) open_files_.push_back(std::make_unique<OpenFile>());
  limit_ = options_.keep ? std::numeric_limits<int64_t>::max() : int64_t{kBlocksPerThread} * threads;
  for (const std::string& file : settings_.files) input_bytes_ += size_of_file(file);
  if (!settings_.cache_folder.empty()) io::remove_stale(settings_.cache_folder);
  working_ = threads;
  threads_.start(
      threads, "reader threads", [this](int i) { work(i); }, [this] { stop(); });
}

Pipeline::~Pipeline() { finish(); }

void Pipeline::stop() {
  stop_ = true;
  const std::lock_guard lock(mutex_);
  room_.notify_all();
  ready_.notify_all();
  lines_known_.notify_all();
}

// ---- the reader threads

void Pipeline::work(int thread) {
  Job job;
  Block scratch;
  while (wait_for_room()) {
    const auto begin = Clock::now();
    bool claimed = false;
    try {
      claimed = claim(thread, &job);
      if (!claimed) break;
      push(job.place, {parse(&job, &scratch), nullptr});
    } catch (...) {
      push(job.place, {nullptr, std::current_exception()});
      break;
    }
    const std::lock_guard lock(mutex_);
    statistics_.parse_s += since(begin);
  }
  const std::lock_guard lock(mutex_);
  --working_;
  ready_.notify_all();
  lines_known_.notify_all();
}

bool Pipeline::wait_for_room() {
  std::unique_lock lock(mutex_);
  const auto begin = Clock::now();
  const auto may_go = [this] { return stop_ || failed_ || in_flight_ < limit_; };
  if (!may_go()) {
    room_.wait(lock, may_go);
    statistics_.blocked_s += since(begin);
  }
  if (stop_ || (failed_ && !options_.ordered)) return false;
  ++in_flight_;
  return true;
}

// From the thread's own file while it has data, then from the others'.
bool Pipeline::claim(int thread, Job* job) {
  const size_t count = open_files_.size();
  for (size_t i = 0; i < count; ++i) {
    if (claim_in(open_files_[(static_cast<size_t>(thread) + i) % count].get(), job)) return true;
  }
  const std::lock_guard lock(mutex_);
  --in_flight_;
  room_.notify_one();
  return false;
}

// Whether there is a file, and it may be read further. After an error, later chunks are not read; earlier ones are,
// because one of them may have the first error.
bool Pipeline::may_claim(OpenFile* open) {
  if (open->done || stop_) return false;
  if (!open->input) {
    open->file = next_file_++;
    open->chunks = open->consumed = 0;
    open->done = open->file >= static_cast<int64_t>(settings_.files.size());
    if (open->done) return false;
  }
  const std::lock_guard lock(mutex_);
  return !options_.ordered || in_order_.needed({open->file, open->chunks});
}

bool Pipeline::claim_in(OpenFile* open, Job* job) {
  const std::lock_guard lock(open->mutex);
  try {
    while (may_claim(open)) {
      job->place = {open->file, open->chunks};
      if (claim_chunk(open, job)) return true;
      open->input.reset();
      const std::lock_guard counters(mutex_);
      in_order_.end_of_file(open->file, open->chunks);
      ready_.notify_one();
      if (!stop_) ++statistics_.files;
    }
  } catch (...) {
    open->done = true;  // the rest of the file must not be mistaken for its end
    open->input.reset();
    throw;
  }
  return false;
}

bool Pipeline::claim_chunk(OpenFile* open, Job* job) {
  const std::string& path = settings_.files[static_cast<size_t>(open->file)];
  if (!open->input) open->input = open_input(settings_, path, parser_, &stop_);
  const bool some = open->input->claim(&job->chunk);
  const int64_t consumed = open->input->consumed();
  consumed_bytes_ += consumed - open->consumed;
  open->consumed = consumed;
  if (!some) return false;
  ++open->chunks;
  job->input = open->input;
  return true;
}

std::unique_ptr<Block> Pipeline::parse(Job* job, Block* scratch) {
  std::unique_ptr<Block> block;
  if (options_.keep) {
    parse_into(scratch, job);
    block = std::make_unique<Block>(scratch->packed());
    block->bad = std::move(scratch->bad);
  } else {
    block = spare();
    parse_into(block.get(), job);
  }
  note_lines(*block);
  return block;
}

void Pipeline::parse_into(Block* block, Job* job) {
  block->clear();
  block->file = job->place.file;
  block->chunk = job->chunk.index;
  job->input->finish(&job->chunk, block);
  job->input.reset();
}

void Pipeline::note_lines(const Block& block) {
  const std::lock_guard lock(mutex_);
  auto& [of_chunk, before] = lines_[static_cast<size_t>(block.file)];
  const auto chunk = static_cast<size_t>(block.chunk);
  if (of_chunk.size() <= chunk) of_chunk.resize(chunk + 1, -1);
  of_chunk[chunk] = block.lines;
  while (before.size() <= of_chunk.size() && of_chunk[before.size() - 1] >= 0) {
    before.push_back(before.back() + of_chunk[before.size() - 1]);
  }
  statistics_.lines += block.lines - block.skipped;
  statistics_.rows += block.rows();
  statistics_.missing += block.missing;
  statistics_.bytes += block.bytes;
  lines_known_.notify_all();
}

void Pipeline::push(ChunkPosition place, Ready ready) {
  const std::lock_guard lock(mutex_);
  if (ready.error) {
    failed_ = true;
    room_.notify_all();
  }
  if (options_.ordered) {
    in_order_.put(place, std::move(ready));
  } else if (ready.error) {
    queue_.push_front(std::move(ready));
  } else {
    queue_.push_back(std::move(ready));
  }
  ready_.notify_one();
}

std::unique_ptr<Block> Pipeline::spare() {
  {
    const std::lock_guard lock(mutex_);
    if (!spares_.empty()) {
      auto block = std::move(spares_.back());
      spares_.pop_back();
      return block;
    }
  }
  return std::make_unique<Block>();
}

// ---- the consumer

bool Pipeline::take(Ready* ready) {
  std::unique_lock lock(mutex_);
  if (error_) std::rethrow_exception(error_);
  const auto there = [this] { return options_.ordered ? in_order_.ready() : !queue_.empty(); };
  const auto begin = Clock::now();
  bool waited = false;
  while (!there() && !stop_) {
    if (working_ == 0) return false;
    waited = true;
    ready_.wait_for(lock, kIdlePeriod, [&] { return there() || stop_ || working_ == 0; });
    if (!there() && options_.idle) {
      lock.unlock();
      options_.idle();
      lock.lock();
    }
  }
  if (waited) statistics_.waited_s += since(begin);
  if (stop_) return false;
  if (options_.ordered) {
    *ready = in_order_.take();
  } else {
    *ready = std::move(queue_.front());
    queue_.pop_front();
  }
  --in_flight_;
  room_.notify_one();
  return true;
}

std::unique_ptr<Block> Pipeline::next() {
  Ready ready;
  if (!take(&ready)) {
    bad_rows_.close();
    return nullptr;
  }
  int64_t rows = 0;
  try {
    if (ready.error) std::rethrow_exception(ready.error);
    if (ready.block->bad.empty() && ready.block->uneven.empty()) return std::move(ready.block);
    ready.block->first_line = first_line_of(*ready.block);
    note_uneven(*ready.block);
    bad_rows_.admit(*ready.block, settings_.files[static_cast<size_t>(ready.block->file)], &rows);
  } catch (...) {
    bad_rows_.close();
    fail(std::current_exception());
    if (rows == 0) throw;
    ready.block->keep_first(rows);  // then comes the error
  }
  return std::move(ready.block);
}

// No thread and no command is left when the caller gets it.
void Pipeline::fail(std::exception_ptr error) {
  finish();
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
}

void Pipeline::finish() {
  stop();
  const std::lock_guard lock(finish_mutex_);
  threads_.join();
  for (auto& open : open_files_) open->input.reset();
}

// Chunks before this one have been claimed: they get finished, unless their thread fails.
int64_t Pipeline::first_line_of(const Block& block) {
  std::unique_lock lock(mutex_);
  const auto& before = lines_[static_cast<size_t>(block.file)].before;
  const auto chunk = static_cast<size_t>(block.chunk);
  lines_known_.wait(lock, [&] { return stop_ || working_ == 0 || chunk < before.size(); });
  return before[std::min(chunk, before.size() - 1)];
}

void Pipeline::note_uneven(const Block& block) {
  if (block.uneven.empty()) return;
  const BadRow& row = block.uneven.front();
  const std::string& file = settings_.files[static_cast<size_t>(block.file)];
  const std::lock_guard lock(mutex_);
  statistics_.uneven_rows += block.uneven_rows;
  if (!statistics_.uneven.empty()) return;
  statistics_.uneven = bad_row_message(row, settings_.schema, file, block.first_line + row.line);
}

void Pipeline::recycle(std::unique_ptr<Block> block) {
  const std::lock_guard lock(mutex_);
  if (spares_.size() < static_cast<size_t>(kBlocksPerThread) * static_cast<size_t>(std::max(options_.threads, 1)))
    spares_.push_back(std::move(block));
}

Statistics Pipeline::statistics() const {
  const std::lock_guard lock(mutex_);
  Statistics now = statistics_;
  now.bad_rows = bad_rows_.count();
  return now;
}

double Pipeline::progress() const {
  const int64_t done = consumed_bytes_.load(std::memory_order_relaxed);
  return input_bytes_ > 0 ? std::min(1.0, static_cast<double>(done) / static_cast<double>(input_bytes_)) : 0;
}

}  // namespace anabranch::data
