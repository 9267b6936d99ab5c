#include "data/transform.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"
#include "data/number.h"
#include "data/row_format.h"

namespace anabranch::data {
namespace {

constexpr uint64_t kWords = 0x776f726473;  // seed of the hashes of a vocabulary

bool bad(Cell* cell, BadReason reason) {
  cell->bad = reason;
  return false;
}

bool outside(double value, const Step& step) { return !(value >= step.low && value <= step.high); }

uint64_t id_at_bound(double bound) { return static_cast<uint64_t>(static_cast<int64_t>(bound)); }

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> words)
    : words_(std::move(words)), slots_(std::bit_ceil(2 * words_.size() + 1)) {
  for (size_t i = 0; i < words_.size(); ++i) {
    size_t at = hash_bytes(words_[i], kWords);
    for (;; ++at) {
      uint32_t& slot = slots_[at & (slots_.size() - 1)];
      if (slot == 0) {
        slot = static_cast<uint32_t>(i + 1);
        break;
      }
      AB_CHECK(words_[slot - 1] != words_[i], InvalidArgument, "the vocabulary contains \"{}\" twice", words_[i]);
    }
  }
}

int64_t Vocabulary::find(std::string_view word) const {
  for (size_t at = hash_bytes(word, kWords);; ++at) {
    const uint32_t slot = slots_[at & (slots_.size() - 1)];
    if (slot == 0) return -1;
    if (words_[slot - 1] == word) return slot - 1;
  }
}

uint64_t Transform::ids() const {
  if (!gives_bucket()) return 0;
  const Step& last = steps.back();
  return last.buckets + last.bounds.size() + !last.bounds.empty() + (last.words ? last.words->size() : 0) +
         static_cast<uint64_t>(last.first);
}

bool Transform::apply(std::string_view text, uint64_t salt, Cell* cell) const {
  cell->text = text;
  cell->filled = false;
  switch (type) {
    case Type::kText: return apply_to_text(salt, cell);
    case Type::kNumber: return apply_to_number(cell);
    case Type::kInteger: return apply_to_integer(cell);
  }
  return false;
}

bool Transform::apply_to_text(uint64_t salt, Cell* cell) const {
  for (const Step& step : steps) {
    if (step.op == Step::Op::kHash) {
      cell->id = hashed_id(cell->text, salt, step.buckets);
    } else if (step.op == Step::Op::kVocabulary) {
      const int64_t found = step.words->find(cell->text);
      if (found < 0 && step.first == 0) return bad(cell, BadReason::kVocabulary);
      cell->id = static_cast<uint64_t>(found < 0 ? 0 : found + step.first);
    } else if (step.op == Step::Op::kDate) {
      const int64_t found = date_part(cell->text, step.part);
      if (found < 0 && step.first == 0) return bad(cell, cell->text.empty() ? BadReason::kMissing : BadReason::kDate);
      cell->id = static_cast<uint64_t>(found < 0 ? 0 : found + step.first);
    } else if (cell->text.empty()) {
      cell->text = step.text;
      cell->filled = true;
    }
  }
  return true;
}

bool Transform::apply_to_number(Cell* cell) const {
  bool missing = cell->text.empty();
  float x = 0;
  const Spelling spelling = missing ? Spelling::kGood : careful_float(cell->text, &x);
  if (spelling == Spelling::kNone) return bad(cell, BadReason::kNotFloat);
  if (spelling == Spelling::kRange) {
    if (!strict) return bad(cell, BadReason::kFloatRange);
    x = cell->text.front() == '-' ? -INFINITY : INFINITY;  // clip makes it finite
  }
  return apply_steps(x, missing, cell);
}

bool Transform::apply(float number, Cell* cell) const {
  cell->filled = false;
  return apply_steps(number, false, cell);
}

bool Transform::apply_steps(float x, bool missing, Cell* cell) const {
  missing |= strict && std::isnan(x);
  for (const Step& step : steps) {
    const auto low = static_cast<float>(step.low), high = static_cast<float>(step.high);
    switch (step.op) {
      case Step::Op::kMissing:
        if (!missing) break;
        x = low;
        missing = false;
        cell->filled = true;
        break;
      case Step::Op::kAbsent: missing &= std::isnan(x); break;
      case Step::Op::kRange:
        if (!missing && outside(x, step)) return bad(cell, BadReason::kRange);
        break;
      case Step::Op::kClip: x = std::min(std::max(x, low), high); break;
      case Step::Op::kLog: x = x > 0 ? std::log1p(x) : 0; break;
      case Step::Op::kNormalize: x = (x - low) / high; break;
      default:  // bucketize, the last step
        cell->id =
            static_cast<uint64_t>(std::upper_bound(step.bounds.begin(), step.bounds.end(), x) - step.bounds.begin());
    }
  }
  if (missing) return bad(cell, BadReason::kMissing);
  if (strict && !std::isfinite(x)) return bad(cell, BadReason::kFloatRange);
  cell->number = x;
  return true;
}

// No step makes NaN of another number, because its bounds are finite.
bool Transform::apply_step(const Step& step, std::span<float> x, uint64_t* ids, int64_t* filled) {
  const auto low = static_cast<float>(step.low), high = static_cast<float>(step.high);
  bool good = true;
  int32_t missing = 0;
  switch (step.op) {
    case Step::Op::kMissing:
      for (float& one : x) {
        missing += one != one;
        one = one != one ? low : one;
      }
      *filled += missing;
      break;
    case Step::Op::kAbsent:  // null and NaN are equal here, so the text of the row decides
      for (const float one : x) good &= !std::isnan(one);
      break;
    case Step::Op::kRange:
      for (const float one : x) good &= std::isnan(one) || !outside(one, step);
      break;
    case Step::Op::kClip:
      for (float& one : x) one = std::min(std::max(one, low), high);
      break;
    case Step::Op::kLog:
      for (float& one : x) one = one > 0 ? std::log1p(one) : std::isnan(one) ? one : 0;
      break;
    case Step::Op::kNormalize:
      for (float& one : x) one = (one - low) / high;
      break;
    default:  // bucketize, the last step
      for (const float one : x)
        *ids++ =
            static_cast<uint64_t>(std::upper_bound(step.bounds.begin(), step.bounds.end(), one) - step.bounds.begin());
  }
  return good;
}

bool Transform::apply(std::span<float> numbers, uint64_t* ids, int64_t* filled) const {
  for (const Step& step : steps) {
    if (!apply_step(step, numbers, ids, filled)) return false;
  }
  constexpr uint32_t kExponent = 0x7f800000;
  uint32_t odd = 0;  // numbers that are not finite
  for (const float one : numbers) odd |= (std::bit_cast<uint32_t>(one) & kExponent) == kExponent;
  return odd == 0;
}

bool Transform::apply_to_integer(Cell* cell) const {
  bool missing = cell->text.empty();
  const Spelling spelling = missing ? Spelling::kGood : careful_id(cell->text, &cell->id);
  if (spelling != Spelling::kGood) {
    return bad(cell, spelling == Spelling::kNone ? BadReason::kNotId : BadReason::kIdRange);
  }
  return apply(cell->id, !missing && cell->text.front() != '-', missing, cell);
}

// A positive one may have 64 bits.
bool Transform::apply(uint64_t id, bool positive, bool missing, Cell* cell) const {
  cell->id = id;
  cell->filled = false;
  for (const Step& step : steps) {
    const double number =
        positive ? static_cast<double>(cell->id) : static_cast<double>(static_cast<int64_t>(cell->id));
    if (step.op == Step::Op::kMissing) {
      if (!missing) continue;
      cell->id = id_at_bound(step.low);
      missing = false;
      cell->filled = true;
    } else if (step.op == Step::Op::kAbsent) {
      if (missing) cell->id = 0;
      missing = false;
    } else if (!missing && outside(number, step)) {
      if (step.op == Step::Op::kRange) return bad(cell, BadReason::kRange);
      cell->id = id_at_bound(number < step.low ? step.low : step.high);  // clip
    }
  }
  return !missing || bad(cell, BadReason::kMissing);
}

}  // namespace anabranch::data
