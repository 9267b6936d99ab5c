// Attribute checks that many ops share, for the last argument of attr().
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace anabranch {

std::function<void(const std::string&)> one_of(const char* name, std::vector<std::string> values);
// T: int32_t, int64_t, float.
template <class T> std::function<void(const T&)> at_least(const char* name, T low);
template <class T> std::function<void(const T&)> within(const char* name, T low, T high);

}  // namespace anabranch
