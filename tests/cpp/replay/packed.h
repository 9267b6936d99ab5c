// Numbers and texts of a file that tests/trials has packed, one after another; the file is our own.
#pragma once
#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace anabranch::replay {

class Reader {
 public:
  explicit Reader(std::string_view bytes) : left_(bytes) {}
  bool done() const { return left_.empty(); }
  uint32_t number() {
    AB_CHECK(left_.size() >= sizeof(uint32_t), InvalidArgument, "the file ends in a number");
    uint32_t n;
    std::memcpy(&n, left_.data(), sizeof n);
    left_.remove_prefix(sizeof n);
    return n;
  }
  std::string_view text() {
    const size_t size = number();
    AB_CHECK(left_.size() >= size, InvalidArgument, "the file ends in a text of {} bytes", size);
    const std::string_view found = left_.substr(0, size);
    left_.remove_prefix(size);
    return found;
  }

 private:
  std::string_view left_;
};

}  // namespace anabranch::replay
