#include "data/number.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

namespace anabranch::data {

Spelling careful_id(std::string_view token, uint64_t* value) {
  const bool negative = !token.empty() && token[0] == '-';
  if (!token.empty() && (negative || token[0] == '+')) token.remove_prefix(1);
  if (token.empty()) return Spelling::kNone;
  uint64_t v = 0;
  const auto [end, error] = std::from_chars(token.data(), token.data() + token.size(), v);
  if (end != token.data() + token.size()) return Spelling::kNone;
  if (error == std::errc::invalid_argument) return Spelling::kNone;
  if (error != std::errc() || (negative && v > uint64_t{1} << 63)) return Spelling::kRange;
  *value = negative ? 0 - v : v;
  return Spelling::kGood;
}

namespace {

bool is_hexadecimal(std::string_view token) {
  return token.size() > 2 && token[0] == '0' && (token[1] == 'x' || token[1] == 'X');
}

// from_chars also reports "out of range" for tiny numbers; those are 0, as in strtof. The position of the leading digit
// and the exponent decide: near the limits the sign of their sum is unambiguous.
bool too_small(std::string_view token, bool hexadecimal) {
  const size_t mark = token.find_first_of(hexadecimal ? "pP" : "eE");
  const std::string_view digits = token.substr(0, mark);
  const size_t point = std::min(digits.find('.'), digits.size());
  const size_t leading = digits.find_first_not_of("0.");
  if (leading == std::string_view::npos) return true;
  int64_t place = static_cast<int64_t>(point) - static_cast<int64_t>(leading);
  if (hexadecimal) place *= 4;
  if (mark == std::string_view::npos) return place < 0;
  std::string_view exponent = token.substr(mark + 1);
  const bool negative = exponent[0] == '-';
  if (negative || exponent[0] == '+') exponent.remove_prefix(1);
  int64_t power = 0;
  for (const char digit : exponent) power = std::min<int64_t>(power * 10 + (digit - '0'), int64_t{1} << 40);
  return place + (negative ? -power : power) < 0;
}

}  // namespace

Spelling careful_float(std::string_view token, float* value) {
  const bool negative = !token.empty() && token[0] == '-';
  if (!token.empty() && (negative || token[0] == '+')) token.remove_prefix(1);
  const bool hexadecimal = is_hexadecimal(token);
  if (hexadecimal) token.remove_prefix(2);
  if (token.empty() || token[0] == '-' || token[0] == '+') return Spelling::kNone;  // from_chars accepts a minus
  float v = 0;
  const char* const last = token.data() + token.size();
  const auto format = hexadecimal ? std::chars_format::hex : std::chars_format::general;
  const auto [end, error] = std::from_chars(token.data(), last, v, format);
  if (error == std::errc::invalid_argument || end != last) return Spelling::kNone;
  if (hexadecimal && !std::isfinite(v)) return Spelling::kNone;  // "0xinf"
  if (error == std::errc::result_out_of_range) {
    if (!too_small(token, hexadecimal)) return Spelling::kRange;
    v = 0;
  }
  *value = negative ? -v : v;
  return Spelling::kGood;
}

}  // namespace anabranch::data
