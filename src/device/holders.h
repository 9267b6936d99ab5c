// Records which purposes hold memory of a device, for the error of a full one. Guarded by the pool that it belongs to.
#pragma once
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

namespace anabranch {
class Error;
}

namespace anabranch::device {

class Holders {
 public:
  void add(const void* block, int64_t bytes, std::string purpose) { held_[block] = {bytes, std::move(purpose)}; }
  void remove(const void* block) { held_.erase(block); }
  // One line for each of the largest purposes, and one for all others.
  void tell(Error* error) const;

 private:
  struct Held {
    int64_t bytes;
    std::string purpose;
  };
  std::unordered_map<const void*, Held> held_;
};

}  // namespace anabranch::device
