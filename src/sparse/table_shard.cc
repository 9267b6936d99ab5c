// Work on many keys: prefetch the line of the index, then that of the record, then read it.
#include "sparse/table_shard.h"
#include "sparse/shard_changes.h"

#include <algorithm>

#include "hwy/highway.h"

namespace anabranch::sparse {
namespace {

constexpr int64_t kLineFloats = 16;
constexpr int64_t kAhead = 32;  // keys between prefetch and use

namespace hn = hwy::HWY_NAMESPACE;

// Faster than a call for the few cache lines of a row.
void copy_floats(const float* from, int64_t n, float* to) {
  const hn::FixedTag<float, 4> d;
  int64_t j = 0;
  for (; j + 4 <= n; j += 4) hn::StoreU(hn::LoadU(d, from + j), d, to + j);
  for (; j < n; ++j) to[j] = from[j];
}

void prefetch_floats(const float* p, int64_t n) {
  for (int64_t j = 0; j < n; j += kLineFloats) __builtin_prefetch(p + j);
}

}  // namespace

void TableShard::before_change(int64_t key, uint32_t seen, uint32_t row) {
  if (cut_) keep_for_cut(key, seen, row);
  if (changes_) changes_->touch(key, row);
}

float* TableShard::look_up(int64_t key, bool train) {
  Position at;
  if (index_.find(key, &at)) [[likely]] {
    ++stats_.hits;
    TableIndex::Bucket& bucket = index_[at.bucket];
    if (train && !options_.by_updates && bucket.seen[at.slot] != clock_) {
      if (cut_ || changes_) [[unlikely]]
        before_change(key, bucket.seen[at.slot], bucket.row[at.slot]);
      bucket.seen[at.slot] = clock_;
    }
    return record(bucket.row[at.slot]);
  }
  ++stats_.misses;
  return train && !options_.by_updates ? add(key) : nullptr;
}

// Prefetches are issued one by one: more than a few at once would be dropped.
void TableShard::pull(const KeyAt* keys, int64_t count, const Pull& how, float* out) {
  float* rows[kAhead];
  const int64_t width = options_.width;
  const bool starts = how.train && options_.by_updates;
  for (int64_t i = 0; i < count + 2 * kAhead; ++i) {
    if (i < count) index_.prefetch(keys[i].key);
    if (const int64_t done = i - 2 * kAhead; done >= 0) {
      const float* row = rows[done % kAhead];
      float* to = out + keys[done].place * width;
      if (row) [[likely]] {
        copy_floats(row, width, to);
      } else if (starts && !how.keep_missing && !(how.padding && keys[done].key == *how.padding)) {
        start(keys[done].key, to);
      } else if (!how.keep_missing) {
        std::fill(to, to + width, 0.0f);
      }
    }
    if (const int64_t known = i - kAhead; known >= 0 && known < count) {
      const int64_t key = keys[known].key;
      float* row = how.padding && key == *how.padding ? nullptr : look_up(key, how.train);
      if (row) prefetch_floats(row, width);
      rows[known % kAhead] = row;
    }
  }
}

// Gradients of one row find each other in the index: while they are collected, the row's age is replaced by the number
// of its group. Keys without a row go to absent_.
int64_t TableShard::collect(const KeyAt* keys, int64_t count, RecordGroup* groups, int32_t* next) {
  int64_t found = 0;
  absent_.clear();
  for (int64_t i = 0; i < std::min(count, kAhead); ++i) index_.prefetch(keys[i].key);
  for (int64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) index_.prefetch(keys[i + kAhead].key);
    const int32_t place = keys[i].place;
    next[place] = -1;
    Position at;
    if (!index_.find(keys[i].key, &at)) {
      absent_.push_back(keys[i].key);
      continue;
    }
    uint32_t* seen = &index_[at.bucket].seen[at.slot];
    if (*seen & kMark) {
      RecordGroup& g = groups[*seen & ~kMark];
      next[g.last] = place;
      g.last = place;
      continue;
    }
    if (cut_ || changes_) [[unlikely]]
      before_change(keys[i].key, *seen, index_[at.bucket].row[at.slot]);
    groups[found] = {record(index_[at.bucket].row[at.slot]), seen, *seen, place, place};
    *seen = kMark | static_cast<uint32_t>(found++);
  }
  return found;
}

// Adds rows for absent_, after the rows of the update have been marked as seen, so that they are not evicted. True if
// rows have moved.
bool TableShard::make_rows(const RecordGroup* groups, int64_t found) {
  for (int64_t i = 0; i < found; ++i) *groups[i].seen_at = clock_;
  const int64_t before = stats_.created;
  for (const int64_t key : absent_) {
    if (Position at; !index_.find(key, &at)) add(key);
  }
  return stats_.created != before;
}

void TableShard::update(const KeyAt* keys, int64_t count, RecordUpdate how, RecordGroup* groups, int32_t* next) {
  const bool makes = how.makes_rows || options_.by_updates;
  const uint32_t before = clock_;
  if (options_.timed) clock_ = std::max(clock_, how.time & ~kMark);  // events that come late are of now
  how.count = collect(keys, count, groups, next);
  if (makes && !absent_.empty() && make_rows(groups, how.count)) how.count = collect(keys, count, groups, next);
  how.groups = groups;
  how.next = next;
  how.width = options_.width;
  how.added = options_.added();
  update_records(how);
  // A journal holds updates without the lookups before them.
  for (int64_t i = 0; i < how.count; ++i) *groups[i].seen_at = makes ? clock_ : groups[i].seen;
  if (options_.counts()) count_seen(how);
  tick(before);
}

// The last number of a record counts how often it was seen.
void TableShard::count_seen(const RecordUpdate& how) const {
  for (int64_t i = 0; i < how.count; ++i) {
    const RecordGroup& g = how.groups[i];
    float times = 0;
    for (int32_t p = g.first; p >= 0; p = how.next[p]) ++times;
    g.record[options_.floats() - 1] += times;
  }
}

}  // namespace anabranch::sparse
