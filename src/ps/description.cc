#include "ps/description.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace anabranch::ps {
namespace {

constexpr int kMostNamed = 3;

std::pair<std::string, std::string> split(const std::string& line) {
  const size_t at = line.find(": ");
  return {line.substr(0, at), at == std::string::npos ? "" : line.substr(at + 2)};
}

std::map<std::string, std::string> by_name(const Description& lines) {
  std::map<std::string, std::string> out;
  for (const std::string& line : lines) out.insert(split(line));
  return out;
}

}  // namespace

std::string differences_of(const Description& one, const Description& other) {
  const auto mine = by_name(one), theirs = by_name(other);
  std::map<std::string, std::pair<std::string, std::string>> all;
  for (const auto& [name, how] : mine) all[name] = {how, "absent"};
  for (const auto& [name, how] : theirs) {
    const auto [it, fresh] = all.try_emplace(name, "absent", how);
    if (!fresh) it->second.second = how;
  }
  std::string out;
  int found = 0;
  for (const auto& [name, both] : all) {
    if (both.first == both.second || ++found > kMostNamed) continue;
    out += fmt::format("{}{} is {}, not {}", out.empty() ? "" : "; ", name, both.first, both.second);
  }
  if (found > kMostNamed) out += fmt::format("; and {} more", found - kMostNamed);
  return out;
}

Description without_counts(const Description& job) {
  Description out;
  std::copy_if(job.begin(), job.end(), std::back_inserter(out), [](const std::string& line) {
    const std::string name = split(line).first;
    return name != "workers" && name != "servers";
  });
  return out;
}

}  // namespace anabranch::ps
