#include "settings.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string>
#include <string_view>

#include "failure.h"
#include "fiber.h"

namespace anabranch::simdevice {
namespace {

std::string value_of(const ab_host* host, const char* name) {
  const char* text = host && host->setting ? host->setting(host->self, name) : nullptr;
  return text ? text : "";
}

template <class T> void read(const ab_host* host, const char* name, T least, T most, T* value) {
  const std::string text = value_of(host, name);
  if (text.empty()) return;
  T number{};
  const auto end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  need(error == std::errc() && stop == end && number >= least && number <= most, "FLAGS_", name,
       " must be a number from ", least, " to ", most, ", got \"", text, "\"");
  *value = number;
}

// CUDA_VISIBLE_DEVICES, as GPUs have it: numbers separated by commas, up to the first that is of no device. The
// simulated ones are all alike, so that their number alone is left.
int visible_of(int devices) {
  const char* text = std::getenv("CUDA_VISIBLE_DEVICES");
  if (!text) return devices;
  int visible = 0;
  std::string_view left(text);
  while (!left.empty()) {
    const auto comma = std::min(left.find(','), left.size());
    int number = -1;
    const auto [stop, error] = std::from_chars(left.data(), left.data() + comma, number);
    if (error != std::errc() || stop != left.data() + comma || number < 0 || number >= devices) break;
    ++visible;
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  return visible;
}

Order order_of(const std::string& text) {
  if (text.empty() || text == "random") return Order::kRandom;
  if (text == "earliest") return Order::kEarliest;
  if (text == "latest") return Order::kLatest;
  if (text == "starved") return Order::kStarved;
  fail(AB_INVALID_ARGUMENT, "FLAGS_simdevice_order must be random, earliest, latest or starved, got \"", text, "\"");
}

}  // namespace

Settings read_settings(const ab_host* host) {
  Settings s;
  read(host, "simdevice_devices", 1, 8, &s.devices);
  s.devices = visible_of(s.devices);
  read(host, "simdevice_bytes", uint64_t{1} << 16, uint64_t{1} << 40, &s.bytes);
  read(host, "simdevice_seed", uint64_t{0}, ~uint64_t{0}, &s.seed);
  read(host, "simdevice_patience_ms", int64_t{0}, int64_t{1} << 40, &s.patience_ms);
  int explain = 1;
  read(host, "simdevice_explain_touches", 0, 1, &explain);
  s.explain_touches = explain;
  int compiles = 1;
  read(host, "simdevice_compiles", 0, 1, &compiles);
  s.compiles = compiles;
  int lanes = 1;
  read(host, "simdevice_lanes", 0, 1, &lanes);
  s.lanes = lanes && Fiber::work_here();
  s.order = order_of(value_of(host, "simdevice_order"));
  return s;
}

}  // namespace anabranch::simdevice
