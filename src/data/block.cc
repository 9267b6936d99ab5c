#include "data/block.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace anabranch::data {
namespace {

constexpr size_t kExcerptBytes = 120;

const std::string& slot_name(const BadRow& row, const Schema& schema) {
  static const std::string ins_id = "ins_id", content = "content";
  return row.slot == -2 ? ins_id : row.slot == -3 ? content : schema.slots[static_cast<size_t>(row.slot)].name;
}

// The text around a column, with unprintable bytes written as \xHH.
std::string excerpt(const std::string& text, int64_t column) {
  const auto at = static_cast<size_t>(std::max<int64_t>(column - 1, 0));
  const size_t begin = at > kExcerptBytes / 2 ? at - kExcerptBytes / 2 : 0;
  const size_t end = std::min(text.size(), begin + kExcerptBytes);
  std::string shown = begin ? "..." : "";
  for (size_t i = begin; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if (byte >= 0x20 && byte < 0x7f) {
      shown += text[i];
    } else {
      shown += byte == '\t' ? "\\t" : fmt::format("\\x{:02x}", byte);
    }
  }
  return end < text.size() ? shown + "..." : shown;
}

}  // namespace

const char* bad_reason_text(BadReason reason) {
  switch (reason) {
    case BadReason::kLineEnds: return "the line ends too early";
    case BadReason::kCountNotNumber: return "the number of values is not a number";
    case BadReason::kCountNegative: return "the number of values is negative";
    case BadReason::kCountZero: return "the number of values is 0: pad empty slots where the data is made";
    case BadReason::kCountTooLarge: return "the number of values is too large";
    case BadReason::kCountMismatch: return "the number of values is not that of the variable's shape";
    case BadReason::kFewValues: return "the line ends before its last value";
    case BadReason::kNotId: return "a value is not an integer";
    case BadReason::kIdRange: return "a value does not fit 64 bits";
    case BadReason::kNotFloat: return "a value is not a number";
    case BadReason::kFloatRange: return "a value does not fit a float32";
    case BadReason::kTextAfter: return "something follows the last slot";
    case BadReason::kLineTooLong: return "the line is too long";
    case BadReason::kFieldCount: return "the line has the wrong number of fields";
    case BadReason::kQuote: return "a quote does not end";
    case BadReason::kPair: return "not index:value";
    case BadReason::kMissing: return "a value is missing (the option \"missing V\" gives one)";
    case BadReason::kRange: return "a value is out of range";
    case BadReason::kVocabulary: return "a text is not in the vocabulary";
    case BadReason::kSeparator: return "an item of a list contains the separator";
    case BadReason::kIndexTwice: return "the line has two values for this index";
    case BadReason::kDate: return "a text is not a date or time with the part";
  }
  return "";
}

std::string bad_row_message(const BadRow& row, const Schema& schema, const std::string& file, int64_t line) {
  const std::string where = row.slot == -1 ? "" : fmt::format("slot {}: ", slot_name(row, schema));
  const std::string counts = row.expected ? fmt::format(" ({}, not {})", row.got, row.expected) : "";
  return fmt::format("{}:{}:{}: {}{}{}: {}", file, line, row.column, where, bad_reason_text(row.reason), counts,
                     excerpt(row.text, row.column));
}

int64_t Block::memory_bytes() const {
  size_t bytes = word_capacity * sizeof(uint32_t) + starts.capacity() * sizeof(uint32_t);
  for (const auto* texts : {&ins_ids, &contents}) {
    for (const auto& text : *texts) bytes += sizeof(std::string) + (text.capacity() > 15 ? text.capacity() : 0);
  }
  return static_cast<int64_t>(bytes);
}

void Block::clear() {
  word_count = 0;
  starts.clear();
  ins_ids.clear();
  contents.clear();
  bad.clear();
  uneven.clear();
  uneven_rows = 0;
  lines = skipped = bytes = missing = 0;
}

void Block::reserve(size_t count) {
  if (count <= word_capacity) return;
  std::unique_ptr<uint32_t[]> grown(new uint32_t[count]);  // not zeroed
  if (word_count) std::memcpy(grown.get(), words.get(), word_count * sizeof(uint32_t));
  words = std::move(grown);
  word_capacity = count;
}

void Block::append(const uint32_t* row, size_t count) {
  if (word_count + count > word_capacity) reserve(std::max(word_count + count, 2 * word_capacity));
  std::memcpy(words.get() + word_count, row, count * sizeof(uint32_t));
  if (starts.empty()) starts.push_back(0);
  word_count += count;
  starts.push_back(static_cast<uint32_t>(word_count));
}

void Block::keep_first(int64_t rows) {
  starts.resize(static_cast<size_t>(rows) + 1);
  word_count = starts.back();
}

Block Block::packed() const {
  Block copy;
  copy.reserve(word_count);
  if (word_count) std::memcpy(copy.words.get(), words.get(), word_count * sizeof(uint32_t));
  copy.word_count = word_count;
  copy.starts = starts;
  copy.ins_ids = ins_ids;
  copy.contents = contents;
  copy.uneven = uneven;
  copy.uneven_rows = uneven_rows;
  copy.lines = lines;
  copy.skipped = skipped;
  copy.missing = missing;
  copy.bytes = bytes;
  copy.file = file;
  copy.chunk = chunk;
  return copy;
}

RecordShape::RecordShape(const Schema& schema) {
  for (const Slot* slot : schema.used()) {
    const int64_t values = slot->values();
    parts_.push_back({slot->is_float(), slot->dense && values > 0 ? values : 0});
  }
}

}  // namespace anabranch::data
