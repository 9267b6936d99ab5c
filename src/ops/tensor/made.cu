// Tensors made from a few numbers, and triangles of matrices, on devices: "triangle", "eye", "range", "linspace",
// "one_hot/<id>/<to>".
#include "ops/device/args_tensor.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct Triangle {
  using Args = MatrixArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t rows, cols, diagonal;
    bool lower;
    AB_HD void operator()(int64_t i) const {
      const int64_t col = i % cols, on = i / cols % rows + diagonal;  // the column of the diagonal
      y[i] = (lower ? col <= on : col >= on) ? x[i] : T{};
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.count * a.rows * a.cols,
                Body<T>{a.x.get<T>(), a.y.get<T>(), a.rows, a.cols, a.diagonal, (a.flags & 1) != 0});
  }
};

struct Eye {
  using Args = MatrixArgs;
  template <class T> struct Body {
    T* y;
    int64_t cols;
    AB_HD void operator()(int64_t i) const { store(y + i, Compute<T>(i / cols == i % cols)); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.rows * a.cols, Body<T>{a.y.get<T>(), a.cols});
  }
};

struct Range {
  using Args = SequenceArgs;
  template <class T> struct Body {
    const T *start, *step;
    T* y;
    AB_HD void operator()(int64_t i) const { y[i] = static_cast<T>(*start + static_cast<T>(i) * *step); }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.start.get<T>(), a.step.get<T>(), a.y.get<T>()});
  }
};

struct Linspace {
  using Args = SequenceArgs;
  template <class T> struct Body {
    const T *start, *stop;
    T* y;
    int64_t n;
    AB_HD void operator()(int64_t i) const {
      const T step = n > 1 ? (*stop - *start) / static_cast<T>(n - 1) : T(0);
      y[i] = *start + step * static_cast<T>(i);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.start.get<T>(), a.step.get<T>(), a.y.get<T>(), a.n});
  }
};

struct OneHot {
  using Args = OneHotArgs;
  template <class Id, class To> struct Body {
    const Id* ids;
    To* y;
    FaultReport report;
    int64_t depth;
    bool outside_allowed;
    AB_HD void operator()(int64_t i) const {
      const int64_t place = i / depth, column = i % depth, id = ids[place];
      if (column == 0 && !outside_allowed && (id < 0 || id >= depth)) report(1, place);
      store(y + i, Compute<To>(id == column));
    }
  };
  template <class Id, class To> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n * a.depth,
                Body<Id, To>{a.ids.get<Id>(), a.y.get<To>(), FaultReport(a.fault), a.depth, (a.flags & 1) != 0});
  }
};

AB_KERNEL("triangle", Triangle, uint8_t, int16_t, int32_t, int64_t);
AB_KERNEL("eye", Eye, float, double, half, bfloat16, int32_t, int64_t, int16_t, int8_t, uint8_t, bool);
AB_KERNEL("range", Range, float, double, int32_t, int64_t);
AB_KERNEL("linspace", Linspace, float, double);
AB_KERNEL("one_hot", OneHot, Types<int32_t, float>, Types<int64_t, float>, Types<int32_t, double>,
          Types<int64_t, double>, Types<int32_t, half>, Types<int64_t, half>, Types<int32_t, int32_t>,
          Types<int64_t, int32_t>, Types<int32_t, int64_t>, Types<int64_t, int64_t>, Types<int32_t, bool>,
          Types<int64_t, bool>);

}  // namespace anabranch::device
