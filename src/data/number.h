// Numbers in text, eight digits at a time. The fast functions handle clean text and return everything else; the careful
// ones decide what is a number. If both give a value it is the same one. All may read up to 24 bytes after the number:
// texts have kTextPadding bytes after their end.
#pragma once
#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace anabranch::data {

inline constexpr size_t kTextPadding = 32;

inline uint64_t load_eight(const char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}

// How many of eight bytes, from the first one, are digits. A sum may carry into the byte after a non-digit, which has
// been found already.
inline int digits_in(uint64_t eight) {
  const uint64_t t = eight ^ 0x3030303030303030u;
  const uint64_t other = ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;
  return other ? std::countr_zero(other) >> 3 : 8;
}

// The number that the first n (1 to 8) bytes spell: pairs, then fours, then eights.
inline uint64_t spelled(uint64_t eight, int n) {
  uint64_t v = (eight << (64 - 8 * n)) & 0x0f0f0f0f0f0f0f0fu;
  v = ((v * 2561) >> 8) & 0x00ff00ff00ff00ffu;
  v = ((v * 6553601) >> 16) & 0x0000ffff0000ffffu;
  return (v * 42949672960001u) >> 32;
}

inline constexpr uint64_t kPowersOfTen[9] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};

// Up to 16 digits. Returns the position after the number, or null: not one of these.
inline const char* fast_id(const char* p, uint64_t* value) {
  const uint64_t first = load_eight(p);
  const int n = digits_in(first);
  if (n == 0) return nullptr;
  uint64_t v = spelled(first, n);
  p += n;
  if (n == 8) {
    const uint64_t second = load_eight(p);
    const int m = digits_in(second);
    if (m == 8) return nullptr;
    if (m) v = v * kPowersOfTen[m] + spelled(second, m);
    p += m;
  }
  *value = v;
  return p;
}

// [-]digits[.digits], at most 7 before and 7 after the point. Returns the position after the number, or null. A
// quotient of two numbers that a float (double) holds exactly is rounded once; the double is rounded a second time,
// which is wrong only if it lies in the middle between two floats: then null.
inline const char* fast_float(const char* p, float* value) {
  static constexpr float kTens[8] = {1e0f, 1e1f, 1e2f, 1e3f, 1e4f, 1e5f, 1e6f, 1e7f};
  const bool negative = *p == '-';
  p += negative;
  const uint64_t whole = load_eight(p);
  const int n = digits_in(whole);
  if (n == 0 || n == 8) return nullptr;
  uint64_t v = spelled(whole, n);
  p += n;
  int m = 0;
  if (*p == '.') {
    const uint64_t part = load_eight(p + 1);
    m = digits_in(part);
    if (m == 0 || m == 8) return nullptr;
    v = v * kPowersOfTen[m] + spelled(part, m);
    p += m + 1;
  }
  float f;
  if (v <= (1u << 24)) {
    f = static_cast<float>(v) / kTens[m];
  } else {
    const double d = static_cast<double>(v) / static_cast<double>(kPowersOfTen[m]);
    if ((std::bit_cast<uint64_t>(d) & 0x1fffffff) == 0x10000000) return nullptr;
    f = static_cast<float>(d);
  }
  *value = negative ? -f : f;
  return p;
}

enum class Spelling { kGood, kNone, kRange };

// The whole token as strtoull reads it: an optional sign (a minus wraps), digits. Range: above 2^64 - 1, or below
// -2^63.
Spelling careful_id(std::string_view token, uint64_t* value);
// The whole token as strtof reads it: decimal or hexadecimal (0x), inf, infinity, nan. Range: finite, but above the
// largest float32.
Spelling careful_float(std::string_view token, float* value);

// The shortest text that gives the number again, as Python writes it: 5.0, not 5, and 100000.0, not 1e+05.
template <class T> std::string_view spelled_float(T value, std::string* own) {
  const T size = value < 0 ? -value : value;
  const bool fixed = size == 0 || (size >= T{1e-4} && size < T{1e16});
  char digits[64];
  const auto form = fixed ? std::chars_format::fixed : std::chars_format::scientific;
  own->assign(digits, std::to_chars(digits, digits + sizeof digits, value, form).ptr);
  if (fixed && own->find('.') == std::string::npos) *own += ".0";
  return *own;
}

}  // namespace anabranch::data
