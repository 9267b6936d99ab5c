#include "data/schema_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/near.h"
#include "data/pair_columns.h"
#include "data/schema_json.h"
#include "data/schema_steps.h"

namespace anabranch::data {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kMostColumns = 100000;

const std::vector<std::string> kTypes = {"text", "number", "integer"};  // in the order of Transform::Type

constexpr int64_t kMostIndex = int64_t{1} << 53;  // of a pair that is a column

void check_name(const std::string& name, const std::string& where, const RowFormat& format) {
  PairColumn pair;
  const auto& slots = format.slots;
  AB_CHECK(format.lines != Lines::kColumns || format.header, InvalidArgument,
           "{}: columns must be numbers from 0, because the schema has no header, got \"{}\"", where, name);
  AB_CHECK(format.lines != Lines::kMultiSlot || std::find(slots.begin(), slots.end(), name) != slots.end(),
           InvalidArgument, "{}: the lines have no slot {}; there are {}{}", where, name, fmt::join(slots, ", "),
           near_name(name, slots));
  AB_CHECK(format.lines != Lines::kLibsvm || pair_column(-1, name, &pair), InvalidArgument,
           "{}: a column of libsvm lines is an index (int), or \"label\", \"qid\", \"index\", \"value\", "
           "\"index 14-39\" or \"value 40-\", got \"{}\"",
           where, name);
}

std::vector<ColumnRef> columns_of(const Json& feature, const std::string& where, const RowFormat& format) {
  std::vector<ColumnRef> columns;
  for (const Json& column : list_of(feature, "columns", where)) {
    if (column.is_string()) {
      const auto name = column.get<std::string>();
      check_name(name, where, format);
      columns.push_back({-1, name, salt_of(name)});
      continue;
    }
    AB_CHECK(format.lines != Lines::kMultiSlot, InvalidArgument,
             "{}: a column of MultiSlot lines must be the name of a slot ({}), got {}", where,
             fmt::join(format.slots, ", "), column.dump());
    const int64_t most = format.lines == Lines::kLibsvm ? kMostIndex : kMostColumns;
    const int64_t number = whole_of(column, where, "a column", 0, most);
    columns.push_back({number, "", static_cast<uint64_t>(number)});
  }
  AB_CHECK(!columns.empty(), InvalidArgument, "{}: there must be at least one column, got none", where);
  return columns;
}

// Some columns of libsvm lines are lists, and the others are not; a tab cannot be in a value of either kind of lines.
void check_split(const ColumnRule& rule, const std::string& where, const RowFormat& format) {
  if (format.lines == Lines::kColumns) return;
  AB_CHECK(rule.split != '\t', InvalidArgument, "{}: split must not be a tab, which is between values of a line",
           where);
  if (format.lines != Lines::kLibsvm) return;
  for (const ColumnRef& column : rule.columns) {
    PairColumn pair;
    pair_column(column.number, column.name, &pair);
    AB_CHECK(pair.is_list() == (rule.split == ' '), InvalidArgument, "{}: {}", where,
             pair.is_list() ? fmt::format("column \"{}\" is a list: add split=\" \"", column.name)
                            : "only the columns \"index\" and \"value\" are lists with split=\" \"");
  }
}

// The value that stands for an absent one: 0 for a pair, as in other programs for libsvm files. A slot has at least one
// value, so an empty text was in no line.
void add_absent(const RowFormat& format, ColumnRule* rule, Transform* transform) {
  const bool filled = std::any_of(transform->steps.begin(), transform->steps.end(),
                                  [](const Step& step) { return step.op == Step::Op::kMissing; });
  const bool text = transform->type == Transform::Type::kText;
  const bool pairs = std::all_of(rule->columns.begin(), rule->columns.end(), [](const ColumnRef& column) {
    PairColumn pair;
    return pair_column(column.number, column.name, &pair) && pair.part >= PairColumn::Part::kOne;
  });
  if (filled) return;
  if (format.lines == Lines::kMultiSlot && text) rule->required = true;
  if (format.lines == Lines::kLibsvm && text && !pairs) rule->required = true;
  if (format.lines == Lines::kLibsvm && !text && pairs) {
    transform->steps.insert(transform->steps.begin(), {.op = Step::Op::kAbsent});
  }
}

char character_of(const Json& object, const char* key, const std::string& where) {
  const std::string text = text_of(object.at(key), where, key);
  AB_CHECK(text.size() == 1 && text != "\"" && text != "\n" && text != "\r" && text[0] != 0, InvalidArgument,
           "{}: {} must be a single character of ASCII, and neither a quote nor an end of line, got {}", where, key,
           object.at(key).dump());
  return text[0];
}

// Columns, type and steps, of a feature or of a part of a cross.
void read_value(const Json& object, const std::string& where, const RowFormat& format, ColumnRule* rule) {
  const std::string type = text_of(member(object, "type", where), where, "type");
  auto transform = std::make_shared<Transform>();
  transform->type = static_cast<Transform::Type>(one_of(type, kTypes, where, "type"));
  transform->strict = true;
  rule->columns = columns_of(object, where, format);
  if (object.contains("split")) rule->split = character_of(object, "split", where);
  check_split(*rule, where, format);
  if (object.contains("values")) {
    AB_CHECK(rule->split, InvalidArgument, "{}: values is the length of a list: split must be given, too", where);
    rule->values = whole_of(object.at("values"), where, "values", 1, kMostColumns);
  }
  if (object.contains("steps")) {
    for (const Json& step : list_of(object, "steps", where)) add_step(step, where, rule, transform.get());
  }
  add_absent(format, rule, transform.get());
  rule->transform = std::move(transform);
}

void read_cross(const Json& feature, const std::string& where, const RowFormat& format, ColumnRule* rule) {
  for (const Json& part : list_of(feature, "cross", where)) {
    const std::string here = fmt::format("{}: part {} of the cross", where, rule->parts.size());
    check_keys(part, {"type", "columns", "steps"}, here);
    ColumnRule one;
    read_value(part, here, format, &one);
    AB_CHECK(one.columns.size() == 1, InvalidArgument, "{}: it must have one column, got {}", here, one.columns.size());
    AB_CHECK(!one.transform->gives_float(), InvalidArgument,
             "{}: it must be text or an id, got a number: bucketize gives an id", here);
    rule->parts.push_back(std::move(one));
  }
  AB_CHECK(rule->parts.size() >= 2, InvalidArgument, "{}: a cross must have at least two parts, got {}", where,
           rule->parts.size());
  const Json& hash = list_of(feature, "hash", where);
  AB_CHECK(hash.size() == 2, InvalidArgument, "{}: hash must be [buckets, salt], got {}", where, hash.dump());
  rule->hash = buckets_of(hash[0], where);
  rule->cross_salt = salt_of(text_of(hash[1], where, "the salt"));
}

ColumnRule read_feature(const Json& feature, size_t index, const RowFormat& format) {
  const std::string name =
      text_of(member(feature, "name", fmt::format("feature {}", index)), fmt::format("feature {}", index), "name");
  const std::string where = fmt::format("feature {}", name);
  ColumnRule rule;
  rule.slot = name;
  if (feature.contains("cross")) {
    check_keys(feature, {"name", "cross", "hash"}, where);
    read_cross(feature, where, format, &rule);
  } else {
    check_keys(feature, {"name", "type", "columns", "split", "values", "steps", "label"}, where);
    if (feature.contains("label")) flag_of(feature.at("label"), where, "label");
    read_value(feature, where, format, &rule);
  }
  return rule;
}

// The kind of the lines.
void read_lines(const Json& schema, const std::string& where, RowFormat* format) {
  const std::vector<std::string> kinds = {"columns", "libsvm", "multislot"};  // in the order of Lines
  if (schema.contains("lines")) {
    const std::string kind = text_of(schema.at("lines"), where, "lines");
    format->lines = static_cast<Lines>(one_of(kind, kinds, where, "lines"));
  }
  if (format->lines == Lines::kColumns) {
    check_keys(schema, {"version", "lines", "separator", "header", "ragged", "features"}, where);
    format->separator = character_of(schema, "separator", where);
    format->header = flag_of(member(schema, "header", where), where, "header");
    format->ragged = flag_of(member(schema, "ragged", where), where, "ragged");
    return;
  }
  for (const char* key : {"separator", "header", "ragged"}) {
    AB_CHECK(!schema.contains(key), InvalidArgument, "schema: {} lines have no {}, which is of files of columns",
             schema.at("lines").get<std::string>(), key);
  }
  format->separator = ' ';
  if (format->lines == Lines::kLibsvm) return check_keys(schema, {"version", "lines", "features"}, where);
  check_keys(schema, {"version", "lines", "slots", "features"}, where);
  std::set<std::string> names;
  for (const Json& slot : list_of(schema, "slots", where)) {
    format->slots.push_back(text_of(slot, where, "the name of a slot"));
    AB_CHECK(names.insert(format->slots.back()).second, InvalidArgument, "schema: two slots have the name {}",
             format->slots.back());
  }
  AB_CHECK(!names.empty(), InvalidArgument, "schema: slots must name the slots of a line in their order, got none");
}

}  // namespace

bool is_schema_text(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

RowFormat parse_schema_text(const std::string& text) {
  const std::string where = "schema";
  const Json schema = parse_json(text, where);
  const int64_t version = whole_of(member(schema, "version", where), where, "version", 1, INT32_MAX);
  AB_CHECK(version == kVersion, Unsupported, "schema: this version reads schemas of version {}, got {}", kVersion,
           version);
  RowFormat format;
  format.is_schema = true;
  read_lines(schema, where, &format);
  std::set<std::string> names;
  for (const Json& feature : list_of(schema, "features", where)) {
    format.rules.push_back(read_feature(feature, format.rules.size(), format));
    AB_CHECK(names.insert(format.rules.back().slot).second, InvalidArgument, "schema: there are two features {}",
             format.rules.back().slot);
  }
  return format;
}

std::vector<Feature> features_of(const RowFormat& format) {
  std::vector<Feature> features;
  for (const ColumnRule& rule : format.rules) {
    Feature feature;
    feature.slot.name = rule.slot;
    feature.ids = rule.hash;  // of a cross
    if (rule.parts.empty()) {
      AB_CHECK(rule.transform->gives_float() || rule.transform->gives_id(), InvalidArgument,
               "feature {}: the last step of a text feature must be hash or vocabulary", rule.slot);
      if (rule.transform->gives_float()) feature.slot.dtype = DType::kFloat32;
      feature.slot.dense = !rule.split || rule.values;
      const int64_t columns = rule.split && !rule.values ? 1 : static_cast<int64_t>(rule.columns.size());
      feature.slot.shape = Shape{columns * std::max<int64_t>(rule.values, 1)};
      feature.ids = rule.transform->ids();
    } else {
      feature.slot.dense = true;
    }
    features.push_back(std::move(feature));
  }
  return features;
}

}  // namespace anabranch::data
