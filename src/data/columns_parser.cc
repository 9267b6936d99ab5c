// Lines of columns: tab- or comma-separated text and the like. A field may be quoted ("a,b", "" for a quote) unless the
// separator is a tab; a quoted field ends within its line.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"
#include "data/file_head.h"
#include "data/number.h"
#include "data/row_format.h"

namespace anabranch::data {
namespace {

struct Plan {
  ColumnRule rule;
  int32_t slot = 0;
  bool is_float = false;
  bool counted = false;  // a count precedes the values
  bool required = false;
  float missing = 0;       // the value of an empty field, transformed
  size_t first_place = 0;  // index of its first column in FileHead::columns
};

struct Field {
  std::string_view text;
  int64_t column;  // byte at which it starts, from 1
};

float log_of(float value) { return value > 0 ? std::log1p(value) : 0; }

std::vector<Plan> plan_columns(const Schema& schema, const RowFormat& format) {
  std::vector<Plan> plans;
  for (size_t i = 0; i < schema.slots.size(); ++i) {
    const Slot& slot = schema.slots[i];
    if (!slot.used) continue;
    const auto rule = std::find_if(format.rules.begin(), format.rules.end(),
                                   [&](const ColumnRule& r) { return r.slot == slot.name; });
    AB_CHECK(rule != format.rules.end(), InvalidArgument, "the schema of the data has no line for slot {}", slot.name);
    AB_CHECK(!slot.is_float() || (!rule->hash && !rule->split), InvalidArgument,
             "slot {} is float32: \"hash\" and \"split\" are for int64", slot.name);
    AB_CHECK(slot.is_float() || !rule->log, InvalidArgument, "slot {} is int64: \"log\" is for float32", slot.name);
    const auto columns = static_cast<int64_t>(rule->columns.size());
    AB_CHECK(!slot.dense || (slot.values() == columns && !rule->split), InvalidArgument,
             "slot {} is dense, of shape {} a sample, but the schema gives it {} columns{}", slot.name,
             slot.shape.str(), columns, rule->split ? ", to be split" : "");
    AB_CHECK(slot.is_float() || (rule->missing == std::trunc(rule->missing) && std::fabs(rule->missing) < 0x1p53),
             InvalidArgument, "slot {} is int64: the value of \"missing\" must be an integer", slot.name);
    AB_CHECK(!rule->ranged || !rule->hash, InvalidArgument, "slot {} is hashed: \"range\" is for numbers", slot.name);
    Plan plan{*rule, static_cast<int32_t>(i), slot.is_float(), !slot.dense};
    const bool label = !slot.is_float() && slot.dense && !rule->hash;
    plan.required = rule->required || (label && !rule->has_missing);
    plan.missing = static_cast<float>(rule->missing);
    if (rule->log && !rule->missing_last) plan.missing = log_of(plan.missing);
    plans.push_back(std::move(plan));
  }
  return plans;
}

class ColumnsParser final : public RowParser {
 public:
  ColumnsParser(const Schema& schema, const RowFormat& format)
      : plans_(plan_columns(schema, format)), heads_(format), separator_(format.separator), header_(format.header) {
    for (Plan& plan : plans_) {
      fixed_words_ += 1 + 2 * plan.rule.columns.size();  // a count, and a value of each column
      plan.first_place = heads_.add(plan.rule.columns, !plan.rule.hash && !plan.rule.split);
    }
  }

  FileHead head(std::string_view line, const std::string& path) const override {
    std::vector<Field> fields;
    std::string unquoted;
    Bad bad{};
    std::vector<std::string_view> texts;
    // A line whose quotes do not end is a bad row. As a header, it lacks names.
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
    cut(without_end(line), &fields, &unquoted, &bad);
    for (const Field& field : fields) texts.push_back(field.text);
    return heads_.head(texts, path);
  }

  void parse(std::string_view text, const FileHead& head, Block* out) const override {
    RowWriter writer(out);
    std::vector<Field> fields;
    std::string unquoted;
    bool skip = header_ && out->chunk == 0;
    while (!text.empty()) {
      const size_t end = text.find('\n');
      std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      if (skip) {
        skip = false;
        ++out->lines;
        continue;
      }
      row(line, head, &fields, &unquoted, &writer);
    }
  }

 private:
  struct Bad {
    int64_t column;
    int32_t slot;
    BadReason reason;
  };

  static std::string_view without_end(std::string_view line) {
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    return line;
  }

  void row(std::string_view whole, const FileHead& head, std::vector<Field>* fields, std::string* unquoted,
           RowWriter* writer) const {
    const std::string_view line = without_end(whole);
    Bad bad{1, -1, BadReason::kFieldCount};
    if (!cut(line, fields, unquoted, &bad)) return writer->refuse(bad.column, bad.slot, bad.reason, whole);
    const bool further = fields->size() > head.fields;
    if (further ? !head.at_least : fields->size() < head.fields) {
      const int64_t column = further ? (*fields)[head.fields].column : static_cast<int64_t>(line.size()) + 1;
      return writer->refuse_fields(column, fields->size(), head.fields, whole);
    }
    uint32_t* out = writer->room(words_at_most(*fields, head));
    Cells cells{*fields, head, 0};
    for (const Plan& plan : plans_) {
      if (!slot_values(plan, &cells, &out, &bad)) return writer->refuse(bad.column, plan.slot, bad.reason, whole);
    }
    writer->add_missing(cells.missing);
    writer->keep(out);
  }

  // Several slots, or one slot several times, may use the values of one column.
  size_t words_at_most(const std::vector<Field>& fields, const FileHead& head) const {
    size_t words = fixed_words_;
    for (const Plan& plan : plans_) {
      if (!plan.rule.split) continue;  // each further separator is a further value
      for (size_t i = 0; i < plan.rule.columns.size(); ++i) {
        words += 2 * fields[head.columns[plan.first_place + i]].text.size();
      }
    }
    return words;
  }

  bool cut(std::string_view line, std::vector<Field>* fields, std::string* unquoted, Bad* bad) const {
    fields->clear();
    unquoted->clear();
    unquoted->reserve(line.size());  // its bytes must not move, because fields point to them
    size_t at = 0;
    for (;;) {
      const auto column = static_cast<int64_t>(at) + 1;
      if (at < line.size() && line[at] == '"' && separator_ != '\t') {
        const size_t begin = unquoted->size();
        at = unquote(line, at, unquoted);
        if (at == std::string_view::npos || (at < line.size() && line[at] != separator_)) {
          *bad = {column, -1, BadReason::kQuote};
          return false;
        }
        fields->push_back({std::string_view(*unquoted).substr(begin), column});
      } else {
        const auto* begin = line.data() + at;
        const auto* found = static_cast<const char*>(std::memchr(begin, separator_, line.size() - at));
        const size_t end = found ? static_cast<size_t>(found - line.data()) : line.size();
        fields->push_back({line.substr(at, end - at), column});
        at = end;
      }
      if (at == line.size()) return true;
      ++at;
    }
  }

  // The text after the quote that ends the field, or npos.
  static size_t unquote(std::string_view line, size_t at, std::string* unquoted) {
    for (++at; at < line.size(); ++at) {
      if (line[at] == '"') {
        if (at + 1 == line.size() || line[at + 1] != '"') return at + 1;
        ++at;
      }
      *unquoted += line[at];
    }
    return std::string_view::npos;
  }

  struct Cells {
    const std::vector<Field>& fields;
    const FileHead& head;
    int64_t missing;  // number of empty ones that got a value
  };

  static bool slot_values(const Plan& plan, Cells* cells, uint32_t** out, Bad* bad) {
    uint32_t* const count = *out;
    if (plan.counted) ++*out;
    int64_t values = 0;
    for (size_t i = 0; i < plan.rule.columns.size(); ++i) {
      const uint64_t salt = plan.rule.columns[i].salt;
      Field field = cells->fields[cells->head.columns[plan.first_place + i]];
      if (field.text.empty() && !plan.rule.hash) {
        if (plan.required) {
          *bad = {field.column, 0, BadReason::kMissing};
          return false;
        }
        ++cells->missing;
      }
      for (;;) {
        const size_t end = plan.rule.split ? field.text.find(plan.rule.split) : std::string_view::npos;
        const Field part{field.text.substr(0, end), field.column};
        if (!(plan.is_float ? float_value(plan, part, out, bad) : id_value(plan, part, salt, out, bad))) return false;
        ++values;
        if (end == std::string_view::npos) break;
        field.text.remove_prefix(end + 1);
        field.column += static_cast<int64_t>(end) + 1;
      }
    }
    if (plan.counted) *count = static_cast<uint32_t>(values);
    return true;
  }

  static bool float_value(const Plan& plan, const Field& field, uint32_t** out, Bad* bad) {
    float value = plan.missing;
    const Spelling spelling = field.text.empty() ? Spelling::kGood : careful_float(field.text, &value);
    if (spelling != Spelling::kGood) {
      *bad = {field.column, 0, spelling == Spelling::kNone ? BadReason::kNotFloat : BadReason::kFloatRange};
      return false;
    }
    if (!field.text.empty()) {
      if (plan.rule.ranged && !(value >= plan.rule.low && value <= plan.rule.high)) {
        *bad = {field.column, 0, BadReason::kRange};
        return false;
      }
      if (plan.rule.log) value = log_of(value);
    }
    std::memcpy((*out)++, &value, sizeof value);
    return true;
  }

  static bool id_value(const Plan& plan, const Field& field, uint64_t salt, uint32_t** out, Bad* bad) {
    auto value = static_cast<uint64_t>(static_cast<int64_t>(plan.rule.missing));
    if (plan.rule.hash) {
      value = hashed_id(field.text, salt, plan.rule.hash);
    } else if (!field.text.empty()) {
      const Spelling spelling = careful_id(field.text, &value);
      if (spelling != Spelling::kGood) {
        *bad = {field.column, 0, spelling == Spelling::kNone ? BadReason::kNotId : BadReason::kIdRange};
        return false;
      }
      const auto number = static_cast<double>(static_cast<int64_t>(value));
      if (plan.rule.ranged && !(number >= plan.rule.low && number <= plan.rule.high)) {
        *bad = {field.column, 0, BadReason::kRange};
        return false;
      }
    }
    std::memcpy(*out, &value, sizeof value);
    *out += 2;
    return true;
  }

  std::vector<Plan> plans_;
  FileHeads heads_;
  char separator_;
  bool header_;
  size_t fixed_words_ = 0;
};

}  // namespace

std::unique_ptr<RowParser> make_columns_parser(const Schema& schema, const RowFormat& format) {
  return std::make_unique<ColumnsParser>(schema, format);
}

}  // namespace anabranch::data
