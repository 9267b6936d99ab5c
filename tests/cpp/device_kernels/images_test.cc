// Windows of images, and images of another size.
#include "differences.h"
#include "ops/device/args_index.h"
#include "ops/device/args_vision.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceImages : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceImages, Floats);

struct Pooling {
  int64_t in[3], out[3], kernel[3], stride[3], before[3];
  int32_t adaptive;
};
const Pooling kPoolings[] = {{{1, 5, 6}, {1, 3, 3}, {1, 3, 2}, {1, 2, 2}, {0, 1, 0}, 0},
                             {{3, 4, 4}, {2, 3, 3}, {2, 2, 2}, {1, 1, 1}, {0, 0, 0}, 0},
                             {{1, 7, 5}, {1, 3, 2}, {1, 1, 1}, {1, 1, 1}, {0, 0, 0}, 1}};

TYPED_TEST(DeviceImages, LargestOfWindows) {
  using T = TypeParam;
  for (const Pooling& p : kPoolings) {
    const int64_t ins = p.in[0] * p.in[1] * p.in[2], outs = p.out[0] * p.out[1] * p.out[2];
    const auto xs = held<T>(random_values(static_cast<size_t>(2 * ins), -1, 1));
    const auto ds = held<T>(random_values(static_cast<size_t>(2 * outs), -1, 1, 2));
    Array<T> x(xs), y(ds.size()), d(ds), dx(xs.size());
    Array<int32_t> mask(ds.size());
    PoolIndexArgs a = {x.in(), {}, y.out(), mask.out(), 2, {}, {}, {}, {}, {}, p.adaptive, 0};
    for (int k = 0; k < 3; ++k) {
      a.in[k] = p.in[k], a.out[k] = p.out[k], a.kernel[k] = p.kernel[k], a.stride[k] = p.stride[k];
      a.before[k] = p.before[k];
    }
    launch(key_of<T>("max_pool_index"), a);
    const auto holds = [&](int axis, int64_t window, int64_t i) {
      if (p.adaptive) return i * p.out[axis] < (window + 1) * p.in[axis] && (i + 1) * p.out[axis] > window * p.in[axis];
      const int64_t first = window * p.stride[axis] - p.before[axis];
      return i >= first && i < first + p.kernel[axis];
    };
    std::vector<double> back(xs.size());
    for (int64_t o = 0; o < 2 * outs; ++o) {
      const int64_t w = o % outs, place[] = {w / (p.out[1] * p.out[2]), w / p.out[2] % p.out[1], w % p.out[2]};
      double best = -INFINITY;
      int64_t at = -1;
      for (int64_t i = 0; i < ins; ++i) {
        const int64_t own[] = {i / (p.in[1] * p.in[2]), i / p.in[2] % p.in[1], i % p.in[2]};
        const double v = xs[static_cast<size_t>(o / outs * ins + i)];
        if (!holds(0, place[0], own[0]) || !holds(1, place[1], own[1]) || !holds(2, place[2], own[2]) || v <= best)
          continue;
        best = v, at = i;
      }
      EXPECT_EQ(y[static_cast<size_t>(o)], best);
      EXPECT_EQ(mask[static_cast<size_t>(o)], at);
      back[static_cast<size_t>(o / outs * ins + at)] += ds[static_cast<size_t>(o)];
    }
    a.x = d.in(), a.mask_in = mask.in(), a.y = dx.out();
    launch(key_of<T>("max_pool_index_grad"), a);
    expect_all(dx, back, "gradient", 2);
  }
}

TEST(DeviceUnfold, WindowsAsColumnsAndBack) {
  Array<float> x({1, 2, 3, 4, 5, 6, 7, 8, 9}), y(16);
  UnfoldArgs a = {x.in(), y.out(), 1, {3, 3}, {2, 2}, {2, 2}, {2, 2}, {1, 1}, {1, 1}, 0};
  launch("unfold/f32", a);
  EXPECT_EQ(y.values(), (Values{0, 0, 0, 5, 0, 0, 4, 6, 0, 2, 0, 8, 1, 3, 7, 9}));
  const auto xs = random_values(2 * 6 * 5, -1, 1), ds = random_values(2 * 6 * 4 * 3, -1, 1, 2);
  Array<double> wide(xs), columns(ds.size()), d(ds), dx(xs.size());
  a = {wide.in(), columns.out(), 2, {6, 5}, {4, 3}, {3, 2}, {1, 2}, {2, 1}, {1, 1}, 0};
  launch("unfold/f64", a);
  a.x = d.in(), a.y = dx.out();
  launch("unfold_grad/f64", a);
  EXPECT_NEAR(dot(ds, columns.values()), dot(xs, dx.values()), 1e-12);
}

struct AxisTables {  // taps at random places, with random weights
  Array<int32_t> from, starts, uses;
  Array<double> weight;
  int64_t in, out;
  int32_t taps;
  AxisTables(int64_t i, int64_t o, int32_t t, uint32_t seed)
      : from(static_cast<size_t>(o * t)),
        starts(static_cast<size_t>(i + 1)),
        uses(static_cast<size_t>(o * t)),
        weight(random_values(static_cast<size_t>(o * t), 0, 1, seed)),
        in(i),
        out(o),
        taps(t) {
    const auto places = random_values(from.size(), 0, static_cast<double>(in), seed + 1);
    size_t used = 0;
    for (size_t k = 0; k < places.size(); ++k) from.at(k) = static_cast<int32_t>(places[k]);
    for (int64_t k = 0; k <= in; ++k) {
      starts.at(static_cast<size_t>(k)) = static_cast<int32_t>(used);
      for (size_t u = 0; u < places.size(); ++u) {
        if (from.at(u) == k) uses.at(used++) = static_cast<int32_t>(u);
      }
    }
  }
  ResampleAxis args() const { return {from.in(), weight.in(), starts.in(), uses.in(), in, out, taps, 0}; }
};

TYPED_TEST(DeviceImages, OfAnotherSize) {
  using T = TypeParam;
  const AxisTables depth(2, 3, 1, 1), rows(4, 5, 2, 3), cols(5, 3, 2, 5);
  constexpr size_t kInner = 2, kIn = 2 * 2 * 4 * 5 * kInner, kOut = 2 * 3 * 5 * 3 * kInner;
  const auto xs = held<T>(random_values(kIn, -1, 1)), ds = held<T>(random_values(kOut, -1, 1, 2));
  Array<T> x(xs), y(kOut), d(ds), dx(kIn);
  Values expected(kOut), back(kIn);
  for (size_t o = 0; o < kOut; ++o) {
    const size_t i = o % kInner, c = o / kInner % 3, r = o / kInner / 3 % 5, z = o / kInner / 15 % 3,
                 n = o / kInner / 45;
    for (size_t b = 0; b < 2; ++b) {
      for (size_t k = 0; k < 2; ++k) {
        const auto zi = static_cast<size_t>(depth.from[z]), ri = static_cast<size_t>(rows.from[r * 2 + b]);
        const size_t at = (((n * 2 + zi) * 4 + ri) * 5 + static_cast<size_t>(cols.from[c * 2 + k])) * kInner + i;
        const double weight = depth.weight[z] * rows.weight[r * 2 + b] * cols.weight[c * 2 + k];
        expected[o] += weight * xs[at], back[at] += weight * ds[o];
      }
    }
  }
  const ResampleArgs a = {x.in(), y.out(), {depth.args(), rows.args(), cols.args()}, 2, kInner};
  launch(key_of<T>("resample"), a);
  expect_all(y, expected, "resample", 4);
  launch(key_of<T>("resample_grad"),
         ResampleArgs{d.in(), dx.out(), {depth.args(), rows.args(), cols.args()}, 2, kInner});
  expect_all(dx, back, "resample_grad", 8);
}

}  // namespace
}  // namespace anabranch::device
