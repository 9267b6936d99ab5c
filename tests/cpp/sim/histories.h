// The histories that are run, as ANABRANCH_FIRST_SEED and ANABRANCH_HISTORIES say.
#pragma once
#include <cstdint>
#include <cstdlib>

namespace anabranch::ps::sim {

inline uint64_t number_of(const char* variable, uint64_t otherwise) {
  const char* given = std::getenv(variable);
  return given ? std::strtoull(given, nullptr, 10) : otherwise;
}

inline uint64_t first_seed() { return number_of("ANABRANCH_FIRST_SEED", 1); }
inline uint64_t histories(uint64_t otherwise) { return number_of("ANABRANCH_HISTORIES", otherwise); }

}  // namespace anabranch::ps::sim
