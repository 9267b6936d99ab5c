// Checked access to the JSON of a schema. All functions throw InvalidArgument, which names the place (`where`) and what
// (`what`) is wrong there.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace anabranch::data {

using Json = nlohmann::json;

Json parse_json(const std::string& text, const std::string& where);

// `object` must be an object with these keys only.
void check_keys(const Json& object, const std::vector<std::string>& keys, const std::string& where);
const Json& member(const Json& object, const char* key, const std::string& where);
const Json& list_of(const Json& object, const char* key, const std::string& where);

std::string text_of(const Json& value, const std::string& where, const char* what);
bool flag_of(const Json& value, const std::string& where, const char* what);
int64_t whole_of(const Json& value, const std::string& where, const char* what, int64_t low, int64_t high);
double number_of(const Json& value, const std::string& where, const char* what);  // finite as a float32
uint64_t buckets_of(const Json& value, const std::string& where);

// The position of a name in a list.
size_t one_of(const std::string& name, const std::vector<std::string>& names, const std::string& where,
              const char* what);

}  // namespace anabranch::data
