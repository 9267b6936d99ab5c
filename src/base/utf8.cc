#include "base/utf8.h"

namespace anabranch {
namespace {

// Bytes that follow the first one of a UTF-8 sequence; -1: nothing starts so.
int following(unsigned char c) {
  if (c < 0x80) return 0;
  return c >= 0xc2 && c < 0xe0 ? 1 : c >= 0xe0 && c < 0xf0 ? 2 : c >= 0xf0 && c < 0xf5 ? 3 : -1;
}

// Overlong forms, surrogates and what lies beyond U+10FFFF differ from good text in the second byte.
bool second_fits(unsigned char first, unsigned char second) {
  const unsigned char least = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned char most = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  return second >= least && second <= most;
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  for (size_t i = 0; i < bytes.size();) {
    const auto first = static_cast<unsigned char>(bytes[i++]);
    const int more = following(first);
    if (more < 0 || i + more > bytes.size()) return false;
    for (int k = 0; k < more; ++k, ++i) {
      const auto c = static_cast<unsigned char>(bytes[i]);
      if (k == 0 ? !second_fits(first, c) : (c & 0xc0) != 0x80) return false;
    }
  }
  return true;
}

}  // namespace anabranch
