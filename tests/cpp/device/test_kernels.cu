// Kernels that only tests of the simulated device launch.
#include "ops/device/kernels.h"

namespace anabranch::device {

template <class T> struct ScaleBody {
  const T* x;
  T* y;
  Compute<T> scale, offset;
  AB_HD void operator()(int64_t i) const { store(y + i, x ? load(x[i]) * scale + offset : offset); }
};

// y = x * p[0] + p[1]; without x: y = p[1].
struct Scale {
  using Args = MapArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    const auto p = [&](int i) { return static_cast<Compute<T>>(a.p[i]); };
    return each(launch, a.n, ScaleBody<T>{a.x.get<T>(), a.y.get<T>(), p(0), p(1)});
  }
};
AB_KERNEL("test/scale", Scale, float, double, half, bfloat16);

template <class T> struct RowSumBody {
  const T* x;
  T* y;
  int64_t width;
  FaultReport fault;
  template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
    Compute<T> sum{};
    for (int64_t i = lanes.index(); i < width; i += lanes.count()) sum += load(x[row * width + i]);
    sum = lanes.sum(sum);
    if (lanes.index() != 0) return;
    if (sum < 0) fault(3, row);
    store(y + row, sum);
  }
};

// y[row] = the sum of row; a sum below 0 is reported with code 3 and the row.
struct RowSum {
  using Args = RowArgs;
  template <class T> static int run(const Launch& launch, const Args& a) {
    const RowSumBody<T> body{a.x[0].get<T>(), a.y[0].get<T>(), a.width, FaultReport(a.fault)};
    return rows(launch, a.rows, a.width, body);
  }
};
AB_KERNEL("test/row_sum", RowSum, float);

// Squares by way of the workspace: y = x * x.
struct Square {
  using Args = MapArgs;
  template <class T> static size_t room(const Args& a) { return static_cast<size_t>(a.n) * sizeof(T); }
  template <class T> static int run(const Launch& launch, const Args& a) {
    T* between = launch.workspace.get<T>();
    const T* x = a.x.get<T>();
    T* y = a.y.get<T>();
    for (int64_t i = 0; i < a.n; ++i) between[i] = x[i];
    for (int64_t i = 0; i < a.n; ++i) y[i] = between[i] * between[i];
    return 0;
  }
};
AB_KERNEL("test/square", Square, float);

// Writes p[0] bytes past the end of y.
struct Overrun {
  using Args = MapArgs;
  template <class T> static int run(const Launch&, const Args& a) {
    char* y = a.y.get<char>();
    for (int64_t i = 0; i < static_cast<int64_t>(a.p[0]); ++i) y[a.y.count<char>() + i] = 1;
    return 0;
  }
};
AB_KERNEL("test/overrun", Overrun, float);

}  // namespace anabranch::device
