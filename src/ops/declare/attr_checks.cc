#include "ops/declare/attr_checks.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "base/error.h"

namespace anabranch {

std::function<void(const std::string&)> one_of(const char* name, std::vector<std::string> values) {
  return [name, values = std::move(values)](const std::string& v) {
    AB_CHECK(std::find(values.begin(), values.end(), v) != values.end(), InvalidArgument,
             "{} must be one of {}, got {}", name, fmt::join(values, ", "), v);
  };
}

template <class T> std::function<void(const T&)> at_least(const char* name, T low) {
  return [=](const T& v) { AB_CHECK(v >= low, InvalidArgument, "{} must be at least {}, got {}", name, low, v); };
}

template <class T> std::function<void(const T&)> within(const char* name, T low, T high) {
  return [=](const T& v) {
    AB_CHECK(v >= low && v <= high, InvalidArgument, "{} must be from {} to {}, got {}", name, low, high, v);
  };
}

#define AB_INSTANTIATE(T)                                                   \
  template std::function<void(const T&)> at_least(const char* name, T low); \
  template std::function<void(const T&)> within(const char* name, T low, T high)
AB_INSTANTIATE(int32_t);
AB_INSTANTIATE(int64_t);
AB_INSTANTIATE(float);
#undef AB_INSTANTIATE

}  // namespace anabranch
