// Parsed files on disk: a first pass stores the parsed form of a file in Settings::cache_folder, and later passes read
// it instead of the text. An entry is valid for one text (path, size, modification time), one schema, format and pipe
// command, and one version of this code; if any of them differs the text is read again, and its new entry replaces the
// old one. Bad rows are stored, too, so that every policy sees the same rows. Blocks carry checksums, and damage is an
// error. An entry appears whole, once its text was read to the end, or not at all.
#pragma once
#include <atomic>
#include <memory>
#include <string>

#include "data/input.h"

namespace anabranch::data {

// The location of a text's entry, and the inputs it must have been made from.
struct CachePlace {
  std::string path, key;
  int64_t text_bytes = 0;
};
CachePlace cache_place(const Settings& settings, const std::string& text_path);

// The blocks of an entry, or null if there is no valid one.
std::unique_ptr<Input> open_cache(const CachePlace& place, const Schema& schema);
// Forwards the chunks of a text and stores their parsed form.
std::unique_ptr<Input> caching_input(std::unique_ptr<Input> text, const CachePlace& place,
                                     const std::atomic<bool>* stop);

// A block as bytes, and back; InvalidArgument, naming `what`, if the bytes are damaged, or hold rows that no parser
// creates for the schema: any writer to the folder can compute checksums.
std::string block_bytes(const Block& block);
void block_from_bytes(std::string_view bytes, const std::string& what, const Schema& schema, Block* out);

}  // namespace anabranch::data
