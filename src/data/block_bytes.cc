#include <cstring>

#include "data/cache.h"
#include "io/byte_reader.h"

namespace anabranch::data {
namespace {

struct Head {
  uint64_t words, starts, ins_ids, contents, bad;
  int64_t lines, skipped, bytes, missing;
};

struct RowPart {
  RecordShape::Part shape;
  int64_t multiple = 1;  // a list of a dense slot fills its known extents
};

std::vector<RowPart> row_parts(const Schema& schema) {
  std::vector<RowPart> parts;
  const std::vector<const Slot*> slots = schema.used();
  const RecordShape shape(schema);
  for (size_t i = 0; i < slots.size(); ++i) {
    RowPart& part = parts.emplace_back(RowPart{shape.parts()[i]});
    if (!slots[i]->dense) continue;
    for (const int64_t extent : slots[i]->shape) part.multiple *= extent > 0 ? extent : 1;
  }
  return parts;
}

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

// Whether the lists of uneven slots take exactly these words: in the order of the slots, each once.
bool lists_fit(const uint32_t* at, const uint32_t* end, const std::vector<RowPart>& parts) {
  for (size_t next = 0; at != end;) {
    if (end - at < 2 || at[0] < next || at[0] >= parts.size()) return false;
    const RowPart& part = parts[at[0]];
    if (part.shape.fixed == 0 || at[1] == 0 || at[1] == part.shape.fixed) return false;
    const size_t words = part.shape.words_of(at[1]);
    if (words > static_cast<size_t>(end - at) - 2) return false;
    next = at[0] + 1;
    at += 2 + words;
  }
  return true;
}

// Whether a sample takes exactly these words.
bool row_fits(const uint32_t* at, const uint32_t* end, const std::vector<RowPart>& parts, bool joins) {
  for (const RowPart& part : parts) {
    int64_t values = part.shape.fixed;
    if (values == 0) {
      if (at == end) return false;
      values = *at++;
      if (values % part.multiple != 0) return false;
    }
    const size_t words = part.shape.words_of(values);
    if (words > static_cast<size_t>(end - at)) return false;
    at += words;
  }
  return joins ? lists_fit(at, end, parts) : at == end;
}

bool rows_fit(const Block& block, const Schema& schema) {
  const auto rows = static_cast<size_t>(block.rows());
  if (block.ins_ids.size() != (schema.ins_id ? rows : 0)) return false;
  if (block.contents.size() != (schema.content ? rows : 0)) return false;
  if (block.starts.empty()) return block.word_count == 0;
  if (block.starts.front() != 0 || block.starts.back() != block.word_count) return false;
  const std::vector<RowPart> parts = row_parts(schema);
  for (size_t i = 0; i < rows; ++i) {
    if (block.starts[i] > block.starts[i + 1] || block.starts[i + 1] > block.word_count) return false;
    const uint32_t *begin = block.words.get() + block.starts[i], *end = block.words.get() + block.starts[i + 1];
    if (!row_fits(begin, end, parts, schema.joins)) return false;
  }
  return true;
}

bool bad_rows_fit(const Block& block, const Schema& schema) {
  const auto slots = static_cast<int32_t>(schema.slots.size());
  for (const BadRow& row : block.bad) {
    const bool reason = row.reason >= BadReason::kLineEnds && row.reason <= kLastBadReason;
    if (!reason || row.slot < -3 || row.slot >= slots || row.line < 0 || row.line >= block.lines || row.rows < 0 ||
        row.rows > block.rows() || row.column < 0) {
      return false;
    }
  }
  return block.lines >= 0 && block.skipped >= 0 && block.bytes >= 0 && block.missing >= 0;
}

}  // namespace

std::string block_bytes(const Block& block) {
  std::string out;
  out.reserve(sizeof(Head) + 4 * (block.word_count + block.starts.size()));
  put(&out, Head{block.word_count, block.starts.size(), block.ins_ids.size(), block.contents.size(), block.bad.size(),
                 block.lines, block.skipped, block.bytes, block.missing});
  out.append(reinterpret_cast<const char*>(block.words.get()), 4 * block.word_count);
  out.append(reinterpret_cast<const char*>(block.starts.data()), 4 * block.starts.size());
  for (const std::string& text : block.ins_ids) put_text(&out, text);
  for (const std::string& text : block.contents) put_text(&out, text);
  for (const BadRow& row : block.bad) {
    put(&out, row.line);
    put(&out, row.rows);
    put(&out, row.column);
    put(&out, row.slot);
    put(&out, row.reason);
    put(&out, row.got);
    put(&out, row.expected);
    put_text(&out, row.text);
  }
  return out;
}

void block_from_bytes(std::string_view bytes, const std::string& what, const Schema& schema, Block* out) {
  io::ByteReader in(bytes, what);
  const auto head = in.get<Head>("the head of a block");
  for (const uint64_t count : {head.words, head.starts, head.ins_ids, head.contents, head.bad}) {
    AB_CHECK(count <= bytes.size(), InvalidArgument, "{}: a block has more parts than bytes", what);
  }
  const std::string_view words = in.take(4 * head.words, "values");
  const std::string_view starts = in.take(4 * head.starts, "starts of rows");
  out->reserve(head.words);
  if (head.words) std::memcpy(out->words.get(), words.data(), words.size());
  out->word_count = head.words;
  out->starts.resize(head.starts);
  if (head.starts) std::memcpy(out->starts.data(), starts.data(), starts.size());
  for (uint64_t i = 0; i < head.ins_ids; ++i) out->ins_ids.push_back(get_text(&in));
  for (uint64_t i = 0; i < head.contents; ++i) out->contents.push_back(get_text(&in));
  for (uint64_t i = 0; i < head.bad; ++i) {
    BadRow row;
    row.line = in.get<int64_t>("a bad row");
    row.rows = in.get<int64_t>("a bad row");
    row.column = in.get<int64_t>("a bad row");
    row.slot = in.get<int32_t>("a bad row");
    row.reason = in.get<BadReason>("a bad row");
    row.got = in.get<int32_t>("a bad row");
    row.expected = in.get<int32_t>("a bad row");
    row.text = get_text(&in);
    out->bad.push_back(std::move(row));
  }
  out->lines = head.lines;
  out->bytes = head.bytes;
  out->skipped = head.skipped;
  out->missing = head.missing;
  const bool fits = in.done() && rows_fit(*out, schema) && bad_rows_fit(*out, schema);
  AB_CHECK(fits, InvalidArgument,
           "{}: the cache holds rows that do not fit the schema: remove it to read the text again", what);
}

}  // namespace anabranch::data
