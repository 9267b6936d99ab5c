// The transformation of a value: from the text of a field to a number or an id, by steps in the order in which they are
// written. Readers, predictors and servers apply the same Transform, so the same text gives the same bits everywhere.
// Constant, so any number of threads may use one; apply() allocates nothing.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/block.h"
#include "data/dates.h"

namespace anabranch::data {

// Ids of texts: their positions in a list.
class Vocabulary {
 public:
  explicit Vocabulary(std::vector<std::string> words);  // InvalidArgument: a word occurs twice
  int64_t find(std::string_view word) const;            // -1: it is not in the list
  size_t size() const { return words_.size(); }

 private:
  std::vector<std::string> words_;
  std::vector<uint32_t> slots_;  // open addressing by hash: position + 1, or 0
};

struct Step {
  enum class Op : uint8_t { kMissing, kAbsent, kRange, kClip, kLog, kNormalize, kBucketize, kHash, kVocabulary, kDate };
  Op op = Op::kMissing;
  double low = 0, high = 0;  // range, clip; low: the value of missing; normalize: mean and scale; absent: none, as the
                             // value is 0, of an empty text and not of NaN, and is not counted
  uint64_t buckets = 0;      // hash; date: values of the part
  int64_t first = 0;         // vocabulary, date: the first id; 1 if 0 stands for other texts, which are bad if not
  DatePart part = {};        // date
  std::string text = {};     // missing, of a text
  std::vector<float> bounds = {};  // bucketize, ascending
  std::shared_ptr<const Vocabulary> words = {};
};

// A value while it is transformed.
struct Cell {
  std::string_view text;
  float number = 0;
  uint64_t id = 0;
  bool filled = false;  // it was missing and got a value
  BadReason bad = BadReason::kMissing;
};

struct Transform {
  enum class Type : uint8_t { kText, kNumber, kInteger };
  Type type = Type::kText;
  // A NaN is missing, and a number that is infinite after the last step is out of range. false: they are values, as in
  // formats of lines.
  bool strict = false;
  std::vector<Step> steps;

  // The results: a float, an id, or the text itself if no step has changed it to an id.
  bool gives_float() const { return type == Type::kNumber && !gives_bucket(); }
  bool gives_id() const { return type == Type::kInteger || gives_bucket(); }

  uint64_t ids() const;  // they are below this number; 0: any, or not an id

  // Sets cell->number, id or text. False: cell->bad has the reason. `salt`: the salt of the column.
  bool apply(std::string_view text, uint64_t salt, Cell* cell) const;
  // The same for a number, of the type kNumber: as if a text spelled it.
  bool apply(float number, Cell* cell) const;
  // The same for an integer, of the type kInteger: `id` has its bits, and `positive` says whether it has no minus.
  bool apply(uint64_t id, bool positive, bool missing, Cell* cell) const;
  // The same for many numbers of a strict transform, where NaN is missing. False: one is refused. gives_float(): the
  // results replace the numbers; otherwise they are in `ids`. Adds the number of those that got a value to *filled.
  bool apply(std::span<float> numbers, uint64_t* ids, int64_t* filled) const;

 private:
  bool gives_bucket() const { return !steps.empty() && steps.back().op >= Step::Op::kBucketize; }
  bool apply_to_text(uint64_t salt, Cell* cell) const;
  bool apply_to_number(Cell* cell) const;
  bool apply_steps(float x, bool missing, Cell* cell) const;
  bool apply_to_integer(Cell* cell) const;
  static bool apply_step(const Step& step, std::span<float> x, uint64_t* ids, int64_t* filled);
};

}  // namespace anabranch::data
