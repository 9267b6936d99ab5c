#include "data/dataset.h"

#include <malloc.h>

#include <algorithm>
#include <mutex>

#include "base/error.h"
#include "data/pipeline.h"
#include "data/shuffle.h"
#include "data/streams.h"

namespace anabranch::data {
namespace {

constexpr int kMaxThreads = 1024;  // reader threads: more of them only compete for memory

void check_threads(int threads) {
  AB_CHECK(threads >= 1 && threads <= kMaxThreads, InvalidArgument, "thread_num must be from 1 to {}, got {}",
           kMaxThreads, threads);
}

void check(const Settings& settings) {
  settings.schema.check();
  AB_CHECK(settings.batch_size >= 1, InvalidArgument, "batch_size must be at least 1, got {}", settings.batch_size);
  check_threads(settings.threads);
  AB_CHECK(settings.bad_rows.kind != BadRowPolicy::Kind::kQuarantine || !settings.bad_rows.quarantine.empty(),
           InvalidArgument, "the policy for bad rows needs the name of a file");
  const auto whole = [](const std::string& text) { return text.find('\0') == std::string::npos; };
  AB_CHECK(whole(settings.pipe_command), InvalidArgument, "the pipe command must be a text without zero bytes");
  AB_CHECK(std::all_of(settings.files.begin(), settings.files.end(), whole), InvalidArgument,
           "the name of a file must be a text without zero bytes");
}

// In the order of the files and of their text, in which the blocks arrived.
void put_in_order(Records* records) {
  for (size_t block = 0; block < records->blocks.size(); ++block) {
    const auto rows = static_cast<uint32_t>(records->blocks[block]->rows());
    for (uint32_t row = 0; row < rows; ++row) records->order.push_back({static_cast<uint32_t>(block), row});
  }
}

Records collect(Pipeline* pipeline) {
  Records records;
  while (std::unique_ptr<Block> block = pipeline->next()) {
    if (block->rows()) records.blocks.push_back(std::move(block));
  }
  records.statistics = pipeline->statistics();
  put_in_order(&records);
  return records;
}

}  // namespace

int64_t Records::memory_bytes() const {
  auto bytes = static_cast<int64_t>(order.capacity() * sizeof(At));
  for (const auto& block : blocks) bytes += block->memory_bytes();
  return bytes;
}

struct Dataset::Impl {
  std::mutex mutex;  // guards everything below, except the pipeline in wait_preload
  Settings settings;
  std::shared_ptr<Records> records;   // null: nothing is loaded
  std::shared_ptr<Records> original;  // before slots_shuffle
  uint64_t shuffles = 0, slot_shuffles = 0;
  uint64_t shuffles_before = 0;       // local_shuffle() calls before the load
  std::unique_ptr<Pipeline> loading;  // keeps all blocks, so its threads need no consumer meanwhile
  bool collecting = false;

  Records& loaded(const char* what) {
    AB_CHECK(records != nullptr, InvalidArgument, "{}: nothing is in memory: call load_into_memory first", what);
    return *records;
  }
  void replace(Records made) {
    records = std::make_shared<Records>(std::move(made));
    original.reset();
    shuffles_before = shuffles;
  }
};

Dataset::Dataset(Settings settings) : impl_(std::make_unique<Impl>()) { impl_->settings = std::move(settings); }
Dataset::~Dataset() = default;

void Dataset::set(Settings settings) {
  const std::lock_guard lock(impl_->mutex);
  impl_->settings = std::move(settings);
}

std::shared_ptr<BatchStream> Dataset::open(const StreamOptions& options) {
  const std::lock_guard lock(impl_->mutex);
  check(impl_->settings);
  if (!impl_->settings.in_memory) return file_stream(impl_->settings, options);
  impl_->loaded("training from memory");
  return memory_stream(impl_->settings, impl_->records);
}

void Dataset::load(const std::function<void()>& idle) {
  preload(0, idle);
  wait_preload();
}

void Dataset::preload(int threads, const std::function<void()>& idle) {
  const std::lock_guard lock(impl_->mutex);
  AB_CHECK(!impl_->loading && !impl_->collecting, InvalidArgument,
           "preload_into_memory: a preload is running already; call wait_preload_done first");
  check(impl_->settings);
  const int count = threads > 0 ? threads : impl_->settings.threads;
  check_threads(count);
  impl_->loading = std::make_unique<Pipeline>(impl_->settings, PipelineOptions{true, true, count, idle});
}

void Dataset::wait_preload() {
  std::unique_lock lock(impl_->mutex);
  AB_CHECK(impl_->loading != nullptr, InvalidArgument, "wait_preload_done: nothing is being loaded");
  const std::unique_ptr<Pipeline> pipeline = std::move(impl_->loading);
  impl_->collecting = true;
  lock.unlock();
  Records made;
  std::exception_ptr error;
  try {
    made = collect(pipeline.get());
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  impl_->collecting = false;
  if (error) std::rethrow_exception(error);
  impl_->replace(std::move(made));
}

// The allocator would keep most of the pages, in fragments that it cannot return by itself.
void Dataset::release() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->records.reset();
    impl_->original.reset();
  }
  malloc_trim(0);
}

// Open streams, and the state that slots_shuffle returns to, keep their order.
void Dataset::local_shuffle() {
  const std::lock_guard lock(impl_->mutex);
  impl_->loaded("local_shuffle");
  if (impl_->records.use_count() > 1) impl_->records = std::make_shared<Records>(*impl_->records);
  shuffle_order(&impl_->records->order, impl_->settings.seed, impl_->shuffles++);
}

Dataset::Shuffles Dataset::shuffles() const {
  const std::lock_guard lock(impl_->mutex);
  return {impl_->shuffles_before, impl_->shuffles - impl_->shuffles_before};
}

void Dataset::shuffle_as(Shuffles shuffles) {
  const std::lock_guard lock(impl_->mutex);
  impl_->loaded("shuffle_as");
  auto made = std::make_shared<Records>(*impl_->records);
  made->order.clear();
  put_in_order(made.get());
  for (uint64_t i = 0; i < shuffles.count; ++i) shuffle_order(&made->order, impl_->settings.seed, shuffles.first + i);
  impl_->records = std::move(made);
  impl_->shuffles_before = shuffles.first;
  impl_->shuffles = shuffles.first + shuffles.count;
}

std::vector<std::string> Dataset::deal(int trainers, int first) const {
  AB_CHECK(trainers > 0 && first >= 0 && first < trainers, InvalidArgument, "records are dealt to {} trainers from {}",
           trainers, first);
  const std::lock_guard lock(impl_->mutex);
  return deal_records(impl_->loaded("global_shuffle"), impl_->settings.schema, trainers, first);
}

void Dataset::take(const std::vector<std::string>& parts) {
  const std::lock_guard lock(impl_->mutex);
  const Statistics statistics = impl_->loaded("global_shuffle").statistics;
  impl_->replace(records_of(parts, impl_->settings.schema));
  impl_->records->statistics = statistics;
}

int64_t Dataset::records() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->records ? static_cast<int64_t>(impl_->records->order.size()) : 0;
}

int64_t Dataset::memory_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->records ? impl_->records->memory_bytes() : 0;
}

Statistics Dataset::load_statistics() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->records ? impl_->records->statistics : Statistics();
}

void Dataset::slots_shuffle(const std::vector<std::string>& slots) {
  const std::lock_guard lock(impl_->mutex);
  impl_->loaded("slots_shuffle");
  if (!impl_->original) impl_->original = impl_->records;
  auto made = std::make_shared<Records>(
      shuffle_slots(*impl_->original, impl_->settings.schema, slots, impl_->settings.seed, impl_->slot_shuffles++));
  made->statistics = impl_->original->statistics;
  impl_->records = std::move(made);
}

void Dataset::merge_by_ins_id(int64_t merge_size) {
  const std::lock_guard lock(impl_->mutex);
  const Statistics statistics = impl_->loaded("merge_by_ins_id").statistics;
  impl_->replace(data::merge_by_ins_id(*impl_->records, impl_->settings.schema, merge_size));
  impl_->records->statistics = statistics;
}

}  // namespace anabranch::data
