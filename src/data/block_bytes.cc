#include <cstring>

#include "data/cache.h"
#include "io/byte_reader.h"

namespace anabranch::data {
namespace {

struct Head {
  uint64_t words, begins, ins_ids, contents, bad;
  int64_t lines, bytes;
};

template <class T> void put(std::string* out, const T& value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof value);
}

void put_text(std::string* out, const std::string& text) {
  put(out, static_cast<uint64_t>(text.size()));
  *out += text;
}

std::string get_text(io::ByteReader* in) {
  const auto size = in->get<uint64_t>("the length of a text");
  return std::string(in->take(size, "a text"));
}

}  // namespace

std::string block_bytes(const Block& block) {
  std::string out;
  out.reserve(sizeof(Head) + 4 * (block.word_count + block.begins.size()));
  put(&out, Head{block.word_count, block.begins.size(), block.ins_ids.size(), block.contents.size(), block.bad.size(),
                 block.lines, block.bytes});
  out.append(reinterpret_cast<const char*>(block.words.get()), 4 * block.word_count);
  out.append(reinterpret_cast<const char*>(block.begins.data()), 4 * block.begins.size());
  for (const std::string& text : block.ins_ids) put_text(&out, text);
  for (const std::string& text : block.contents) put_text(&out, text);
  for (const BadRow& row : block.bad) {
    put(&out, row.line);
    put(&out, row.rows);
    put(&out, row.column);
    put(&out, row.slot);
    put(&out, row.reason);
    put_text(&out, row.text);
  }
  return out;
}

void block_from_bytes(std::string_view bytes, const std::string& what, Block* out) {
  io::ByteReader in(bytes, what);
  const auto head = in.get<Head>("the head of a block");
  for (const uint64_t count : {head.words, head.begins, head.ins_ids, head.contents, head.bad}) {
    AB_CHECK(count <= bytes.size(), InvalidArgument, "{}: a block has more parts than bytes", what);
  }
  const std::string_view words = in.take(4 * head.words, "values");
  const std::string_view begins = in.take(4 * head.begins, "begins of rows");
  out->reserve(head.words);
  if (head.words) std::memcpy(out->words.get(), words.data(), words.size());
  out->word_count = head.words;
  out->begins.resize(head.begins);
  if (head.begins) std::memcpy(out->begins.data(), begins.data(), begins.size());
  for (uint64_t i = 0; i < head.ins_ids; ++i) out->ins_ids.push_back(get_text(&in));
  for (uint64_t i = 0; i < head.contents; ++i) out->contents.push_back(get_text(&in));
  for (uint64_t i = 0; i < head.bad; ++i) {
    BadRow row;
    row.line = in.get<int64_t>("a bad row");
    row.rows = in.get<int64_t>("a bad row");
    row.column = in.get<int64_t>("a bad row");
    row.slot = in.get<int32_t>("a bad row");
    row.reason = in.get<BadReason>("a bad row");
    row.text = get_text(&in);
    out->bad.push_back(std::move(row));
  }
  out->lines = head.lines;
  out->bytes = head.bytes;
}

}  // namespace anabranch::data
