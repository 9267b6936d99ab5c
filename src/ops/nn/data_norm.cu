// Normalization by statistics that are parameters, on devices: "data_norm", with "_grad".
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/kernels.h"

namespace anabranch::device {

struct NormSlots {
  int64_t columns, slot;
  explicit NormSlots(const DataNormArgs& a) : columns(a.columns), slot(a.slot) {}
  // Whether a row shows the slot of a column.
  template <class T> AB_HD bool shown(const T* row, int64_t column) const {
    return slot == 0 || std::abs(static_cast<double>(load(row[column / slot * slot]))) > 1e-7;
  }
};

struct DataNorm {
  using Args = DataNormArgs;
  template <class T> struct Statistics {
    const T *size, *sum, *square;
    T *means, *scales;
    AB_HD void operator()(int64_t k) const {
      store(means + k, load(sum[k]) / load(size[k]));
      store(scales + k, std::sqrt(load(size[k]) / load(square[k])));
    }
  };
  template <class T> struct Normalize {
    NormSlots slots;
    const T *x, *means, *scales, *scale_w, *bias;
    T* y;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i % slots.columns;
      const bool shown = slots.shown(x + (i - k), k);
      const Compute<T> v = shown ? (load(x[i]) - load(means[k])) * load(scales[k]) : Compute<T>(0);
      store(y + i, scale_w ? v * load(scale_w[k]) + load(bias[k]) : v);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    T *means = a.means.get<T>(), *scales = a.scales.get<T>();
    const Statistics<T> statistics{a.size.get<T>(), a.sum.get<T>(), a.square.get<T>(), means, scales};
    if (const int failed = each(launch, a.columns, statistics)) return failed;
    return each(
        launch, a.rows * a.columns,
        Normalize<T>{NormSlots(a), a.x.get<T>(), means, scales, a.scale_w.get<T>(), a.bias.get<T>(), a.y.get<T>()});
  }
};

struct DataNormGrad {
  using Args = DataNormArgs;
  template <class T> struct Gains {  // contributions of a batch to the statistics of a column
    NormSlots slots;
    const T *x, *means, *scales, *dy;
    T *dsize, *dsum, *dsquare, *dscale_w, *dbias;
    int64_t rows;
    double epsilon;
    template <class L> AB_HD void operator()(const L& lanes, int64_t k) const {
      const double mean = static_cast<double>(load(means[k])), scale = static_cast<double>(load(scales[k]));
      double size = 0, sum = 0, square = 0, by_scale = 0, by_bias = 0;
      for (int64_t r = lanes.index(); r < rows; r += lanes.count()) {
        const T* row = x + r * slots.columns;
        const double g = static_cast<double>(load(dy[r * slots.columns + k]));
        by_bias += g;
        if (!slots.shown(row, k)) continue;
        const double value = static_cast<double>(load(row[k])), far = value - mean;
        size += 1;
        sum += value;
        square += far * far;
        by_scale += g * (far * scale);
      }
      size = lanes.sum(size), sum = lanes.sum(sum), square = lanes.sum(square);
      by_scale = lanes.sum(by_scale), by_bias = lanes.sum(by_bias);
      if (lanes.index() != 0) return;
      if (slots.slot != 0 && size >= 1) {  // means over the rows that show the slot
        sum /= size;
        square = square / size + size * epsilon;
        size = 1;
      } else {
        square += size * epsilon;
      }
      leave(dsize, k, size);
      leave(dsum, k, sum);
      leave(dsquare, k, square);
      leave(dscale_w, k, by_scale);
      leave(dbias, k, by_bias);
    }
    AB_HD static void leave(T* to, int64_t k, double v) {
      if (to) store(to + k, static_cast<Compute<T>>(v));
    }
  };
  template <class T> struct OfX {  // also where the slot is not shown, as in Fluid 1.8.5
    const T *dy, *scales, *scale_w;
    T* dx;
    int64_t columns;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i % columns;
      const Compute<T> v = load(dy[i]) * load(scales[k]);
      store(dx + i, scale_w ? v * load(scale_w[k]) : v);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const T *dy = a.dy.get<T>(), *scales = a.scales_in.get<T>();
    const Gains<T> gains{
        NormSlots(a),    a.x.get<T>(),       a.means_in.get<T>(), scales,           dy,     a.dsize.get<T>(),
        a.dsum.get<T>(), a.dsquare.get<T>(), a.dscale_w.get<T>(), a.dbias.get<T>(), a.rows, a.epsilon};
    if (const int failed = rows(launch, a.columns, a.rows, gains)) return failed;
    if (!a.y.there()) return 0;
    return each(launch, a.rows * a.columns, OfX<T>{dy, scales, a.scale_w.get<T>(), a.y.get<T>(), a.columns});
  }
};

AB_KERNEL("data_norm", DataNorm, float, double, half, bfloat16);
AB_KERNEL("data_norm_grad", DataNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
