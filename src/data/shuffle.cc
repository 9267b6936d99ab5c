#include "data/shuffle.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/error.h"

namespace anabranch::data {
namespace {

constexpr int64_t kRecordsPerBlock = 1024;

// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): one stream per (seed, round, slot).
class Random {
 public:
  Random(uint64_t seed, uint64_t round, uint64_t stream) : state_(seed) {
    for (const uint64_t part : {round, stream}) state_ = next() ^ part;
  }
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  // In [0, n): the high part of a product. Its bias is below n / 2^64.
  uint64_t below(uint64_t n) { return static_cast<uint64_t>((static_cast<unsigned __int128>(next()) * n) >> 64); }

 private:
  uint64_t state_;
};

template <class T> void permute(std::vector<T>* items, Random random) {
  for (size_t i = items->size(); i > 1; --i) std::swap((*items)[i - 1], (*items)[random.below(i)]);
}

struct Segment {
  const uint32_t* begin;
  size_t words;
};

// The slots of a record, and then its lists of uneven slots, which are dense.
std::vector<Segment> chunks_of(const Segment& record, const RecordShape& shape) {
  std::vector<Segment> chunks;
  const uint32_t* at = record.begin;
  for (const auto& part : shape.parts()) {
    const size_t words = part.fixed ? part.words_of(part.fixed) : 1 + part.words_of(*at);
    chunks.push_back({at, words});
    at += words;
  }
  chunks.push_back({at, static_cast<size_t>(record.begin + record.words - at)});
  return chunks;
}

// Adds records to blocks of similar size.
class RecordsBuilder {
 public:
  explicit RecordsBuilder(const Schema& schema) : schema_(schema) {}

  void add(const std::vector<uint32_t>& words, const Block& from, int64_t row) {
    if (block_.rows() == kRecordsPerBlock) close_block();
    made_.order.push_back({static_cast<uint32_t>(made_.blocks.size()), static_cast<uint32_t>(block_.rows())});
    block_.append(words.data(), words.size());
    if (schema_.ins_id) block_.ins_ids.push_back(from.ins_ids[static_cast<size_t>(row)]);
    if (schema_.content) block_.contents.push_back(from.contents[static_cast<size_t>(row)]);
  }
  Records take() {
    if (block_.rows()) close_block();
    return std::move(made_);
  }

 private:
  void close_block() {
    made_.blocks.push_back(std::make_shared<Block>(block_.packed()));
    block_.clear();
  }

  const Schema& schema_;
  Records made_;
  Block block_;
};

Segment record(const Records& records, Records::At at) {
  const Block& block = *records.blocks[at.block];
  return {block.row(at.row), static_cast<size_t>(block.row_end(at.row) - block.row(at.row))};
}

// For each used slot: null, or the record (position in the order) that its values come from.
std::vector<std::vector<uint32_t>> permutations(const Schema& schema, const std::vector<std::string>& names,
                                                size_t records, uint64_t seed, uint64_t round) {
  const std::vector<const Slot*> used = schema.used();
  std::vector<std::vector<uint32_t>> from(used.size());
  for (const std::string& name : names) {
    const auto found = std::find_if(used.begin(), used.end(), [&](const Slot* s) { return s->name == name; });
    AB_CHECK(found != used.end(), NotFound, "slots_shuffle: there is no slot {}", name);
    AB_CHECK(!(*found)->dense, InvalidArgument, "slots_shuffle: slot {} is dense; sparse slots can be shuffled", name);
    const auto slot = static_cast<size_t>(found - used.begin());
    from[slot].resize(records);
    std::iota(from[slot].begin(), from[slot].end(), 0u);
    permute(&from[slot], Random(seed, round, slot + 1));
  }
  return from;
}

// A list of one slot, from several records.
void join(const std::vector<Segment>& parts, bool is_float, std::vector<uint32_t>* out) {
  const size_t count_at = out->size();
  out->push_back(0);
  for (const Segment& part : parts) out->insert(out->end(), part.begin + 1, part.begin + part.words);
  const size_t words = out->size() - count_at - 1;
  (*out)[count_at] = static_cast<uint32_t>(is_float ? words : words / 2);
}

}  // namespace

void shuffle_order(std::vector<Records::At>* order, uint64_t seed, uint64_t round) {
  permute(order, Random(seed, round, 0));
}

Records shuffle_slots(const Records& from, const Schema& schema, const std::vector<std::string>& slots, uint64_t seed,
                      uint64_t round) {
  const RecordShape shape(schema);
  const auto sources = permutations(schema, slots, from.order.size(), seed, round);
  std::vector<std::vector<Segment>> lists(sources.size());  // of the slots that move, by record
  for (size_t slot = 0; slot < sources.size(); ++slot) {
    if (sources[slot].empty()) continue;
    for (const Records::At at : from.order) lists[slot].push_back(chunks_of(record(from, at), shape)[slot]);
  }
  RecordsBuilder builder(schema);
  std::vector<uint32_t> words;
  for (size_t i = 0; i < from.order.size(); ++i) {
    const std::vector<Segment> own = chunks_of(record(from, from.order[i]), shape);
    words.clear();
    for (size_t slot = 0; slot < own.size(); ++slot) {
      const bool stays = slot == sources.size() || sources[slot].empty();
      const Segment& chunk = stays ? own[slot] : lists[slot][sources[slot][i]];
      words.insert(words.end(), chunk.begin, chunk.begin + chunk.words);
    }
    builder.add(words, *from.blocks[from.order[i].block], from.order[i].row);
  }
  return builder.take();
}

Records merge_by_ins_id(const Records& from, const Schema& schema, int64_t merge_size) {
  AB_CHECK(schema.ins_id, InvalidArgument, "merging by instance id needs set_parse_ins_id(True) before loading");
  std::unordered_map<std::string, size_t> group_of;
  std::vector<std::vector<Records::At>> groups;
  for (const Records::At at : from.order) {
    const auto [place, fresh] = group_of.try_emplace(from.blocks[at.block]->ins_ids[at.row], groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(at);
  }
  const RecordShape shape(schema);
  RecordsBuilder builder(schema);
  std::vector<uint32_t> words;
  for (const auto& group : groups) {
    if (merge_size > 0 && static_cast<int64_t>(group.size()) != merge_size) continue;
    std::vector<std::vector<Segment>> members;
    for (const Records::At at : group) members.push_back(chunks_of(record(from, at), shape));
    words.clear();
    for (size_t slot = 0; slot < shape.parts().size(); ++slot) {
      std::vector<Segment> parts;
      const bool dense = schema.used()[slot]->dense;
      for (const auto& member : members) parts.push_back(member[slot]);
      if (dense) {
        words.insert(words.end(), parts[0].begin, parts[0].begin + parts[0].words);
      } else {
        join(parts, shape.parts()[slot].is_float, &words);
      }
    }
    const Segment& uneven = members[0].back();
    words.insert(words.end(), uneven.begin, uneven.begin + uneven.words);
    builder.add(words, *from.blocks[group[0].block], group[0].row);
  }
  return builder.take();
}

}  // namespace anabranch::data
