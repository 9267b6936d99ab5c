#include "base/counted.h"

#include <fmt/format.h>

namespace anabranch {

std::string counted(int64_t number, std::string_view noun, std::string_view plural) {
  if (number == 1) return fmt::format("1 {}", noun);
  return plural.empty() ? fmt::format("{} {}s", number, noun) : fmt::format("{} {}", number, plural);
}

}  // namespace anabranch
