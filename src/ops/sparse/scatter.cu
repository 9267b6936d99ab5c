// Adds rows to rows by ids on devices, using groups made by "group_rows": "scatter", "merge_rows".
#include "ops/device/args_index.h"
#include "ops/device/groups.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct Scatter {
  using Args = ScatterArgs;
  template <class T> struct Body {
    Groups groups;
    const T* x;
    T* y;
    int64_t width, skipped;
    int32_t mode;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / width, j = i % width;
      if (k >= *groups.count || groups.rows[k] == skipped) return;
      T* to = y + groups.rows[k] * width + j;
      if (mode == kScatterReplace) {
        *to = x[groups.order[groups.starts[k + 1] - 1] * width + j];
      } else if (mode == kScatterAddSum) {
        store(to, sum_of(load(*to), groups.sum(x, k, j, width)));
      } else {
        store(to, groups.add(mode == kScatterAdd ? load(*to) : Compute<T>(0), x, k, j, width));
      }
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n * a.width,
                Body<T>{Groups(a.groups), a.x.get<T>(), a.y.get<T>(), a.width, a.skipped, a.mode});
  }
};

struct MergeRows {
  using Args = MergeRowsArgs;
  template <class T> struct Body {
    Groups groups;
    const T* x;
    T* y;
    int64_t* rows_out;
    int64_t width;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / width, j = i % width;
      const bool there = k < *groups.count;
      store(y + i, there ? groups.sum(x, k, j, width) : Compute<T>(0));
      if (j == 0) rows_out[k] = there ? groups.rows[k] : -1;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n * a.width,
                Body<T>{Groups(a.groups), a.x.get<T>(), a.y.get<T>(), a.rows_out.get<int64_t>(), a.width});
  }
};

AB_KERNEL("scatter", Scatter, float, double, half, bfloat16, int32_t, int64_t);
AB_KERNEL("merge_rows", MergeRows, float, double, half, bfloat16, int32_t, int64_t);

}  // namespace anabranch::device
