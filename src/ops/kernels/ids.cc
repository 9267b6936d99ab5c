#include "ops/kernels/ids.h"

#include <cmath>
#include <cstring>

namespace anabranch {
namespace {

// Ids that were written as float32 show as huge numbers: the likeliest mistake deserves its name.
std::string float_remark(int64_t id) {
  float pair[2];
  std::memcpy(pair, &id, sizeof(pair));
  const auto plausible = [](float f) { return f == 0.0f || (std::abs(f) >= 1e-6f && std::abs(f) < 1e9f); };
  const int64_t high = id >> 32;
  if (high == 0 || high == -1 || !plausible(pair[0]) || !plausible(pair[1])) return {};
  return fmt::format("; its eight bytes are the two floats {} and {}: are the ids floats?", pair[0], pair[1]);
}

}  // namespace

void check_ids(const char* what, const int64_t* ids, int64_t n, int64_t height, int64_t allowed) {
  for (int64_t i = 0; i < n; ++i) {
    const int64_t id = ids[i];
    if (static_cast<uint64_t>(id) < static_cast<uint64_t>(height) || id == allowed) [[likely]]
      continue;
    AB_THROW(InvalidArgument, "{} of sample {} is {}, expected 0 to {} (table of {} rows){}", what, i, id, height - 1,
             height, float_remark(id));
  }
}

const int64_t* as_int64(const Tensor& t, Tensor* scratch) {
  if (t.dtype() == DType::kInt64) return t.data<int64_t>();
  const int32_t* from = t.data<int32_t>();
  scratch->resize(t.shape(), DType::kInt64);
  int64_t* to = scratch->mutable_data<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i) to[i] = from[i];
  return to;
}

}  // namespace anabranch
