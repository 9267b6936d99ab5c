// Admission of keys to a shard, and removal of rows. All decisions follow from the keys of the updates, in order, and
// from the number of updates: so another process with the same updates has the same rows.
#include <algorithm>

#include "sparse/table_shard.h"

namespace anabranch::sparse {
namespace {

constexpr size_t kCandidates = 8;  // rows of which one is evicted
constexpr int kTired = 64;         // if this number of rows belong to the running step, nearly all do

}  // namespace

uint64_t TableShard::draw(int64_t key) const {
  return scramble(scramble(options_.seed ^ hash_id(key)) + updates() * 0x9e3779b97f4a7c15u);
}

// ---- admission

bool TableShard::admitted(int64_t key, int which) {
  if (options_.admit_probability < 1 && unit(draw(key)) >= options_.admit_probability) return false;
  return options_.admit_count <= 1 ||
         key_counts_[static_cast<size_t>(which)].see(TableIndex::hash_within(key), options_.admit_count);
}

float* TableShard::add(int64_t key) {
  const int which = class_of(key);
  if (!admitted(key, which)) {
    ++stats_.waiting;
    return nullptr;
  }
  if (!make_room(key, which)) {
    ++stats_.refused;
    return nullptr;
  }
  float* made = insert(key, clock_);
  fill(key, made);
  ++stats_.created;
  return made;
}

// A class that was loaded from a file may have more rows than its share: then two leave for one that comes.
bool TableShard::make_room(int64_t key, int which) {
  const int64_t& rows = rows_of_[static_cast<size_t>(which)];
  if (rows < max_of_class_) return true;
  if (!options_.evict) return false;
  const uint64_t from = scramble(draw(key) + 1);
  if (!evict_one(from, which)) return false;
  if (rows >= max_of_class_) evict_one(scramble(from), which);
  return true;
}

// ---- eviction

// The first rows of the class that follow a hash, without those of the running step.
void TableShard::find_candidates(uint64_t from, int which) {
  candidates_.clear();
  passed_.clear();
  size_t old = 0;
  const auto of_step = [&](const Candidate& c) { return index_[c.at.bucket].seen[c.at.slot] == clock_; };
  const bool all = index_.each_after(
      from,
      [&](Position at, uint64_t hash, bool after) {
        if (class_of(static_cast<int64_t>(index_[at.bucket].key[at.slot])) != which) return;
        (after ? candidates_ : passed_).push_back({hash - from, at});
        old += after && !of_step(candidates_.back());
      },
      [&] { return old >= kCandidates || candidates_.size() >= kTired; });
  if (all) candidates_.insert(candidates_.end(), passed_.begin(), passed_.end());
  std::sort(candidates_.begin(), candidates_.end(),
            [](const Candidate& a, const Candidate& b) { return a.distance < b.distance; });
  if (candidates_.size() > kTired) candidates_.resize(kTired);
  std::erase_if(candidates_, of_step);
  if (candidates_.size() > kCandidates) candidates_.resize(kCandidates);
}

// The number by which the policy compares rows: the least leaves, of several the oldest.
float TableShard::worth(const float* record) const {
  if (options_.policy == Policy::kRarest) return record[options_.floats() - 1];
  const ScoreRule& s = options_.score;
  return s.show * (record[0] - record[1]) + s.click * record[1];
}

bool TableShard::evict_one(uint64_t from, int which) {
  find_candidates(from, which);
  const bool compares = options_.policy != Policy::kOldest;
  for (const Candidate& c : candidates_) {
    if (compares) __builtin_prefetch(record(index_[c.at.bucket].row[c.at.slot]));
  }
  const Candidate* worst = nullptr;
  float least = 0;
  uint32_t oldest = 0;
  for (const Candidate& c : candidates_) {
    const TableIndex::Bucket& b = index_[c.at.bucket];
    const float value = compares ? worth(record(b.row[c.at.slot])) : 0;
    const uint32_t age = age_of(b.seen[c.at.slot]);
    if (worst && (value > least || (value == least && age <= oldest))) continue;
    worst = &c;
    least = value;
    oldest = age;
  }
  if (!worst) return false;
  if (options_.tells) told_.push_back(static_cast<int64_t>(index_[worst->at.bucket].key[worst->at.slot]));
  erase(worst->at);
  ++stats_.evicted;
  return true;
}

// ---- after an update

// fn(key, last seen, record) for the rows that are due after one moment up to another, once in `every` moments.
template <class Fn> void TableShard::each_due(int64_t every, uint32_t after, uint32_t upto, Fn&& fn) {
  using Wide = unsigned __int128;
  const auto n = static_cast<uint64_t>(every);
  const auto begin_of = [n](uint64_t slice) { return static_cast<uint64_t>(((Wide{slice} << 64) + n - 1) / n); };
  const auto visit = [&](uint64_t first, uint64_t last) {  // slices
    index_.each_between(begin_of(first), last + 1 == n ? UINT64_MAX : begin_of(last + 1) - 1, fn);
  };
  const uint64_t moments = (upto - after) & ~kMark;
  if (moments == 0) return;
  if (moments >= n) return visit(0, n - 1);
  const uint64_t last = upto % n, first = (upto - moments + 1) % n;
  if (first <= last) return visit(first, last);
  visit(first, n - 1);
  visit(0, last);
}

void TableShard::remove_due(int64_t* removed) {
  if (options_.tells) told_.insert(told_.end(), due_.begin(), due_.end());
  for (const int64_t key : due_) {
    if (Position at; index_.find(key, &at)) erase(at);
  }
  *removed += static_cast<int64_t>(due_.size());
  due_.clear();
}

void TableShard::expire(uint32_t before) {
  each_due(options_.expire_after, before, clock_, [&](int64_t key, uint32_t seen, uint32_t) {
    if (age_of(seen) > options_.expire_after) due_.push_back(key);
  });
  remove_due(&stats_.expired);
}

void TableShard::shrink() {
  const ScoreRule& rule = options_.score;
  each_due(rule.shrink_every, (updates() - 1) & ~kMark, updates(), [&](int64_t key, uint32_t seen, uint32_t row) {
    before_change(key, seen, row);
    float* counts = record(row);
    counts[0] *= rule.decay;
    counts[1] *= rule.decay;
    if (options_.tells) told_.push_back(key);
    if (worth(counts) < rule.delete_below) due_.push_back(key);
  });
  remove_due(&stats_.shrunk);
}

void TableShard::tick(uint32_t before) {
  uint32_t& count = options_.timed ? updates_ : clock_;
  count = (count + 1) & ~kMark;
  if (options_.expire_after > 0) expire(before);
  if (options_.policy == Policy::kLowestScore && options_.score.shrink_every > 0) shrink();
}

void TableShard::take_told(std::vector<int64_t>* keys) {
  keys->insert(keys->end(), told_.begin(), told_.end());
  told_.clear();
}

// ---- rows of a file

float* TableShard::restore(int64_t key, uint32_t seen) {
  seen &= ~kMark;
  Position at;
  if (!index_.find(key, &at)) return stats_.rows < max_rows_ ? insert(key, seen, true) : nullptr;
  TableIndex::Bucket& b = index_[at.bucket];
  before_change(key, b.seen[at.slot], b.row[at.slot]);
  b.seen[at.slot] = seen;
  return record(b.row[at.slot]);
}

float* TableShard::put(int64_t key) {
  const bool fresh = row_of(key) == 0;
  float* const record = restore(key, clock_);
  if (fresh && record) fill(key, record);
  return record;
}

}  // namespace anabranch::sparse
