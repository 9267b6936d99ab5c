// RowGroups with their pointers resolved, for kernel bodies.
#pragma once
#include "ops/device/args_update.h"
#include "ops/device/lanes.h"

namespace anabranch::device {

template <class C> AB_HD C sum_of(C a, C b) {  // integers wrap around
  if constexpr (std::is_integral_v<C>)
    return static_cast<C>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

struct Groups {
  const int64_t *rows, *starts;
  const int32_t* order;
  const int64_t* count;
  explicit Groups(const RowGroups& g)
      : rows(g.rows.get<int64_t>()),
        starts(g.starts.get<int64_t>()),
        order(g.order.get<int32_t>()),
        count(g.count.get<int64_t>()) {}

  // Adds the values of group k in column j to `total`, in order of occurrence.
  template <class T>
  AB_HD Compute<T> add(Compute<T> total, const T* values, int64_t k, int64_t j, int64_t width) const {
    for (int64_t i = starts[k]; i < starts[k + 1]; ++i) total = sum_of(total, load(values[order[i] * width + j]));
    return total;
  }
  template <class T> AB_HD Compute<T> sum(const T* values, int64_t k, int64_t j, int64_t width) const {
    Compute<T> total = load(values[order[starts[k]] * width + j]);
    for (int64_t i = starts[k] + 1; i < starts[k + 1]; ++i) total = sum_of(total, load(values[order[i] * width + j]));
    return total;
  }
  // Many lanes sum large groups: for n in [0, long_groups(values)), long_group(n) is a large group, each of them once,
  // or -1.
  static constexpr int64_t kLong = 128;
  static int64_t long_groups(int64_t values) { return values / kLong + 1; }
  AB_HD bool is_long(int64_t k) const { return starts[k + 1] - starts[k] > kLong; }
  AB_HD int64_t long_group(int64_t n) const {
    const int64_t place = n * kLong;  // a large group contains at least one such index; the first one identifies it
    int64_t from = 0, to = *count;
    while (from < to) {
      const int64_t middle = (from + to) / 2;
      if (starts[middle + 1] <= place)
        from = middle + 1;
      else
        to = middle;
    }
    return from < *count && is_long(from) && starts[from] <= place && place - kLong < starts[from] ? from : -1;
  }
  template <class T, class L>
  AB_HD Compute<T> sum(const L& lanes, const T* values, int64_t k, int64_t j, int64_t width) const {
    Compute<T> total = 0;
    AB_UNROLL for (int64_t i = starts[k] + lanes.index(); i < starts[k + 1]; i += lanes.count()) {
      total = sum_of(total, load(values[order[i] * width + j]));
    }
    return lanes.sum(total);
  }
  // The group of a row, or -1.
  AB_HD int64_t find(int64_t row) const {
    int64_t from = 0, to = *count;
    while (from < to) {
      const int64_t middle = (from + to) / 2;
      if (rows[middle] < row)
        from = middle + 1;
      else
        to = middle;
    }
    return from < *count && rows[from] == row ? from : -1;
  }
};

}  // namespace anabranch::device
