// Finds locations that two elements, rows or lanes of a launch write; on a GPU, either write may be the last. It
// compares the memory that a launch may write before and after each element, row or lane, so it checks only small
// launches. It misses writes that do not change the value, and memory whose address a kernel reads from device memory.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace anabranch::simdevice {

struct WrittenRange {  // where the CPU finds it
  const char* at;
  size_t bytes;
};

class Writes {
 public:
  struct Writer {
    int64_t row = -1, lane = 0;  // an element is a row of one lane
    int64_t phase = 0;           // of a row: how often its lanes have met
  };

  // ranges: what the kernel may write, and all may not add to; some are known only as it runs.
  Writes(const std::vector<WrittenRange>& ranges, const std::string& kernel) : ranges_(ranges), kernel_(kernel) {}

  bool begin(int64_t writers);      // of one launch; whether there are few enough to look at
  void note(const Writer& writer);  // it has run; AB_FAULT when it wrote where another one had

 private:
  struct Shadow {
    std::vector<char> bytes;
    std::vector<Writer> by;
  };

  [[noreturn]] void refuse(const Writer& before, const Writer& now, size_t at, const WrittenRange& range) const;

  const std::vector<WrittenRange>& ranges_;
  const std::string& kernel_;
  std::vector<Shadow> shadows_;  // of each range
};

}  // namespace anabranch::simdevice
