// Names the purpose of a device allocation, so that an out-of-memory error can list the largest users.
#pragma once
#include <functional>
#include <string>
#include <utility>

namespace anabranch::device {

// Applies to allocations of this thread during the object's lifetime. The text is built only when an allocation needs
// it.
class Purpose {
 public:
  explicit Purpose(std::function<std::string()> text);
  ~Purpose();
  Purpose(const Purpose&) = delete;

  static std::string now();  // the innermost one

 private:
  const std::function<std::string()> text_;
  const Purpose* const around_;
};

}  // namespace anabranch::device
