// Normalisation of each row by itself on devices: "layer_norm", "layer_norm_grad".
#include <cmath>

#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {

struct LayerNorm {
  using Args = LayerNormArgs;
  template <class T> struct Body {
    const T* x;
    const Compute<T>*scale, *bias;
    T* y;
    Compute<T>*mean, *variance;
    int64_t width;
    Compute<T> epsilon;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const T* from = x + row * width;
      double sum = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) sum += static_cast<double>(load(from[i]));
      const double count = static_cast<double>(width);
      const auto m = static_cast<Compute<T>>(width ? lanes.sum(sum) / count : 0);
      double squares = 0;
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
        const Compute<T> off = load(from[i]) - m;
        squares += static_cast<double>(off * off);
      }
      const auto v = static_cast<Compute<T>>(width ? lanes.sum(squares) / count : 0);
      const Compute<T> inv = 1 / std::sqrt(v + epsilon);
      for (int64_t i = lanes.index(); i < width; i += lanes.count()) {
        const Compute<T> hat = (load(from[i]) - m) * inv, scaled = scale ? hat * scale[i] : hat;
        store(y + row * width + i, bias ? scaled + bias[i] : scaled);
      }
      if (lanes.index() != 0) return;
      mean[row] = m;
      variance[row] = v;
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    using P = Compute<T>;
    return rows(launch, a.rows, a.width,
                Body<T>{a.x.get<T>(), a.scale.get<P>(), a.bias.get<P>(), a.y.get<T>(), a.mean.get<P>(),
                        a.variance.get<P>(), a.width, static_cast<P>(a.epsilon)});
  }
};

// dx = inv (h - mean(h) - xhat mean(h xhat)) with h = dy scale; dscale = the sums of dy xhat, dbias of dy.
struct LayerNormGrad {
  using Args = LayerNormArgs;
  template <class T> struct Operands {
    const T *x, *dy;
    const Compute<T>*scale, *mean, *variance;
    int64_t width;
    Compute<T> epsilon;
    explicit Operands(const Args& a)
        : x(a.x.get<T>()),
          dy(a.dy.get<T>()),
          scale(a.scale.get<Compute<T>>()),
          mean(a.mean_in.get<Compute<T>>()),
          variance(a.variance_in.get<Compute<T>>()),
          width(a.width),
          epsilon(static_cast<Compute<T>>(a.epsilon)) {}
    AB_HD Compute<T> inverse(int64_t row) const { return 1 / std::sqrt(variance[row] + epsilon); }
    AB_HD Compute<T> hat(int64_t row, int64_t i, Compute<T> inv) const {
      return (load(x[row * width + i]) - mean[row]) * inv;
    }
    AB_HD Compute<T> h(int64_t row, int64_t i) const {
      const Compute<T> d = load(dy[row * width + i]);
      return scale ? d * scale[i] : d;
    }
  };
  template <class T> struct Rows {
    Operands<T> o;
    T* dx;
    template <class L> AB_HD void operator()(const L& lanes, int64_t row) const {
      const Compute<T> inv = o.inverse(row);
      double sum = 0, products = 0;
      for (int64_t i = lanes.index(); i < o.width; i += lanes.count()) {
        const Compute<T> h = o.h(row, i);
        sum += static_cast<double>(h);
        products += static_cast<double>(h * o.hat(row, i, inv));
      }
      const double count = static_cast<double>(o.width);
      const auto mean_h = static_cast<Compute<T>>(lanes.sum(sum) / count);
      const auto slope = static_cast<Compute<T>>(lanes.sum(products) / count);
      for (int64_t i = lanes.index(); i < o.width; i += lanes.count()) {
        store(dx + row * o.width + i, inv * (o.h(row, i) - mean_h - o.hat(row, i, inv) * slope));
      }
    }
  };
  template <class T, bool kOfScale> struct Columns {
    using Wide = double;
    Operands<T> o;
    Compute<T>* to;
    AB_HD static Wide start() { return 0; }
    AB_HD static Wide join(Wide a, Wide b) { return a + b; }
    AB_HD Wide at(int64_t column, int64_t row) const {
      const Compute<T> d = load(o.dy[row * o.width + column]);
      return static_cast<double>(kOfScale ? d * o.hat(row, column, o.inverse(row)) : d);
    }
    AB_HD void put(int64_t column, Wide total) const { to[column] = static_cast<Compute<T>>(total); }
  };
  template <class T> static size_t room(const Args& a) {
    return a.mean.there() || a.variance.there() ? fold_room<double>(a.width, a.rows, Neighbours::kRows) : 0;
  }
  template <class T, bool kOfScale> static int columns(const Launch& launch, const Args& a) {
    const DeviceOut to = kOfScale ? a.mean : a.variance;
    if (!to.there()) return 0;
    return fold_rows(launch, a.width, a.rows, Neighbours::kRows,
                     Columns<T, kOfScale>{Operands<T>(a), to.get<Compute<T>>()}, launch.workspace.get<double>());
  }
  template <class T> static int run(const Launch& launch, const Args& a) {
    if (a.y.there()) {
      if (const int failed = rows(launch, a.rows, a.width, Rows<T>{Operands<T>(a), a.y.get<T>()})) return failed;
    }
    if (const int failed = columns<T, true>(launch, a)) return failed;
    return columns<T, false>(launch, a);
  }
};

AB_KERNEL("layer_norm", LayerNorm, float, double, half, bfloat16);
AB_KERNEL("layer_norm_grad", LayerNormGrad, float, double, half, bfloat16);

}  // namespace anabranch::device
