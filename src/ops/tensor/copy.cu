// Strided copies, selections and fills on devices, for elements of any type by their size: "copy/<integer>",
// "where/<integer>", "fill/<integer>".
#include "ops/device/args_tensor.h"
#include "ops/device/kernels.h"
#include "ops/device/pack.h"
#include "ops/device/walk.h"

namespace anabranch::device {

// out = x, operands of axes: out, x. Elements are counted in the order of the axes: adjacent elements of `out` should
// be last.
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
  template <class T> struct Line {  // of at most one axis
    int64_t out_step, x_step;
    const T* x;
    T* out;
    AB_HD void operator()(int64_t i) const { out[i * out_step] = x[i * x_step]; }
  };
  template <class T> static int elements(const Launch& launch, const Axes<2>& axes, const T* x, T* out) {
    const int64_t n = axes.count();
    if (axes.rank <= 1) return each(launch, n, Line<T>{axes.stride[0][0], axes.stride[1][0], x, out});
    return each(launch, n, Body<T>{Walk<2>(axes), x, out});
  }
  // Whether elements form packs of this size at aligned addresses; then `axes` are those of packs.
  static bool pack(int64_t count, Axes<2>* axes) {
    const int last = axes->rank - 1;
    if (last < 0 || axes->extent[last] % count != 0) return false;
    for (int k = 0; k < 2; ++k) {
      for (int axis = 0; axis < last; ++axis) {
        if (axes->stride[k][axis] % count != 0) return false;
      }
      if (axes->stride[k][last] != 1) return false;
    }
    axes->extent[last] /= count;
    for (int k = 0; k < 2; ++k) {
      for (int axis = 0; axis < last; ++axis) axes->stride[k][axis] /= count;
    }
    return true;
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.axes.count() == 0) return 0;  // the first elements may be out of bounds
    const T* x = a.x.get<T>() + a.x_first;
    T* out = a.out.get<T>() + a.out_first;
    using Packed = Pack<uint64_t, 2>;
    Axes<2> packs = a.axes;
    if (packed<Packed>(x) && packed<Packed>(out) && pack(sizeof(Packed) / sizeof(T), &packs))
      return elements(launch, packs, reinterpret_cast<const Packed*>(x), reinterpret_cast<Packed*>(out));
    return elements(launch, a.axes, x, out);
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
