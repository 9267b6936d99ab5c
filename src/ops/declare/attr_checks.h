// Checks of attributes that many ops have, for the last argument of attr().
#pragma once
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace anabranch {

inline std::function<void(const std::string&)> one_of(const char* name, std::vector<std::string> values) {
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

}  // namespace anabranch
