// Copies along strides, choices and fills on devices, of elements of any type by their size: "copy/<integer>",
// "where/<integer>", "fill/<integer>".
#include "ops/device/args_tensor.h"
#include "ops/device/kernels.h"
#include "ops/device/walk.h"

namespace anabranch::device {

// out = x, operands of axes: out, x. Elements are counted in the order of the axes: neighbours of `out` should be last.
struct Copy {
  using Args = CopyArgs;
  template <class T> struct Body {
    Walk<2> walk;
    const T* x;
    T* out;
    AB_HD void operator()(int64_t i) const {
      int64_t at[2];
      walk.at(i, at);
      out[at[0]] = x[at[1]];
    }
  };
  template <class T> struct Line {  // of one axis at most
    int64_t out_step, x_step;
    const T* x;
    T* out;
    AB_HD void operator()(int64_t i) const { out[i * out_step] = x[i * x_step]; }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const int64_t n = a.axes.count();
    if (n == 0) return 0;  // and the first elements may lie nowhere
    const T* x = a.x.get<T>() + a.x_first;
    T* out = a.out.get<T>() + a.out_first;
    if (a.axes.rank <= 1) return each(launch, n, Line<T>{a.axes.stride[0][0], a.axes.stride[1][0], x, out});
    return each(launch, n, Body<T>{Walk<2>(a.axes), x, out});
  }
};

struct Fill {
  using Args = FillArgs;
  template <class T> struct Body {
    const T* number;
    T value;
    T* y;
    AB_HD void operator()(int64_t i) const { y[i] = number ? *number : value; }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.number.get<T>(), static_cast<T>(a.bits), a.y.get<T>()});
  }
};

struct Where {
  using Args = WhereArgs;
  template <class T> struct Body {
    const bool* condition;
    const T *x, *other;
    T* y;
    int64_t step;
    AB_HD void operator()(int64_t i) const {
      const T* from = condition[i * step] ? x : other;
      y[i] = from ? from[i] : T(0);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.n, Body<T>{a.condition.get<bool>(), a.x.get<T>(), a.other.get<T>(), a.y.get<T>(), a.step});
  }
};

AB_KERNEL("copy", Copy, uint8_t, int16_t, int32_t, int64_t);
AB_KERNEL("where", Where, uint8_t, int16_t, int32_t, int64_t);
AB_KERNEL("fill", Fill, uint8_t, int16_t, int32_t, int64_t);

}  // namespace anabranch::device
