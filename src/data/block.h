// Parsed samples, packed one after another: the output of parsers, the contents of memory and of the cache, and the
// source of batches. A sample is a run of 32-bit words, slot after slot (used ones only): a dense slot of known size is
// its values; any other is a count and its values. A float is one word, an id two. One sample is a few adjacent cache
// lines, so that shuffled batches cost little more than ordered ones.
//
// A dense slot with another number of values (Schema::joins) is written as if it had as many as it should, and its real
// list follows the last slot: the number of the slot among the used ones, the count, the values.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/schema.h"

namespace anabranch::data {

enum class BadReason : int32_t {
  kLineEnds,        // before this slot
  kCountNotNumber,  // the number of values is not a number
  kCountNegative,   //
  kCountZero,       //
  kCountTooLarge,   // does not fit 18 digits
  kCountMismatch,   // a dense slot has another size
  kFewValues,       // the line ends inside the slot
  kNotId,           // a value of an id slot is not an integer
  kIdRange,         // does not fit 64 bits
  kNotFloat,        // a value of a float slot is not a number
  kFloatRange,      // does not fit a float32
  kTextAfter,       // text after the last slot
  kLineTooLong,     // Settings::max_line_bytes
  kFieldCount,      // CSV: another number of fields
  kQuote,           // CSV: a quote that does not end
  kPair,            // libsvm: not index:value
  kMissing,         // CSV: an empty field of a required value
  kRange,           // CSV: a value outside of the range
  kVocabulary,      // CSV: a text that is not in the vocabulary
  kSeparator,       // a table: an item of a list contains the separator of lists
  kIndexTwice,      // libsvm: two pairs have the index of a column
  kDate,            // CSV: a text that is not a date, or lacks the part
};
inline constexpr BadReason kLastBadReason = BadReason::kDate;

struct BadRow {
  int64_t line = 0;    // within the chunk, from 0
  int64_t rows = 0;    // good rows before it in the chunk
  int64_t column = 0;  // byte, from 1
  int32_t slot = -1;   // Schema::slots; -1: the line as a whole, -2: ins_id, -3: content
  BadReason reason = BadReason::kLineEnds;
  std::string text;               // the line, without its end; only its start if it is too long
  int32_t got = 0, expected = 0;  // numbers of fields
};

const char* bad_reason_text(BadReason reason);
// The likely cause and its cure; empty if none is known.
const char* bad_row_hint(const BadRow& row);
// "part-0:17:23: slot C3: a value is not an integer: ...excerpt..."; `line` counts from 1.
std::string bad_row_message(const BadRow& row, const Schema& schema, const std::string& file, int64_t line);

struct Block {
  std::unique_ptr<uint32_t[]> words;
  size_t word_count = 0, word_capacity = 0;
  std::vector<uint32_t> starts;  // word at which each sample starts; one more than there are samples
  std::vector<std::string> ins_ids, contents;
  std::vector<BadRow> bad;
  std::vector<BadRow> uneven;   // the first sample of which Schema::joins joins a slot, if there is one
  int64_t uneven_rows = 0;      // number of them
  int64_t lines = 0;            // good and bad
  int64_t skipped = 0;          // lines of another share (Settings::share), among `lines`
  int64_t missing = 0;          // empty fields of good ones that got a value of the schema
  int64_t bytes = 0;            // of the text (or cache) that they come from
  int64_t file = 0, chunk = 0;  // position in the order of the data
  int64_t first_line = 1;       // number of the chunk's first line; set where there are bad rows

  int64_t rows() const { return starts.empty() ? 0 : static_cast<int64_t>(starts.size()) - 1; }
  const uint32_t* row(int64_t i) const { return words.get() + starts[static_cast<size_t>(i)]; }
  const uint32_t* row_end(int64_t i) const { return row(i + 1); }
  int64_t memory_bytes() const;

  void clear();                // keeps the memory
  void reserve(size_t count);  // room for this number of words in total; keeps the contents
  void append(const uint32_t* row, size_t count);
  void keep_first(int64_t rows);  // drops the others
  Block packed() const;           // a copy without spare room and without the bad rows
};

// Offsets of the slots of a sample.
class RecordShape {
 public:
  struct Part {
    bool is_float = false;
    int64_t fixed = 0;  // values of a dense slot of known size; 0: a count precedes the values
    size_t words_of(int64_t values) const { return static_cast<size_t>(is_float ? values : 2 * values); }
  };

  explicit RecordShape(const Schema& schema);
  const std::vector<Part>& parts() const { return parts_; }  // one per used slot
  // After the slots of a sample that starts at `at`: where the lists of uneven slots start.
  const uint32_t* skip(const uint32_t* at, size_t slots) const {
    for (size_t i = 0; i < slots; ++i) {
      at += parts_[i].fixed ? parts_[i].words_of(parts_[i].fixed) : 1 + parts_[i].words_of(*at);
    }
    return at;
  }
  // The list of an uneven slot.
  struct Uneven {
    size_t slot;
    int64_t count;
    const uint32_t* values;
    const uint32_t* end;
  };
  Uneven uneven(const uint32_t* at) const {
    const size_t slot = at[0];
    return {slot, static_cast<int64_t>(at[1]), at + 2, at + 2 + parts_[slot].words_of(at[1])};
  }

 private:
  std::vector<Part> parts_;
};

}  // namespace anabranch::data
