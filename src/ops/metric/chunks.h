// Chunks of a tagged sequence: runs of tags that stand for one thing, as a tagging scheme writes them down.
// A tag is type * (places of the scheme) + place; types from `types` on are outside of any chunk.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace anabranch::metric {

struct Chunk {
  int64_t begin, end;  // first and last row
  int64_t type;
  bool operator==(const Chunk&) const = default;
};

// Numbers of the places of a chunk; -1 where the scheme has no such place.
struct ChunkScheme {
  const char* name;
  int64_t places;
  int64_t begin, inside, end, single;
};

inline constexpr ChunkScheme kChunkSchemes[] = {
    {"IOB", 2, 0, 1, -1, -1},
    {"IOE", 2, -1, 0, 1, -1},
    {"IOBES", 4, 0, 1, 2, 3},
    {"plain", 1, -1, -1, -1, -1},
};

// A tag as type and place.
struct Tag {
  int64_t type, place;
};

// Does a chunk end between two tags? A chunk may begin there at the same time.
bool chunk_ends(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now);
bool chunk_begins(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now);

// Appends the chunks of n tags, each in [0, types * places], to `chunks`.
void find_chunks(const ChunkScheme& scheme, int64_t types, const int64_t* tags, int64_t n, std::vector<Chunk>* chunks);

}  // namespace anabranch::metric
