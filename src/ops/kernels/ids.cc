#include "ops/kernels/ids.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace anabranch {
namespace {

template <class T> bool plausible(T x) { return x == 0 || (std::abs(x) >= T(1e-6) && std::abs(x) < T(1e9)); }

// Ids that were written as floats appear as huge integers: the message names this most likely mistake.
std::string float_remark(int64_t id) {
  const int64_t high = id >> 32;
  if (high == 0 || high == -1) return {};
  float pair[2];
  double one;
  std::memcpy(pair, &id, sizeof(pair));
  std::memcpy(&one, &id, sizeof(one));
  const bool is_double = plausible(one), is_whole = is_double && one == std::floor(one);
  const bool is_pair = plausible(pair[0]) && plausible(pair[1]) && !is_whole;
  if (!is_double && !is_pair) return {};
  return fmt::format("; its eight bytes are {}{}{}: are the ids floats?",
                     is_pair ? fmt::format("the two floats {} and {}", pair[0], pair[1]) : "",
                     is_pair && is_double ? ", or " : "", is_double ? fmt::format("the double {}", one) : "");
}

// Whether some id is outside [0, height) and is not `allowed`. Has no branch for each id.
bool any_wrong(const int64_t* ids, int64_t n, uint64_t height, int64_t allowed) {
  int wrong = 0;
  for (int64_t i = 0; i < n; ++i) {
    wrong |= static_cast<int>(static_cast<uint64_t>(ids[i]) >= height) & static_cast<int>(ids[i] != allowed);
  }
  return wrong != 0;
}

// The first id outside [0, height) other than `allowed`, which is not allowed if it is negative; n if there is none.
int64_t first_wrong(const int64_t* ids, int64_t n, int64_t height, int64_t allowed) {
  constexpr int64_t kAtOnce = 512;
  const auto below = static_cast<uint64_t>(height);
  if (allowed < 0 && height <= 0) return 0;
  if (allowed < 0) allowed = 0;  // it is in range anyway
  for (int64_t from = 0; from < n; from += kAtOnce) {
    const int64_t to = std::min(from + kAtOnce, n);
    if (!any_wrong(ids + from, to - from, below, allowed)) continue;
    for (int64_t i = from; i < to; ++i) {
      if (any_wrong(ids + i, 1, below, allowed)) return i;
    }
  }
  return n;
}

std::string argument(const ir::Op& op, const char* slot) {
  const auto& names = op.input(slot);
  return names.empty() ? slot : names[0];
}

// "sample 3", or "sample 3 (its element 1)" where a sample holds several ids.
std::string place(const Tensor& t, int64_t i) {
  int64_t sample = i, first = i;
  bool several = false;
  if (!t.lod().empty() && t.rows() > 0) {
    const auto& o = t.lod().back();
    const int64_t row = i / t.row_elems();
    sample = std::upper_bound(o.begin(), o.end(), row) - o.begin() - 1;
    first = o[static_cast<size_t>(sample)] * t.row_elems();
    several = true;
  } else if (t.rows() > 0 && t.row_elems() > 1) {
    sample = i / t.row_elems();
    first = sample * t.row_elems();
    several = true;
  }
  return several ? fmt::format("sample {} (its element {})", sample, i - first) : fmt::format("sample {}", sample);
}

}  // namespace

IdSource IdSource::of(const ir::Op& op) { return {op.type, argument(op, "Ids"), argument(op, "W")}; }

void check_ids(const char* what, const int64_t* ids, int64_t n, int64_t height, int64_t allowed) {
  const int64_t i = first_wrong(ids, n, height, allowed);
  AB_CHECK(i == n, InvalidArgument, "{} of sample {} is {}, expected 0 to {} (table of {} rows){}", what, i, ids[i],
           height - 1, height, float_remark(ids[i]));
}

void check_table_ids(const IdSource& source, const Tensor& t, const int64_t* ids, int64_t height, int64_t allowed) {
  const int64_t n = t.numel(), i = first_wrong(ids, n, height, allowed);
  AB_CHECK(i == n, InvalidArgument, "{}: feature {}: the id of {} is {}, expected 0 to {} (table {} of {} rows){}",
           source.op, source.feature, place(t, i), ids[i], height - 1, source.table, height, float_remark(ids[i]));
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
