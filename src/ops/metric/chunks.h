// Chunks of a tagged sequence: runs of tags that form one unit in a tagging scheme. A tag is type * (positions of the
// scheme) + position; types from `types` on are outside of any chunk.
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

// Numbers of the positions in a chunk; -1 if the scheme does not have the position.
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

// A tag as type and position.
struct Tag {
  int64_t type, place;
};

// Whether a chunk ends between two tags. Another chunk may start there.
bool chunk_ends(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now);
bool chunk_starts(const ChunkScheme& scheme, int64_t outside, Tag before, Tag now);

// Appends the chunks of n tags, each in [0, types * positions], to `chunks`.
void find_chunks(const ChunkScheme& scheme, int64_t types, const int64_t* tags, int64_t n, std::vector<Chunk>* chunks);

}  // namespace anabranch::metric
