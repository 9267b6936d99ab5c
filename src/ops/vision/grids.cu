// Images sampled between pixels, and frames shifted in time, on devices: "grid_sample", "affine_grid", with "_grad",
// "shift_frames".
#include "ops/device/args_vision.h"
#include "ops/device/kernels.h"
#include "ops/vision/grid_functions.h"

namespace anabranch::device {

template <class T> struct Sampled {  // images and their sampling positions
  using C = Compute<T>;
  const T *x, *grid;
  int64_t channels, rows, columns;
  explicit Sampled(const GridArgs& a)
      : x(a.x.get<T>()), grid(a.grid.get<T>()), channels(a.channels), rows(a.rows), columns(a.columns) {}
  AB_HD int64_t plane() const { return rows * columns; }
  // For position p, numbered over all images.
  AB_HD vision::Corners<C> corners(int64_t p) const {
    return vision::corners<C>(rows, columns, load(grid[2 * p]), load(grid[2 * p + 1]));
  }
};

struct GridSample {
  using Args = GridArgs;
  template <class T> struct Body {
    Sampled<T> s;
    T* y;
    AB_HD void operator()(int64_t i) const {
      const int64_t plane = i / s.plane() * s.plane();
      const auto c = s.corners(plane / s.channels / s.plane() * s.plane() + i % s.plane());
      Compute<T> sum = 0;
      for (int q = 0; q < 4; ++q) {
        if (c.at[q] >= 0) sum += load(s.x[plane + c.at[q]]) * c.weight[q];
      }
      store(y + i, sum);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.batch * a.channels * a.rows * a.columns, Body<T>{Sampled<T>(a), a.y.get<T>()});
  }
};

struct GridSampleGrad {
  using Args = GridArgs;
  // One thread per plane, so that contributions to a pixel are added in order.
  template <class T> struct OfPlanes {
    Sampled<T> s;
    const T* dout;
    T* dx;
    AB_HD void operator()(int64_t i) const {
      const int64_t first = i * s.plane(), places = i / s.channels * s.plane();
      for (int64_t p = 0; p < s.plane(); ++p) store(dx + first + p, 0);
      for (int64_t p = 0; p < s.plane(); ++p) {
        const auto c = s.corners(places + p);
        for (int q = 0; q < 4; ++q) {
          if (c.at[q] < 0) continue;
          T* to = dx + first + c.at[q];
          store(to, load(*to) + load(dout[first + p]) * c.weight[q]);
        }
      }
    }
  };
  template <class T> struct OfPlaces {
    Sampled<T> s;
    const T* dout;
    T* dgrid;
    AB_HD void operator()(int64_t i) const {
      const auto c = s.corners(i);
      Compute<T> by_x = 0, by_y = 0;
      for (int64_t k = 0; k < s.channels; ++k) {
        const int64_t first = (i / s.plane() * s.channels + k) * s.plane();
        const Compute<T> d = load(dout[first + i % s.plane()]);
        for (int q = 0; q < 4; ++q) {
          if (c.at[q] < 0) continue;
          by_x += d * load(s.x[first + c.at[q]]) * c.by_x[q];
          by_y += d * load(s.x[first + c.at[q]]) * c.by_y[q];
        }
      }
      store(dgrid + 2 * i, by_x);
      store(dgrid + 2 * i + 1, by_y);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    const Sampled<T> s(a);
    const T* dout = a.dout.get<T>();
    if (a.y.there()) {
      if (const int failed = each(launch, a.batch * a.channels, OfPlanes<T>{s, dout, a.y.get<T>()})) return failed;
    }
    return a.dgrid.there() ? each(launch, a.batch * s.plane(), OfPlaces<T>{s, dout, a.dgrid.get<T>()}) : 0;
  }
};

struct AffineGrid {
  using Args = AffineGridArgs;
  template <class T> struct Body {
    const T* theta;
    T* y;
    int64_t rows, columns;
    AB_HD void operator()(int64_t i) const {
      const int64_t k = i / 2 % columns, r = i / 2 / columns % rows;
      const T* m = theta + i / 2 / columns / rows * 6 + i % 2 * 3;
      const auto x = vision::position<Compute<T>>(k, columns), down = vision::position<Compute<T>>(r, rows);
      store(y + i, load(m[0]) * x + load(m[1]) * down + load(m[2]));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.batch * a.rows * a.columns * 2, Body<T>{a.x.get<T>(), a.y.get<T>(), a.rows, a.columns});
  }
};

struct AffineGridGrad {
  using Args = AffineGridArgs;
  template <class T> struct Body {
    const T* dout;
    T* dtheta;
    int64_t rows, columns;
    template <class L> AB_HD void operator()(const L& lanes, int64_t i) const {
      const int64_t places = rows * columns, axis = i / 3 % 2, term = i % 3;
      const T* from = dout + i / 6 * places * 2 + axis;
      double sum = 0;
      for (int64_t p = lanes.index(); p < places; p += lanes.count()) {
        const Compute<T> x = term == 0   ? vision::position<Compute<T>>(p % columns, columns)
                             : term == 1 ? vision::position<Compute<T>>(p / columns, rows)
                                         : Compute<T>(1);
        sum += static_cast<double>(load(from[2 * p]) * x);
      }
      sum = lanes.sum(sum);
      if (lanes.index() == 0) store(dtheta + i, static_cast<Compute<T>>(sum));
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return device::rows(launch, a.batch * 6, a.rows * a.columns,
                        Body<T>{a.x.get<T>(), a.y.get<T>(), a.rows, a.columns});
  }
};

struct ShiftFrames {
  using Args = FramesArgs;
  template <class T> struct Body {
    const T* x;
    T* y;
    int64_t frames, channels, plane, earlier, later, direction;
    AB_HD void operator()(int64_t i) const {
      const int64_t channel = i / plane % channels, frame = i / plane / channels % frames;
      const int64_t move = direction * (channel < earlier ? -1 : channel < later ? 1 : 0);
      const bool inside = frame + move >= 0 && frame + move < frames;
      y[i] = inside ? x[i + move * channels * plane] : T(0);
    }
  };
  template <class T> static int run(const Launch& launch, const Args& a) {
    return each(launch, a.count * a.channels * a.plane,
                Body<T>{a.x.get<T>(), a.y.get<T>(), a.frames, a.channels, a.plane, a.earlier, a.later, a.direction});
  }
};

AB_KERNEL("grid_sample", GridSample, float, double, half, bfloat16);
AB_KERNEL("grid_sample_grad", GridSampleGrad, float, double, half, bfloat16);
AB_KERNEL("affine_grid", AffineGrid, float, double, half, bfloat16);
AB_KERNEL("affine_grid_grad", AffineGridGrad, float, double, half, bfloat16);
AB_KERNEL("shift_frames", ShiftFrames, uint8_t, int16_t, int32_t, int64_t);

}  // namespace anabranch::device
