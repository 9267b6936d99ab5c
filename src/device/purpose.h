// What memory of devices is taken for: when a device is full, the error says who holds what.
#pragma once
#include <functional>
#include <string>
#include <utility>

namespace anabranch::device {

// Of what this thread takes while the object lives. The text is asked for when something is taken.
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
