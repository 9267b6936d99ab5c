#include "writes.h"

#include <cstring>

#include "failure.h"

namespace anabranch::simdevice {
namespace {

constexpr size_t kMostBytes = size_t{1} << 14;
constexpr uint64_t kMostCompared = uint64_t{1} << 21;  // bytes

}  // namespace

bool Writes::begin(int64_t writers) {
  shadows_.clear();
  size_t bytes = 0;
  for (const WrittenRange& range : ranges_) bytes += range.bytes;
  if (bytes > kMostBytes || bytes * static_cast<uint64_t>(writers) > kMostCompared) return false;
  for (const WrittenRange& range : ranges_) {
    shadows_.push_back({{range.at, range.at + range.bytes}, std::vector<Writer>(range.bytes)});
  }
  return true;
}

void Writes::note(const Writer& writer) {
  for (size_t k = 0; k < shadows_.size(); ++k) {
    const WrittenRange& range = ranges_[k];
    Shadow& shadow = shadows_[k];
    if (range.bytes == 0 || memcmp(shadow.bytes.data(), range.at, range.bytes) == 0) continue;
    for (size_t i = 0; i < range.bytes; ++i) {
      if (shadow.bytes[i] == range.at[i]) continue;
      Writer& by = shadow.by[i];
      const bool met = by.lane == writer.lane || by.phase != writer.phase;
      if (by.row >= 0 && (by.row != writer.row || !met)) refuse(by, writer, i, range);
      by = writer;
      shadow.bytes[i] = range.at[i];
    }
  }
}

void Writes::refuse(const Writer& before, const Writer& now, size_t at, const WrittenRange& range) const {
  if (before.row == now.row) {
    fail(AB_FAULT, "lanes ", before.lane, " and ", now.lane, " of ", kernel_, " write byte ", at, " of ", range.bytes,
         " in row ", now.row, ", without a sync between the writes");
  }
  fail(AB_FAULT, "elements or rows ", before.row, " and ", now.row, " of ", kernel_, " write byte ", at, " of ",
       range.bytes);
}

}  // namespace anabranch::simdevice
