// Rows of recurrences on devices, to the order of steps and back: "gather_rows" and "scatter_rows"; slices of weights,
// "move_block" and "sum_block"; sums over all rows, "column_sums".
#include "ops/device/args_recurrent.h"
#include "ops/device/fold_rows.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct GatherRows {
  using Args = GatherRowsArgs;
  template <class T> struct Body {
    const T* x;
    const int64_t* places;
    const T *first, *bias;
    T* y;
    int64_t width, row_x, row_y;
    bool add;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, column = i % width, place = places ? places[row] : row;
      T found = T(0);
      if (place >= 0)
        found = x[place * row_x + column];
      else if (first)
        found = first[(-1 - place) * width + column];
      if (bias) found += bias[column];
      T* to = y + row * row_y + column;
      *to = add ? *to + found : found;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width,
                Body<T>{a.x.get<T>(), a.places.get<int64_t>(), a.first.get<T>(), a.bias.get<T>(), a.y.get<T>(), a.width,
                        a.row_x, a.row_y, a.add != 0});
  }
};

struct ScatterRows {
  using Args = ScatterRowsArgs;
  template <class T> struct Body {
    const T* x;
    const int64_t* places;
    T* y;
    int64_t width;
    AB_HD void operator()(int64_t i) const { y[places[i / width] * width + i % width] = x[i]; }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.width, Body<T>{a.x.get<T>(), a.places.get<int64_t>(), a.y.get<T>(), a.width});
  }
};

struct MoveBlock {
  using Args = BlockArgs;
  template <class T> struct Body {
    const T* x;
    T *y, more;
    int64_t width, row_x, row_y, step_x;
    bool add;
    AB_HD void operator()(int64_t i) const {
      const int64_t row = i / width, column = i % width;
      const T found = (x ? x[row * row_x + column * step_x] : T(0)) + more;
      T* to = y + row * row_y + column;
      *to = add ? *to + found : found;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(
        launch, a.rows * a.width,
        Body<T>{a.x.get<T>(), a.y.get<T>(), static_cast<T>(a.more), a.width, a.row_x, a.row_y, a.step_x, a.add != 0});
  }
};

struct SumBlock {
  using Args = BlockArgs;
  template <class T> struct Body {
    using Wide = double;
    const T* x;
    T* y;
    int64_t width, row_x;
    bool add;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t, int64_t i) const { return static_cast<Wide>(x[i / width * row_x + i % width]); }
    AB_HD void put(int64_t, Wide total) const { *y = static_cast<T>(add ? static_cast<Wide>(*y) + total : total); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return fold_rows(launch, 1, a.rows * a.width, Neighbors::kElements,
                     Body<T>{a.x.get<T>(), a.y.get<T>(), a.width, a.row_x, a.add != 0}, launch.workspace.get<double>());
  }
  template <class T> static size_t room(const Args& a) {
    return fold_room<double>(1, a.rows * a.width, Neighbors::kElements);
  }
};

struct ColumnSums {
  using Args = ColumnSumsArgs;
  template <class T> struct Body {
    using Wide = double;
    const T *x, *by;
    T* y;
    int64_t row_x, row_by;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t column, int64_t row) const {
      const auto found = static_cast<Wide>(x[row * row_x + column]);
      return by ? found * static_cast<Wide>(by[row * row_by + column]) : found;
    }
    AB_HD void put(int64_t column, Wide total) const { y[column] = static_cast<T>(total); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return fold_rows(launch, a.width, a.rows, Neighbors::kRows,
                     Body<T>{a.x.get<T>(), a.by.get<T>(), a.y.get<T>(), a.row_x, a.row_by},
                     launch.workspace.get<double>());
  }
  template <class T> static size_t room(const Args& a) { return fold_room<double>(a.width, a.rows, Neighbors::kRows); }
};

AB_KERNEL("gather_rows", GatherRows, float, double);
AB_KERNEL("scatter_rows", ScatterRows, float, double);
AB_KERNEL("move_block", MoveBlock, float, double);
AB_KERNEL("sum_block", SumBlock, float, double);
AB_KERNEL("column_sums", ColumnSums, float, double);

}  // namespace anabranch::device
