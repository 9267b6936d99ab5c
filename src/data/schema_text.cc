#include "data/schema_text.h"

#include <set>

#include "base/error.h"
#include "data/schema_json.h"
#include "data/schema_steps.h"

namespace anabranch::data {
namespace {

constexpr int kVersion = 1;
constexpr int64_t kMostColumns = 100000;

const std::vector<std::string> kTypes = {"text", "number", "integer"};  // in the order of Transform::Type

std::vector<ColumnRef> columns_of(const Json& feature, const std::string& where, bool header) {
  std::vector<ColumnRef> columns;
  for (const Json& column : list_of(feature, "columns", where)) {
    if (column.is_string() && header) {
      columns.push_back({-1, column.get<std::string>(), salt_of(column.get<std::string>())});
      continue;
    }
    AB_CHECK(!column.is_string(), InvalidArgument,
             "{}: columns must be numbers from 0, because the schema has no header, got {}", where, column.dump());
    const int64_t number = whole_of(column, where, "a column", 0, kMostColumns);
    columns.push_back({number, "", static_cast<uint64_t>(number)});
  }
  AB_CHECK(!columns.empty(), InvalidArgument, "{}: there must be at least one column, got none", where);
  return columns;
}

char character_of(const Json& object, const char* key, const std::string& where) {
  const std::string text = text_of(object.at(key), where, key);
  AB_CHECK(text.size() == 1 && text != "\"" && text != "\n" && text != "\r" && text[0] != 0, InvalidArgument,
           "{}: {} must be a single character of ASCII, and neither a quote nor an end of line, got {}", where, key,
           object.at(key).dump());
  return text[0];
}

// Columns, type and steps, of a feature or of a part of a cross.
void read_value(const Json& object, const std::string& where, bool header, ColumnRule* rule) {
  const std::string type = text_of(member(object, "type", where), where, "type");
  auto transform = std::make_shared<Transform>();
  transform->type = static_cast<Transform::Type>(one_of(type, kTypes, where, "type"));
  transform->strict = true;
  rule->columns = columns_of(object, where, header);
  if (object.contains("split")) rule->split = character_of(object, "split", where);
  if (object.contains("steps")) {
    for (const Json& step : list_of(object, "steps", where)) add_step(step, where, rule, transform.get());
  }
  rule->transform = std::move(transform);
}

void read_cross(const Json& feature, const std::string& where, bool header, ColumnRule* rule) {
  for (const Json& part : list_of(feature, "cross", where)) {
    const std::string here = fmt::format("{}: part {} of the cross", where, rule->parts.size());
    check_keys(part, {"type", "columns", "steps"}, here);
    ColumnRule one;
    read_value(part, here, header, &one);
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

ColumnRule read_feature(const Json& feature, size_t index, bool header) {
  const std::string name =
      text_of(member(feature, "name", fmt::format("feature {}", index)), fmt::format("feature {}", index), "name");
  const std::string where = fmt::format("feature {}", name);
  ColumnRule rule;
  rule.slot = name;
  if (feature.contains("cross")) {
    check_keys(feature, {"name", "cross", "hash"}, where);
    read_cross(feature, where, header, &rule);
  } else {
    check_keys(feature, {"name", "type", "columns", "split", "steps"}, where);
    read_value(feature, where, header, &rule);
  }
  return rule;
}

}  // namespace

bool is_schema_text(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string::npos && text[first] == '{';
}

RowFormat parse_schema_text(const std::string& text) {
  const std::string where = "schema";
  const Json schema = parse_json(text, where);
  check_keys(schema, {"version", "separator", "header", "ragged", "features"}, where);
  const int64_t version = whole_of(member(schema, "version", where), where, "version", 1, INT32_MAX);
  AB_CHECK(version == kVersion, Unsupported, "schema: this version reads schemas of version {}, got {}", kVersion,
           version);
  RowFormat format;
  format.is_schema = true;
  format.separator = character_of(schema, "separator", where);
  format.header = flag_of(member(schema, "header", where), where, "header");
  format.ragged = flag_of(member(schema, "ragged", where), where, "ragged");
  std::set<std::string> names;
  for (const Json& feature : list_of(schema, "features", where)) {
    format.rules.push_back(read_feature(feature, format.rules.size(), format.header));
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
      feature.slot.dense = !rule.split;
      feature.slot.shape = Shape{rule.split ? 1 : static_cast<int64_t>(rule.columns.size())};
      feature.ids = rule.transform->ids();
    } else {
      feature.slot.dense = true;
    }
    features.push_back(std::move(feature));
  }
  return features;
}

}  // namespace anabranch::data
