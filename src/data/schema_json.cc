#include "data/schema_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/near.h"

namespace anabranch::data {

Json parse_json(const std::string& text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const Json::exception& e) {
    AB_THROW(InvalidArgument, "{}: the text must be JSON: {}", where, e.what());
  }
}

void check_keys(const Json& object, const std::vector<std::string>& keys, const std::string& where) {
  AB_CHECK(object.is_object(), InvalidArgument, "{}: it must be an object, got {}", where, object.dump());
  for (const auto& [key, value] : object.items()) one_of(key, keys, where, "a key");
}

const Json& member(const Json& object, const char* key, const std::string& where) {
  AB_CHECK(object.is_object() && object.contains(key), InvalidArgument, "{}: {} must be given", where, key);
  return object.at(key);
}

const Json& list_of(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key, where);
  AB_CHECK(value.is_array(), InvalidArgument, "{}: {} must be a list, got {}", where, key, value.dump());
  return value;
}

std::string text_of(const Json& value, const std::string& where, const char* what) {
  AB_CHECK(value.is_string(), InvalidArgument, "{}: {} must be text, got {}", where, what, value.dump());
  return value.get<std::string>();
}

bool flag_of(const Json& value, const std::string& where, const char* what) {
  AB_CHECK(value.is_boolean(), InvalidArgument, "{}: {} must be true or false, got {}", where, what, value.dump());
  return value.get<bool>();
}

int64_t whole_of(const Json& value, const std::string& where, const char* what, int64_t low, int64_t high) {
  AB_CHECK(value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= INT64_MAX),
           InvalidArgument, "{}: {} must be an integer, got {}", where, what, value.dump());
  const auto number = value.get<int64_t>();
  AB_CHECK(number >= low && number <= high, InvalidArgument, "{}: {} must be from {} to {}, got {}", where, what, low,
           high, number);
  return number;
}

double number_of(const Json& value, const std::string& where, const char* what) {
  AB_CHECK(value.is_number(), InvalidArgument, "{}: {} must be a number, got {}", where, what, value.dump());
  const auto number = value.get<double>();
  AB_CHECK(std::isfinite(static_cast<float>(number)), InvalidArgument, "{}: {} must fit a float32, got {}", where, what,
           value.dump());
  return number;
}

uint64_t buckets_of(const Json& value, const std::string& where) {
  return static_cast<uint64_t>(whole_of(value, where, "the number of buckets of hash", 1, INT64_MAX));
}

size_t one_of(const std::string& name, const std::vector<std::string>& names, const std::string& where,
              const char* what) {
  const auto found = std::find(names.begin(), names.end(), name);
  AB_CHECK(found != names.end(), InvalidArgument, "{}: {} must be one of {}, got {}{}", where, what,
           fmt::join(names, ", "), name, near_name(name, names));
  return static_cast<size_t>(found - names.begin());
}

}  // namespace anabranch::data
