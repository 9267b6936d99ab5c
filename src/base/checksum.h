// A checksum of bytes that arrive in parts of any size. Every change of up to 8 adjacent bytes changes it, and any
// other damage does with a probability of 1 - 2^-64; it does not protect against forgery.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace anabranch {

class Checksum {
 public:
  void add(std::string_view bytes) {
    size_ += bytes.size();
    if (have_ > 0) {  // completes the last word
      const size_t more = std::min(bytes.size(), sizeof(word_) - have_);
      std::memcpy(reinterpret_cast<char*>(&word_) + have_, bytes.data(), more);
      have_ += more;
      bytes.remove_prefix(more);
      if (have_ < sizeof(word_)) return;
      mix(word_);
      have_ = 0;
    }
    for (; bytes.size() >= sizeof(word_); bytes.remove_prefix(sizeof(word_))) {
      uint64_t word;
      std::memcpy(&word, bytes.data(), sizeof(word));
      mix(word);
    }
    word_ = 0;
    have_ = bytes.size();
    if (have_ > 0) std::memcpy(&word_, bytes.data(), have_);
  }
  // Of all bytes so far; never 0.
  uint64_t value() const {
    Checksum last = *this;
    if (have_ > 0) last.mix(word_);
    last.mix(size_);
    return (last.h_ ^ (last.h_ >> 29)) | (last.h_ == 0);
  }

 private:
  void mix(uint64_t word) {
    h_ = (h_ ^ word) * 0xff51afd7ed558ccdu;
    h_ ^= h_ >> 32;
  }

  uint64_t h_ = 0x9e3779b97f4a7c15u, size_ = 0, word_ = 0;
  size_t have_ = 0;  // bytes of word_
};

}  // namespace anabranch
