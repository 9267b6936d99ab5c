// libsvm lines: "label index:value index:value ..."; text after a # is a comment. A line without pairs is one with
// index 0 and value 0.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/number.h"
#include "data/row_format.h"

namespace anabranch::data {
namespace {

struct Plan {
  enum class Part { kLabel, kIndex, kValue } part;
  int32_t slot;
  bool is_float, counted;
};

std::vector<Plan> plan_parts(const Schema& schema, const RowFormat& format) {
  std::vector<Plan> plans;
  for (size_t i = 0; i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    if (!slot.used) continue;
    const auto rule = std::find_if(format.rules.begin(), format.rules.end(),
                                   [&](const ColumnRule& r) { return r.slot == slot.name; });
    AB_CHECK(rule != format.rules.end(), InvalidArgument, "the schema of the data has no line for slot {}", slot.name);
    const auto part = rule->part == "label"   ? Plan::Part::kLabel
                      : rule->part == "index" ? Plan::Part::kIndex
                                              : Plan::Part::kValue;
    const bool label = part == Plan::Part::kLabel;
    AB_CHECK(label || !slot.dense, InvalidArgument, "slot {}: lists of indices and values need lod_level=1", slot.name);
    AB_CHECK(!label || (slot.dense && slot.values() == 1), InvalidArgument, "slot {}: a label must be one value",
             slot.name);
    AB_CHECK(label || slot.is_float() == (part == Plan::Part::kValue), InvalidArgument,
             "slot {}: indices are int64, values are float32", slot.name);
    plans.push_back({part, static_cast<int32_t>(i), slot.is_float(), !slot.dense});
  }
  return plans;
}

class LibsvmParser final : public RowParser {
 public:
  LibsvmParser(const Schema& schema, const RowFormat& format) : plans_(plan_parts(schema, format)) {}

  void parse(std::string_view text, const FileHead& /*head*/, Block* out) const override {
    RowWriter writer(out);
    Row row;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      const std::string_view whole = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (!read(whole.substr(0, whole.find('#')), &row)) {
        writer.refuse(row.column, -1, row.reason, whole);
        continue;
      }
      if (!label_fits(row)) {
        writer.refuse(1, plans_[row.label_plan].slot, BadReason::kNotId, whole);
        continue;
      }
      writer.keep(put(row, writer.room(plans_.size() * (3 + 2 * row.indices.size()))));
    }
  }

 private:
  struct Row {
    float label = 0;
    std::vector<uint64_t> indices;
    std::vector<float> values;
    int64_t column = 1;
    BadReason reason = BadReason::kPair;
    size_t label_plan = 0;
  };

  static bool read(std::string_view line, Row* row) {
    row->indices.clear();
    row->values.clear();
    const auto bad = [&](size_t at, BadReason reason) {
      row->column = static_cast<int64_t>(at) + 1;
      row->reason = reason;
      return false;
    };
    bool first = true;
    for (size_t at = 0;;) {
      const size_t begin = line.find_first_not_of(" \t\r", at);
      if (begin == std::string_view::npos) break;
      at = std::min(line.find_first_of(" \t\r", begin), line.size());
      const std::string_view field = line.substr(begin, at - begin);
      const size_t colon = first ? 0 : field.find(':');
      if (colon == std::string_view::npos) return bad(begin, BadReason::kPair);
      uint64_t index = 0;
      if (!first && careful_id(field.substr(0, colon), &index) != Spelling::kGood) return bad(begin, BadReason::kPair);
      float value = 0;
      const Spelling spelling = careful_float(first ? field : field.substr(colon + 1), &value);
      if (spelling == Spelling::kNone) return bad(begin, BadReason::kNotFloat);
      if (spelling == Spelling::kRange) return bad(begin, BadReason::kFloatRange);
      if (first) {
        row->label = value;
      } else {
        row->indices.push_back(index);
        row->values.push_back(value);
      }
      first = false;
    }
    if (first) return bad(0, BadReason::kLineEnds);
    if (row->indices.empty()) {
      row->indices.push_back(0);
      row->values.push_back(0);
    }
    return true;
  }

  bool label_fits(Row& row) const {
    const bool whole = std::trunc(row.label) == row.label && std::fabs(row.label) < 1e9f;
    for (size_t i = 0; i < plans_.size() && !whole; ++i) {
      row.label_plan = i;
      if (plans_[i].part == Plan::Part::kLabel && !plans_[i].is_float) return false;
    }
    return true;
  }

  uint32_t* put(const Row& row, uint32_t* out) const {
    for (const Plan& plan : plans_) {
      if (plan.counted) *out++ = static_cast<uint32_t>(row.indices.size());
      if (plan.part == Plan::Part::kIndex) {
        std::memcpy(out, row.indices.data(), row.indices.size() * 8);
        out += 2 * row.indices.size();
      } else if (plan.part == Plan::Part::kValue) {
        std::memcpy(out, row.values.data(), row.values.size() * 4);
        out += row.values.size();
      } else if (plan.is_float) {
        std::memcpy(out++, &row.label, 4);
      } else {
        const auto label = static_cast<int64_t>(row.label);
        std::memcpy(out, &label, 8);
        out += 2;
      }
    }
    return out;
  }

  std::vector<Plan> plans_;
};

}  // namespace

std::unique_ptr<RowParser> make_libsvm_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<LibsvmParser>(schema, format);
}

}  // namespace anabranch::data
