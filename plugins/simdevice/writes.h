// Finds what kernels write where another element, row or lane of the same launch writes: on a GPU either may be last.
// It compares what a launch may write before and after each of them, so it looks at small launches alone, and a value
// that was there before shows nothing. Nor does memory whose address a kernel finds in device memory.
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
