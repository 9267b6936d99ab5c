// Parsed files on disk: what a first pass makes of a file is kept in Settings::cache_folder, and later passes read that
// instead of the text. An entry holds for one text (path, size, time of change), one schema, format and pipe command,
// and one version of this code; where any of them differs the text is read again, and its new entry replaces the old.
// Bad rows are in it, too, so that every policy sees the same. Blocks carry checksums, and damage is an error.
// An entry appears as a whole, once its text was read to the end, or not at all.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "data/input.h"

namespace anabranch::data {

// Where the entry of a text is, and what it must have been made from.
struct CachePlace {
  std::string path, key;
  int64_t text_bytes = 0;
};
CachePlace cache_place(const Settings& settings, const std::string& text_path);

// The blocks of an entry, or null when there is none that holds.
std::unique_ptr<Input> open_cache(const CachePlace& place, const Schema& schema);
// Passes the pieces of a text on and keeps what becomes of them.
std::unique_ptr<Input> caching_input(std::unique_ptr<Input> text, const CachePlace& place,
                                     const std::atomic<bool>* stop);

// A block as bytes, and back; InvalidArgument, naming `what`, when the bytes are none, or hold rows that no parser
// makes for the schema: whoever can write to the folder can make checksums.
std::string block_bytes(const Block& block);
void block_from_bytes(std::string_view bytes, const std::string& what, const Schema& schema, Block* out);

}  // namespace anabranch::data
