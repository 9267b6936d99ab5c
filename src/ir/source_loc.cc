#include "ir/source_loc.h"

#include <fmt/format.h>

#include <atomic>

namespace anabranch {
namespace {
std::atomic<SourceLocProvider> provider{nullptr};
}

std::string SourceLoc::str() const {
  if (!known()) return "an unknown place";
  std::string text = fmt::format("{}:{}", file, line);
  if (!function.empty() && function != "<module>") text += fmt::format(" in {}()", function);
  if (!code.empty()) text += ": " + code;
  return text;
}

void set_source_loc_provider(SourceLocProvider p) { provider = p; }

SourceLoc current_source_loc() {
  const SourceLocProvider p = provider;
  return p ? p() : SourceLoc{};
}

}  // namespace anabranch
