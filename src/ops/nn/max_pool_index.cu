// Maxima of windows with their indices on devices: "max_pool_index", "max_pool_index_grad".
#include <limits>

#include "ops/device/args_vision.h"
#include "ops/device/kernels.h"
#include "ops/nn/pool_windows.h"

namespace anabranch::device {

// As in Fluid 1.8.5, NaN is skipped, and a window without elements gives the lowest float32 and -1.
struct MaxPoolIndex {
  using Args = PoolIndexArgs;
  template <class T> struct Body {
    PoolWindows w;
    const T* x;
    T* y;
    int32_t* mask;
    AB_HD void operator()(int64_t i) const {
      const int64_t plane = i / w.outs(), o = i % w.outs();
      const int64_t place[3] = {o / (w.out[1] * w.out[2]), o / w.out[2] % w.out[1], o % w.out[2]};
      int64_t begin[3], end[3], at = -1;
      for (int d = 0; d < 3; ++d) w.range(d, place[d], begin + d, end + d);
      auto best = static_cast<Compute<T>>(std::numeric_limits<float>::lowest());
      for (int64_t a = begin[0]; a < end[0]; ++a) {
        for (int64_t b = begin[1]; b < end[1]; ++b) {
          for (int64_t c = begin[2]; c < end[2]; ++c) {
            const int64_t k = (a * w.in[1] + b) * w.in[2] + c;
            const Compute<T> v = load(x[plane * w.ins() + k]);
            if (!(best < v)) continue;
            best = v;
            at = k;
          }
        }
      }
      store(y + i, best);
      mask[i] = static_cast<int32_t>(at);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const PoolWindows w(a, a.adaptive != 0);
    return each(launch, a.planes * w.outs(), Body<T>{w, a.x.get<T>(), a.y.get<T>(), a.mask.get<int32_t>()});
  }
};

struct MaxPoolIndexGrad {
  using Args = PoolIndexArgs;
  template <class T> struct Body {
    PoolWindows w;
    const T* dout;
    const int32_t* mask;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const int64_t plane = i / w.ins(), own = i % w.ins();
      const int64_t place[3] = {own / (w.in[1] * w.in[2]), own / w.in[2] % w.in[1], own % w.in[2]};
      int64_t first[3], last[3];
      for (int d = 0; d < 3; ++d) w.windows_of(d, place[d], first + d, last + d);
      Compute<T> sum = 0;
      for (int64_t a = first[0]; a <= last[0]; ++a) {
        for (int64_t b = first[1]; b <= last[1]; ++b) {
          for (int64_t c = first[2]; c <= last[2]; ++c) {
            const int64_t o = plane * w.outs() + (a * w.out[1] + b) * w.out[2] + c;
            if (mask[o] == own) sum += load(dout[o]);
          }
        }
      }
      store(dx + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const PoolWindows w(a, a.adaptive != 0);
    return each(launch, a.planes * w.ins(), Body<T>{w, a.x.get<T>(), a.mask_in.get<int32_t>(), a.y.get<T>()});
  }
};

AB_KERNEL("max_pool_index", MaxPoolIndex, float, double, half, bfloat16);
AB_KERNEL("max_pool_index_grad", MaxPoolIndexGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
