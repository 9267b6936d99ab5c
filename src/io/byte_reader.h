// Walks over bytes that may be damaged: every step is checked against what is left, and every error names the
// variable and file (`what`) and the byte at which it was found.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"

namespace anabranch::io {

class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  const std::string& what() const { return what_; }
  std::string here() const { return fmt::format("at byte {}", at_); }
  uint64_t left() const { return bytes_.size() - at_; }
  bool done() const { return at_ == bytes_.size(); }
  std::string_view rest() const { return bytes_.substr(at_); }

  std::string_view take(uint64_t count, const char* part) {
    AB_CHECK(count <= left(), InvalidArgument, "{}: too few bytes: {} takes {}, {} are left ({})", what_, part, count,
             left(), here());
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  template <class T> T get(const char* part) {
    T value;
    std::memcpy(&value, take(sizeof value, part).data(), sizeof value);
    return value;
  }

  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = get<uint8_t>("a number");
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    AB_THROW(InvalidArgument, "{}: a number is longer than 10 bytes ({})", what_, here());
  }

 private:
  std::string_view bytes_;
  std::string what_;
  size_t at_ = 0;
};

}  // namespace anabranch::io
