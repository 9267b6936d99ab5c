// The hash of row ids: its high bits are the best. Ids that differ in a few bits, low or high, spread evenly.
#pragma once
#include <cstdint>

namespace anabranch::sparse {

inline uint64_t hash_id(int64_t id) {
  uint64_t h = static_cast<uint64_t>(id) * 0x9e3779b97f4a7c15u;
  h ^= h >> 32;
  return h * 0xd6e8feb86659fd93u;
}

// Every bit depends on every bit. splitmix64, Steele et al., OOPSLA 2014
inline uint64_t scramble(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

// [0, 1).
inline float unit(uint64_t bits) { return static_cast<float>(bits >> 40) * 0x1p-24f; }

// (0, 1).
inline double inner_unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53; }

// [0, n), by the high bits.
inline uint64_t in_range(uint64_t hash, uint64_t n) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(hash) * n) >> 64);
}

// From the hash of a key, other bits than those for its shard and its slot.
inline uint64_t spread(uint64_t hash) { return (hash ^ hash >> 32) * 0x9e3779b97f4a7c15u; }

// The server of a key among n.
inline uint64_t server_of(int64_t key, uint64_t n) { return in_range(spread(hash_id(key)), n); }

}  // namespace anabranch::sparse
