// MultiSlot text: for each slot, in order, "<n> v1 .. vn". A fast loop handles clean text only: single blanks, plain
// numbers, counts of one digit or the size of a dense slot. It leaves everything else to the careful reader below,
// which alone decides what is wrong.
//
// The grammar: fields are separated by blanks and tabs (any number of them), which may also precede the first and
// follow the last field; a carriage return before the end of a line belongs to the end. A count is digits, 1 or more,
// and the size of a dense slot. Ids are as strtoull reads them, floats as strtof (number.h).
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/fields.h"
#include "data/number.h"
#include "data/row_parser.h"

namespace anabranch::data {

namespace {

constexpr double kZeroBelow = 1e-6;  // Fluid's

struct SlotPlan {
  bool is_float, dense, used, drop_zeros;
  int64_t fixed;                         // values of a dense slot of known size, else 0
  int64_t multiple;                      // a dense slot with an unknown extent has a multiple of this many values
  uint32_t prefix = 0, prefix_mask = 0;  // "13 " as it appears in the text, for a dense slot of known size below 1000
  int prefix_bytes = 0;
  size_t fixed_words() const { return static_cast<size_t>(is_float ? fixed : 2 * fixed); }
};

std::vector<SlotPlan> plan_slots(const Schema& schema) {
  std::vector<SlotPlan> plans;
  for (const Slot& slot : schema.slots) {
    SlotPlan plan{slot.is_float(), slot.dense, slot.used, schema.drop_zeros && !slot.dense, 0, 1};
    if (slot.dense) {
      const int64_t values = slot.values();
      if (values > 0) plan.fixed = values;
      for (const int64_t extent : slot.shape) {
        if (extent > 0) plan.multiple *= extent;
      }
      const std::string text = fmt::format("{} ", values);
      if (values > 0 && text.size() <= 4) {
        plan.prefix_bytes = static_cast<int>(text.size());
        std::memcpy(&plan.prefix, text.data(), text.size());
        plan.prefix_mask = text.size() == 4 ? ~0u : (1u << (8 * text.size())) - 1;
      }
    }
    plans.push_back(plan);
  }
  return plans;
}

bool fits(const SlotPlan& plan, int64_t count) {
  return !plan.dense || (plan.fixed ? count == plan.fixed : count % plan.multiple == 0);
}

uint32_t* put_id(uint32_t* out, uint64_t id) {
  std::memcpy(out, &id, sizeof id);
  return out + 2;
}

uint32_t* put_float(uint32_t* out, float value) {
  std::memcpy(out, &value, sizeof value);
  return out + 1;
}

// ---- clean text

// Reads `count` values, each with the following byte: a blank, or the end of the line after the last value of the last
// slot. Returns where the next field starts (the end of the line itself), or null.
template <bool kFloat> const char* fast_values(const char* p, int64_t count, bool drop_zeros, uint32_t** out) {
  uint32_t* o = *out;
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (kFloat) {
      float value;
      p = fast_float(p, &value);
      if (!p) return nullptr;
      o = put_float(o, value);
      if (drop_zeros && std::fabs(static_cast<double>(value)) < kZeroBelow) --o;
    } else {
      uint64_t id;
      p = fast_id(p, &id);
      if (!p) return nullptr;
      o = put_id(o, id);
      if (drop_zeros && id == 0) o -= 2;
    }
    if (*p == ' ') {
      ++p;
    } else if (*p != '\n' || i + 1 != count) {
      return nullptr;
    }
  }
  *out = o;
  return p;
}

const char* fast_count(const char* p, const SlotPlan& plan, int64_t* count) {
  uint32_t four;
  std::memcpy(&four, p, 4);
  if (plan.prefix_bytes) {
    if ((four & plan.prefix_mask) != plan.prefix) return nullptr;
    *count = plan.fixed;
    return p + plan.prefix_bytes;
  }
  const uint32_t digit = (four & 0xff) - '0';
  if (digit - 1 < 9 && (four & 0xff00) == ' ' << 8) {
    *count = digit;
    p += 2;
  } else {
    uint64_t n;
    p = fast_id(p, &n);
    if (!p || *p != ' ' || n == 0 || n > (1u << 30)) return nullptr;
    *count = static_cast<int64_t>(n);
    ++p;
  }
  return fits(plan, *count) ? p : nullptr;
}

// The words of a sparse slot after zeros were dropped: one zero replaces an empty list.
uint32_t* refill(uint32_t* values, uint32_t* out, const SlotPlan& plan) {
  if (out == values) out = plan.is_float ? put_float(out, 0.0f) : put_id(out, 0);
  const auto words = static_cast<uint32_t>(out - values);
  values[-1] = plan.is_float ? words : words / 2;
  return out;
}

// One line at p. Returns the position after its end, or null: for the careful reader.
const char* fast_line(const char* p, const std::vector<SlotPlan>& plans, uint32_t* out, uint32_t** end) {
  for (const SlotPlan& plan : plans) {
    int64_t count = 0;
    p = fast_count(p, plan, &count);
    if (!p) return nullptr;
    uint32_t* const begin = out;
    if (!plan.fixed) *out++ = static_cast<uint32_t>(count);
    uint32_t* const values = out;
    p = plan.is_float ? fast_values<true>(p, count, plan.drop_zeros, &out)
                      : fast_values<false>(p, count, plan.drop_zeros, &out);
    if (!p) return nullptr;
    if (plan.drop_zeros) out = refill(values, out, plan);
    if (!plan.used) out = begin;
  }
  if (*p != '\n') return nullptr;
  *end = out;
  return p + 1;
}

// ---- any text

class CarefulLine {
 public:
  CarefulLine(std::string_view line, const Schema& schema, const std::vector<SlotPlan>& plans, Block* out)
      : whole_(line), line_(line), schema_(schema), plans_(plans), out_(out), writer_(out) {
    if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
  }

  void read() {
    const size_t texts = out_->ins_ids.size();
    uint32_t* end = writer_.room(2 * line_.size() + fixed_words() + plans_.size() * 5 + 1);
    if (prefix(schema_.ins_id, -2, &out_->ins_ids) && prefix(schema_.content, -3, &out_->contents) && slots(&end)) {
      end = std::copy(lists_.begin(), lists_.end(), end);
      if (!lists_.empty()) note_uneven();
      writer_.keep(end);
      return;
    }
    if (schema_.ins_id) out_->ins_ids.resize(std::min(texts, out_->ins_ids.size()));
    if (schema_.content) out_->contents.resize(std::min(texts, out_->contents.size()));
    writer_.refuse(column_, slot_, reason_, whole_);
  }

 private:
  bool bad(size_t at, BadReason reason) {
    column_ = static_cast<int64_t>(at) + 1;
    reason_ = reason;
    return false;
  }

  // The next field; empty at the end of the line. at_ is then after it, begin_ at its start.
  std::string_view field() {
    begin_ = std::min(line_.find_first_not_of(" \t", at_), line_.size());
    at_ = std::min(line_.find_first_of(" \t", begin_), line_.size());
    return line_.substr(begin_, at_ - begin_);
  }

  bool count(int64_t* n) {
    BadReason reason{};
    return read_count(field(), n, &reason) || bad(begin_, reason);
  }

  // "1 <text>" before the slots.
  bool prefix(bool there, int32_t slot, std::vector<std::string>* texts) {
    if (!there) return true;
    slot_ = slot;
    int64_t n = 0;
    if (!count(&n)) return false;
    if (n != 1) return bad(begin_, BadReason::kCountMismatch);
    const std::string_view text = field();
    if (text.empty()) return bad(begin_, BadReason::kFewValues);
    texts->emplace_back(text);
    return true;
  }

  bool slots(uint32_t** end) {
    for (size_t i = 0; i < plans_.size(); ++i) {
      slot_ = static_cast<int32_t>(i);
      if (!one_slot(plans_[i], end)) return false;
      if (plans_[i].used) ++used_;
    }
    slot_ = -1;
    return field().empty() || bad(begin_, BadReason::kTextAfter);
  }

  bool one_slot(const SlotPlan& plan, uint32_t** end) {
    int64_t n = 0;
    if (!count(&n)) return false;
    if (schema_.joins && plan.fixed && n != plan.fixed) return uneven_slot(plan, n, end);
    if (!fits(plan, n)) return bad(begin_, BadReason::kCountMismatch);
    uint32_t* out = *end;
    if (!plan.fixed) *out++ = static_cast<uint32_t>(n);
    uint32_t* const values = out;
    if (!read_values(plan, n, &out)) return false;
    if (plan.drop_zeros) out = refill(values, out, plan);
    if (plan.used) *end = out;
    return true;
  }

  bool read_values(const SlotPlan& plan, int64_t n, uint32_t** out) {
    for (int64_t i = 0; i < n; ++i) {
      const std::string_view text = field();
      if (text.empty()) return bad(begin_, BadReason::kFewValues);
      if (!(plan.is_float ? float_value(text, plan, out) : id_value(text, plan, out))) return false;
    }
    return true;
  }

  // A dense slot with another number of values than its size: the whole list goes to the end of the sample.
  bool uneven_slot(const SlotPlan& plan, int64_t n, uint32_t** end) {
    const int64_t column = static_cast<int64_t>(begin_) + 1;
    uint32_t* const values = *end;
    uint32_t* out = values;
    if (!read_values(plan, n, &out)) return false;
    if (!plan.used) return true;
    if (lists_.empty()) {
      uneven_slot_ = slot_;
      uneven_column_ = column;
    }
    lists_.push_back(used_);
    lists_.push_back(static_cast<uint32_t>(n));
    lists_.insert(lists_.end(), values, out);
    *end = values + plan.fixed_words();
    if (out < *end) std::fill(out, *end, 0u);
    return true;
  }

  void note_uneven() {
    if (++out_->uneven_rows > 1) return;
    out_->uneven.push_back(
        {out_->lines, out_->rows(), uneven_column_, uneven_slot_, BadReason::kCountMismatch, std::string(whole_)});
  }

  size_t fixed_words() const {
    size_t words = 0;
    for (const SlotPlan& plan : plans_) words += schema_.joins ? plan.fixed_words() : 0;
    return words;
  }

  bool id_value(std::string_view text, const SlotPlan& plan, uint32_t** out) {
    uint64_t id = 0;
    const Spelling spelling = careful_id(text, &id);
    if (spelling != Spelling::kGood) {
      return bad(begin_, spelling == Spelling::kNone ? BadReason::kNotId : BadReason::kIdRange);
    }
    if (id != 0 || !plan.drop_zeros) *out = put_id(*out, id);
    return true;
  }

  bool float_value(std::string_view text, const SlotPlan& plan, uint32_t** out) {
    float value = 0;
    const Spelling spelling = careful_float(text, &value);
    if (spelling != Spelling::kGood) {
      return bad(begin_, spelling == Spelling::kNone ? BadReason::kNotFloat : BadReason::kFloatRange);
    }
    if (!plan.drop_zeros || !(std::fabs(static_cast<double>(value)) < kZeroBelow)) *out = put_float(*out, value);
    return true;
  }

  std::string_view whole_, line_;
  const Schema& schema_;
  const std::vector<SlotPlan>& plans_;
  Block* out_;
  RowWriter writer_;
  size_t at_ = 0, begin_ = 0;
  int64_t column_ = 1;
  int32_t slot_ = -1;
  uint32_t used_ = 0;            // number of used slots before this one
  std::vector<uint32_t> lists_;  // of uneven slots, as they follow the sample
  int64_t uneven_column_ = 1;
  int32_t uneven_slot_ = -1;
  BadReason reason_ = BadReason::kLineEnds;
};

class MultiSlotParser final : public RowParser {
 public:
  explicit MultiSlotParser(const Schema& schema) : schema_(schema), plans_(plan_slots(schema)) { schema.check(); }

  void parse(std::string_view text, const FileHead& /*head*/, Block* out) const override {
    RowWriter writer(out);
    // A value has at least two bytes of text and needs at most two words of memory; a count has two bytes and needs
    // one.
    writer.room(text.size() + plans_.size() * 3 + 1);
    const bool fast = !schema_.ins_id && !schema_.content;
    const char* p = text.data();
    const char* const last = p + text.size();
    while (p < last) {
      uint32_t* end = nullptr;
      const char* next = fast ? fast_line(p, plans_, out->words.get() + out->word_count, &end) : nullptr;
      if (next && next <= last) {
        writer.keep(end);
      } else {
        const auto* line_end = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(last - p)));
        CarefulLine({p, static_cast<size_t>(line_end - p)}, schema_, plans_, out).read();
        writer.room(static_cast<size_t>(last - line_end) + plans_.size() * 3);
        next = line_end + 1;
      }
      p = next;
    }
  }

 private:
  Schema schema_;
  std::vector<SlotPlan> plans_;
};

}  // namespace

std::unique_ptr<RowParser> make_multi_slot_parser(const Schema& schema) {
  return std::make_unique<MultiSlotParser>(schema);
}

}  // namespace anabranch::data
