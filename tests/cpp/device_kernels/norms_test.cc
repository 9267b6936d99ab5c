// Norms of rows and groups: values against formulas, gradients against differences of
// the values that the float64 kernels give.
#include "differences.h"
#include "ops/device/args_rows.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceNorms : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceNorms, Floats);

template <class T>
Values layer_norm(const Values& x, const Values& scale, const Values& bias, Array<Compute<T>>* mean,
                  Array<Compute<T>>* variance) {
  Array<T> in(x), y(x.size());
  Array<Compute<T>> s(scale), b(bias);
  launch(key_of<T>("layer_norm"), LayerNormArgs{in.in(),
                                                s.in(),
                                                b.in(),
                                                {},
                                                {},
                                                {},
                                                y.out(),
                                                mean->out(),
                                                variance->out(),
                                                static_cast<int64_t>(x.size() / scale.size()),
                                                static_cast<int64_t>(scale.size()),
                                                1e-3});
  return y.values();
}

TYPED_TEST(DeviceNorms, LayerNorm) {
  using T = TypeParam;
  constexpr size_t kRows = 3, kWidth = 6;
  const auto xs = held<T>(random_values(18, -2, 2)), ss = held<T>(random_values(6, 0.5, 2, 2));
  const auto bs = held<T>(random_values(6, -1, 1, 3)), ds = held<T>(random_values(18, -1, 1, 4));
  Array<T> x(xs), d(ds), dx(18);
  Array<Compute<T>> mean(kRows), variance(kRows), s(ss), dscale(6), dbias(6);
  const Values y = layer_norm<T>(xs, ss, bs, &mean, &variance);
  for (size_t r = 0; r < kRows; ++r) {
    double m = 0, v = 0;
    for (size_t i = 0; i < kWidth; ++i) m += xs[r * kWidth + i] / kWidth;
    for (size_t i = 0; i < kWidth; ++i) v += std::pow(xs[r * kWidth + i] - m, 2) / kWidth;
    expect_near(mean[r], m, 2 * rounding<T>(), "mean");
    expect_near(variance[r], v, 2 * rounding<T>(), "variance");
    for (size_t i = 0; i < kWidth; ++i) {
      expect_near(y[r * kWidth + i], (xs[r * kWidth + i] - m) / std::sqrt(v + 1e-3) * ss[i] + bs[i], 8 * rounding<T>(),
                  "y");
    }
  }
  launch(key_of<T>("layer_norm_grad"), LayerNormArgs{x.in(),
                                                     s.in(),
                                                     {},
                                                     d.in(),
                                                     mean.in(),
                                                     variance.in(),
                                                     dx.out(),
                                                     dscale.out(),
                                                     dbias.out(),
                                                     kRows,
                                                     kWidth,
                                                     1e-3});
  Array<double> m(kRows), v(kRows);
  const auto loss = [&](const Values& a, const Values& b, const Values& c) {
    return dot(ds, layer_norm<double>(a, b, c, &m, &v));
  };
  expect_all(dx, slopes(xs, [&](const Values& a) { return loss(a, ss, bs); }), "dx", slope_factor<T>());
  expect_all(dscale, slopes(ss, [&](const Values& a) { return loss(xs, a, bs); }), "dscale", slope_factor<T>());
  expect_all(dbias, slopes(bs, [&](const Values& a) { return loss(xs, ss, a); }), "dbias", slope_factor<T>());
}

struct GroupCase {
  int64_t samples, channels, inner, groups;
  int32_t flags;
};
const GroupCase kGroups[] = {{2, 4, 3, 2, 0}, {2, 4, 3, 2, kChannelsLast}, {2, 3, 4, 3, kInverseDeviation}};

template <class T> struct GroupState {
  Array<T> mean, variance;
  explicit GroupState(const GroupCase& c)
      : mean(static_cast<size_t>(c.samples * c.groups)), variance(static_cast<size_t>(c.samples * c.groups)) {}
};

template <class T>
Values group_norm(const GroupCase& c, const Values& x, const Values& scale, const Values& bias, GroupState<T>& state) {
  Array<T> in(x), s(scale), b(bias), y(x.size());
  launch(key_of<T>("group_norm"), GroupNormArgs{in.in(),
                                                s.in(),
                                                b.in(),
                                                {},
                                                {},
                                                {},
                                                y.out(),
                                                state.mean.out(),
                                                state.variance.out(),
                                                c.samples,
                                                c.channels,
                                                c.inner,
                                                c.groups,
                                                1e-3,
                                                c.flags,
                                                0});
  return y.values();
}

TYPED_TEST(DeviceNorms, GroupAndInstanceNorm) {
  using T = TypeParam;
  for (const GroupCase& c : kGroups) {
    const auto n = static_cast<size_t>(c.samples * c.channels * c.inner), channels = static_cast<size_t>(c.channels);
    const auto xs = held<T>(random_values(n, -2, 2)), ss = held<T>(random_values(channels, 0.5, 2, 2));
    const auto bs = held<T>(random_values(channels, -1, 1, 3)), ds = held<T>(random_values(n, -1, 1, 4));
    GroupState<T> state(c);
    const Values y = group_norm<T>(c, xs, ss, bs, state);
    const int64_t width = c.channels / c.groups;
    const auto channel_of = [&](int64_t i) {
      return c.flags & kChannelsLast ? i % c.channels : i / c.inner % c.channels;
    };
    const auto group_of = [&](int64_t i) { return i / (c.channels * c.inner) * c.groups + channel_of(i) / width; };
    const double count = static_cast<double>(width * c.inner);
    Values m(static_cast<size_t>(c.samples * c.groups)), v(m.size());
    const auto each = [&](auto fn) {
      for (size_t i = 0; i < n; ++i)
        fn(i, static_cast<size_t>(group_of(static_cast<int64_t>(i))),
           static_cast<size_t>(channel_of(static_cast<int64_t>(i))));
    };
    each([&](size_t i, size_t g, size_t) { m[g] += xs[i] / count; });
    each([&](size_t i, size_t g, size_t) { v[g] += std::pow(xs[i] - m[g], 2) / count; });
    each([&](size_t i, size_t g, size_t k) {
      expect_near(y[i], (xs[i] - m[g]) / std::sqrt(v[g] + 1e-3) * ss[k] + bs[k], 8 * rounding<T>(), "y");
      expect_near(state.variance[g], c.flags & kInverseDeviation ? 1 / std::sqrt(v[g] + 1e-3) : v[g], 4 * rounding<T>(),
                  "variance");
    });
    Array<T> x(xs), s(ss), b(bs), d(ds), dx(n), dscale(channels), dbias(channels), made(y);
    GroupNormArgs args = {x.in(),   s.in(),       b.in(),      d.in(),    state.mean.in(), state.variance.in(),
                          dx.out(), dscale.out(), dbias.out(), c.samples, c.channels,      c.inner,
                          c.groups, 1e-3,         c.flags,     0};
    launch(key_of<T>("group_norm_grad"), args);
    GroupState<double> wide(c);
    const auto loss = [&](const Values& p, const Values& q) { return dot(ds, group_norm<double>(c, p, q, bs, wide)); };
    const Values by_x = slopes(xs, [&](const Values& p) { return loss(p, ss); });
    expect_all(dx, by_x, "dx", slope_factor<T>());
    expect_all(dscale, slopes(ss, [&](const Values& p) { return loss(xs, p); }), "dscale", slope_factor<T>());
    args.x = made.in(), args.mean_in = {}, args.flags |= kFromNormalized;
    launch(key_of<T>("group_norm_grad"), args);
    expect_all(dx, by_x, "dx from Y", 4 * slope_factor<T>());
  }
}

}  // namespace
}  // namespace anabranch::device
