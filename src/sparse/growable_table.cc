#include "sparse/growable_table.h"
#include "base/counted.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <mutex>

namespace anabranch::sparse {
namespace {

constexpr int64_t kLargeLimit = 256 << 20;  // beyond it the size of a block of records is negligible

// The form in which an opaque variable holds a table: its deleter's type identifies it.
struct Holder {
  std::shared_ptr<GrowableTable> table;
  void operator()(void*) const {}
};

void check(const TableOptions& o) {
  AB_CHECK(o.width > 0 && o.width <= 65536, InvalidArgument, "width must be from 1 to 65536, got {}", o.width);
  AB_CHECK(std::isfinite(o.low) && std::isfinite(o.high) && (o.start == Start::kUniform ? o.low : 0) <= o.high,
           InvalidArgument,
           "the bounds of new numbers must be finite and in order, and their deviation not negative, got {} and {}",
           o.low, o.high);
  AB_CHECK(o.admit_count >= 1 && o.admit_count <= 255, InvalidArgument, "admit_count must be from 1 to 255, got {}",
           o.admit_count);
  AB_CHECK(o.admit_probability > 0 && o.admit_probability <= 1, InvalidArgument,
           "admit_probability must be above 0 and at most 1, got {}", o.admit_probability);
  AB_CHECK(o.expire_after >= 0 && o.expire_after < INT32_MAX, InvalidArgument,
           "expire_after must not be negative, got {}", o.expire_after);
  AB_CHECK(!o.timed || o.by_updates, InvalidArgument, "rows expire by time only if updates create them");
  AB_CHECK(o.servers >= 1, InvalidArgument, "servers must be at least 1, got {}", o.servers);
  const int64_t least = (int64_t{64} << KeyOrder::kBits) * record_stride(o) * 4 * o.servers;
  AB_CHECK(o.max_bytes == 0 || o.max_bytes >= least, InvalidArgument,
           "max_bytes is {}, rows of {} numbers need at least {}{}", o.max_bytes, o.floats(), least,
           o.servers > 1 ? fmt::format(" at {} servers", o.servers) : "");
  if (o.policy != Policy::kLowestScore) return;
  const ScoreRule& s = o.score;
  AB_CHECK(o.width > o.added(), InvalidArgument, "the first 2 numbers of a row count shows and clicks, got width {}",
           o.width);
  AB_CHECK(std::isfinite(s.show) && std::isfinite(s.click) && std::isfinite(s.delete_below), InvalidArgument,
           "the numbers of a score must be finite, got {}, {} and {}", s.show, s.click, s.delete_below);
  AB_CHECK(s.decay > 0 && s.decay <= 1, InvalidArgument, "decay must be above 0 and at most 1, got {}", s.decay);
  AB_CHECK(s.shrink_every >= 0 && s.shrink_every < INT32_MAX, InvalidArgument,
           "shrink_every must not be negative, got {}", s.shrink_every);
}

}  // namespace

GrowableTable::GrowableTable(std::string name, const TableOptions& options)
    : name_(std::move(name)), options_(options) {
  check(options);
  const bool blocks =
      !options_.few && (options_.max_bytes == 0 || options_.max_bytes / options_.servers >= kLargeLimit);
  if (blocks) memory_ = std::make_shared<RecordMemory>();
  for (Part& part : parts_) part.shard = std::make_unique<TableShard>(options_, memory_.get());
}

GrowableTable::~GrowableTable() = default;

std::shared_ptr<GrowableTable> GrowableTable::of(const Value& value) {
  const auto* held = value.get<std::shared_ptr<void>>();
  const auto* holder = held ? std::get_deleter<Holder>(*held) : nullptr;
  return holder ? holder->table : nullptr;
}

void GrowableTable::put(Value* value, std::shared_ptr<GrowableTable> table) {
  void* address = table.get();
  value->as<std::shared_ptr<void>>() = std::shared_ptr<void>(address, Holder{std::move(table)});
  value->touch();
}

void GrowableTable::pull(const int64_t* keys, int64_t n, const Pull& how, float* out, KeyOrder* scratch,
                         Parallel* parallel) {
  scratch->read(keys, n);
  Pull first = how, over = how;
  first.train &= !own_;  // images have no rows for other keys
  over.train = false;
  over.keep_missing = true;
  GrowableTable* const own = has_own_.load(std::memory_order_acquire) ? own_.get() : nullptr;
  parallel_for(parallel, kShards, 1, [&](int64_t begin, int64_t end) {
    const auto pull_part = [&](GrowableTable& table, int64_t s, const Pull& as) {
      Part& part = table.parts_[static_cast<size_t>(s)];
      const std::lock_guard held(part.lock);
      part.shard->pull(scratch->begin(s), scratch->count(s), as, out);
    };
    for (int64_t s = begin; s < end; ++s) {
      if (scratch->count(s) == 0) continue;
      pull_part(*this, s, first);
      if (own) [[unlikely]]
        pull_part(*own, s, over);
    }
  });
  if (how.train && !options_.by_updates && options_.max_bytes) tell_what_was_dropped();
  if (layer_) [[unlikely]] {
    if (under_) under_->pull(keys, n, how, out, scratch, parallel);
    over.train = how.train;
    layer_->pull(keys, n, over, out, scratch, parallel);
  }
}

void GrowableTable::update(const int64_t* keys, int64_t n, const float* grads, const RecordUpdate& how,
                           Scratch* scratch, Parallel* parallel) {
  AB_CHECK(how.rule == options_.rule, InvalidArgument, "table {} keeps the moments of {}, the update needs those of {}",
           name_, rules::info_of(options_.rule).name, rules::info_of(how.rule).name);
  check_not_image();
  AB_CHECK(
      options_.score.known, Unsupported,
      "table {} was loaded from a file, which does not hold the numbers of its score: run the startup program that "
      "declares them before you load the file",
      name_);
  KeyOrder& order = scratch->order;
  order.read(keys, n);
  scratch->groups.resize(static_cast<size_t>(n));
  scratch->next.resize(static_cast<size_t>(n));
  RecordUpdate u = how;
  u.grads = grads;
  parallel_for(parallel, kShards, 1, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      Part& part = parts_[static_cast<size_t>(s)];
      const std::lock_guard held(part.lock);
      part.shard->update(order.begin(s), order.count(s), u, scratch->groups.data() + order.first(s),
                         scratch->next.data());
    }
  });
  if (options_.by_updates && options_.max_bytes) tell_what_was_dropped();
}

TableStats GrowableTable::stats() {
  TableStats sum;
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    const TableStats s = part.shard->stats();
    sum.rows += s.rows;
    sum.bytes += s.bytes;
    sum.hits += s.hits;
    sum.misses += s.misses;
    sum.created += s.created;
    sum.waiting += s.waiting;
    sum.refused += s.refused;
    sum.evicted += s.evicted;
    sum.expired += s.expired;
    sum.shrunk += s.shrunk;
  }
  add_own(&sum);
  return sum;
}

void GrowableTable::each_chunk(const std::function<void(const void*, int64_t)>& fn) {
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    part.shard->each_chunk(fn);
  }
  if (own_) own_->each_chunk(fn);
}

std::vector<int64_t> GrowableTable::keys() {
  std::vector<int64_t> all;
  for (size_t s = 0; s < parts_.size(); ++s) {
    const std::lock_guard held(parts_[s].lock);
    std::unique_lock<SpinLock> own;
    if (own_) own = std::unique_lock(own_->parts_[s].lock);
    each_current(s, [&](int64_t key, const float*) { all.push_back(key); });
  }
  std::sort(all.begin(), all.end());
  return all;
}

// ---- counts of keys without a row

std::vector<int64_t> GrowableTable::key_counts() {
  std::vector<int64_t> out;
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    if (const uint32_t* updates = part.shard->updates_of_timed()) out.push_back(*updates);
    for (const KeyCounts& counts : part.shard->key_counts()) {
      out.resize(out.size() + counts.words());
      counts.save(&*(out.end() - static_cast<int64_t>(counts.words())));
    }
  }
  return out;
}

void GrowableTable::set_key_counts(std::span<const int64_t> counts) {
  size_t words = 0;
  for (Part& part : parts_) {
    words += part.shard->updates_of_timed() ? 1 : 0;
    for (const KeyCounts& c : part.shard->key_counts()) words += c.words();
  }
  AB_CHECK(counts.size() == words, ShapeMismatch, "table {} counts keys in {} words, got {}: were its rules changed?",
           name_, words, counts.size());
  const int64_t* from = counts.data();
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    if (uint32_t* updates = part.shard->updates_of_timed()) *updates = static_cast<uint32_t>(*from++);
    for (KeyCounts& c : part.shard->key_counts()) {
      c.load(from);
      from += c.words();
    }
  }
}

// One line for the first dropped key, and again at each power of ten.
void GrowableTable::tell_what_was_dropped() {
  int64_t dropped = 0;
  for (Part& part : parts_) {
    const std::lock_guard held(part.lock);
    dropped += part.shard->dropped();
  }
  int64_t at = tell_at_.load(std::memory_order_relaxed);
  if (dropped < at || !tell_at_.compare_exchange_strong(at, 10 * at)) return;
  const TableStats s = stats();
  fmt::print(stderr, "anabranch: table {} is at its limit of {} bytes with {}: {} evicted, {} refused\n", name_,
             options_.max_bytes, counted(s.rows, "row"), counted(s.evicted, "row"), counted(s.refused, "key"));
}

}  // namespace anabranch::sparse
