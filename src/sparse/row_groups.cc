#include "sparse/row_groups.h"

#include <algorithm>
#include <utility>

namespace anabranch::sparse {
namespace {

constexpr int64_t kChunkIds = 1024;  // about ten microseconds
constexpr int64_t kShareIds = 4096, kMostShares = 16;
constexpr int kMaxBits = 6;

// Number of slots of a table for up to n ids: at most half of them are used.
int64_t slots_for(int64_t n) {
  int64_t slots = 4;
  while (slots < 2 * n) slots *= 2;
  return slots;
}

}  // namespace

void RowGroups::read(const int64_t* ids, int64_t n, Parallel* parallel) {
  bits_ = 0;
  while (bits_ < kMaxBits && (n >> bits_) > kChunkIds) ++bits_;
  const auto size = static_cast<size_t>(n);
  order_.resize(size);
  next_.resize(size);
  first_.resize(size);
  last_.resize(size);
  rows_.resize(size);
  chunk_of_.resize(size);
  const int64_t shares = std::clamp<int64_t>(n / kShareIds, 1, kMostShares), chunks = int64_t{1} << bits_;
  places_.assign(static_cast<size_t>(shares * chunks), 0);
  const auto each_share = [&](auto&& fn) {
    parallel_for(parallel, shares, 1, [&](int64_t from, int64_t to) {
      for (int64_t s = from; s < to; ++s) fn(n * s / shares, n * (s + 1) / shares, places_.data() + s * chunks);
    });
  };
  each_share([&](int64_t begin, int64_t end, int64_t* counts) { count(ids, begin, end, counts); });
  lay_out(shares);
  each_share([&](int64_t begin, int64_t end, int64_t* at) { place(ids, begin, end, at); });
}

void RowGroups::count(const int64_t* ids, int64_t begin, int64_t end, int64_t* counts) {
  for (int64_t i = begin; i < end; ++i) {
    const auto chunk = static_cast<uint8_t>(bits_ ? hash_id(ids[i]) >> (64 - bits_) : 0);
    chunk_of_[i] = chunk;
    ++counts[chunk];
  }
}

// From the numbers of ids to the places of the first ones: in a chunk, those of the first share come first.
void RowGroups::lay_out(int64_t shares) {
  const int64_t chunks = int64_t{1} << bits_;
  starts_.assign(static_cast<size_t>(chunks) + 1, 0);
  table_starts_.assign(static_cast<size_t>(chunks) + 1, 0);
  for (int64_t chunk = 0, at = 0; chunk < chunks; ++chunk) {
    for (int64_t s = 0; s < shares; ++s) {
      int64_t& place = places_[static_cast<size_t>(s * chunks + chunk)];
      at += std::exchange(place, at);
    }
    starts_[chunk + 1] = at;
    table_starts_[chunk + 1] = table_starts_[chunk] + slots_for(at - starts_[chunk]);
  }
  table_.resize(static_cast<size_t>(table_starts_.back()));
}

void RowGroups::place(const int64_t* ids, int64_t begin, int64_t end, int64_t* at) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t k = at[chunk_of_[i]]++;
    order_[k] = static_cast<int32_t>(i);
    rows_[k] = ids[i];
  }
}

RowGroups::Chunk RowGroups::group(int64_t chunk) {
  int32_t* last = last_.data() + starts_[chunk];
  return group(chunk, [=, this](int32_t row, int32_t position, int64_t, bool first) {
    if (!first) next_[last[row]] = position;
    next_[position] = -1;
    last[row] = position;
  });
}

}  // namespace anabranch::sparse
