// Folds, lines, copies and made tensors.
#include <limits>

#include "host_kernels.h"
#include "ops/device/args_fold.h"
#include "ops/device/args_tensor.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceFolds : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceFolds, Floats);

struct Folding {
  std::vector<int64_t> kept, kept_steps, folded, folded_steps;
  size_t n;
};

const Folding kFoldings[] = {
    {{4}, {5}, {5}, {1}, 20},         // rows
    {{5}, {1}, {4}, {5}, 20},         // columns
    {{3}, {4}, {2, 4}, {12, 1}, 24},  // the outer and the inner axis of [2, 3, 4]
    {{}, {}, {20000}, {1}, 20000},    // all, in chunks
    {{3}, {1}, {3000}, {3}, 9000},    // columns, in chunks
    {{2}, {0}, {0}, {1}, 0},          // nothing folds to the start
};

template <class Fn> void each_index(const std::vector<int64_t>& extents, const std::vector<int64_t>& steps, Fn&& fn) {
  int64_t n = 1;
  for (int64_t e : extents) n *= e;
  for (int64_t i = 0; i < n; ++i) {
    int64_t at = 0, rest = i;
    for (size_t a = extents.size(); a-- > 0; rest /= extents[a]) at += rest % extents[a] * steps[a];
    fn(static_cast<size_t>(i), static_cast<size_t>(at));
  }
}

TYPED_TEST(DeviceFolds, OverAxes) {
  using T = TypeParam;
  for (const Folding& f : kFoldings) {
    const auto xs = held<T>(random_values(f.n, 0.98, 1.02));
    Array<T> x(xs);
    size_t results = 1;
    for (int64_t e : f.kept) results *= static_cast<size_t>(e);
    std::vector<double> sum(results), square(results), least(results, INFINITY), most(results, -INFINITY), mean;
    size_t count = 0;
    each_index(f.kept, f.kept_steps, [&](size_t r, size_t first) {
      count = 0;
      each_index(f.folded, f.folded_steps, [&](size_t, size_t at) {
        const double v = xs[first + at];
        sum[r] += v, square[r] += v * v, least[r] = std::min(least[r], v), most[r] = std::max(most[r], v), ++count;
      });
    });
    for (double s : sum) mean.push_back(s / static_cast<double>(count));
    const auto run = [&](const char* name, const std::vector<double>& expected) {
      if (std::is_same_v<T, half> && count > 10000 && expected[0] > 10000) return;  // beyond what halves hold well
      Array<T> y(results);
      FoldAxesArgs args = {x.in(), y.out(), axes_of<1>(f.kept, {f.kept_steps}), axes_of<1>(f.folded, {f.folded_steps})};
      launch(key_of<T>(std::string("fold_axes/") + name), args);
      expect_all(y, expected, name, 2);
    };
    run("sum", sum), run("mean", mean), run("squares", square), run("min", least), run("max", most), run("sizes", sum);
  }
}

TYPED_TEST(DeviceFolds, GradientsOfFolds) {
  using T = TypeParam;
  const auto xs = held<T>({1, 2, 3, 3, 0.5, -2}), ds = held<T>({1.5, -2});
  Array<T> x(xs), d(ds), largest({3, 3}), product({6, -3}), dx(6);
  const auto axes = axes_of<2>({2, 3}, {{3, 1}, {1, 0}});
  const auto run = [&](const char* name, DeviceIn out, std::vector<double> expected) {
    launch(key_of<T>(std::string("fold_axes_grad/") + name),
           FoldAxesGradArgs{x.in(), out, d.in(), dx.out(), axes, {3}});
    expect_all(dx, expected, name, 2);
  };
  run("sum", {}, {1.5, 1.5, 1.5, -2, -2, -2});
  run("mean", {}, {0.5, 0.5, 0.5, -2.0 / 3, -2.0 / 3, -2.0 / 3});
  run("extreme", largest.in(), {0, 0, 1.5, -2, 0, 0});
  run("prod", product.in(), {9, 4.5, 3, 2, 12, -3});
  run("squares", {}, {3, 6, 9, -12, -2, 8});
  run("sizes", {}, {1.5, 1.5, 1.5, -2, -2, 2});
}

TYPED_TEST(DeviceFolds, LengthsAlongAnAxis) {
  using T = TypeParam;
  const auto xs = held<T>(random_values(2 * 5 * 3, -2, 2)), ds = held<T>(random_values(30, -1, 1, 2));
  Array<T> x(xs), y(30), length(6), d(ds), dx(30);
  launch(key_of<T>("norm"), NormArgs{x.in(), {}, {}, y.out(), length.out(), 2, 5, 3, {1e-10}});
  launch(key_of<T>("norm_grad"), NormArgs{x.in(), d.in(), length.in(), dx.out(), {}, 2, 5, 3, {1e-10}});
  for (size_t o = 0; o < 2; ++o) {
    for (size_t i = 0; i < 3; ++i) {
      const auto at = [&](size_t k) { return (o * 5 + k) * 3 + i; };
      double square = 1e-10, dot = 0;  // epsilon
      for (size_t k = 0; k < 5; ++k) square += xs[at(k)] * xs[at(k)], dot += xs[at(k)] * ds[at(k)];
      const double size = std::sqrt(square);
      expect_near(length[o * 3 + i], size, 2 * rounding<T>(), "length");
      for (size_t k = 0; k < 5; ++k) {
        expect_near(y[at(k)], xs[at(k)] / size, 2 * rounding<T>(), "norm");
        expect_near(dx[at(k)], (ds[at(k)] - xs[at(k)] * dot / square) / size, 8 * rounding<T>(), "norm_grad");
      }
    }
  }
}

TEST(DeviceLines, PlacesOfExtremesAndRunningSums) {
  Array<float> x({3, NAN, 5, 5, NAN, NAN, NAN, NAN, -INFINITY, -INFINITY, -INFINITY, -INFINITY});
  Array<int64_t> place(3);
  launch("arg_max/f32/i64", FoldArgs{x.in(), place.out(), 3, 4, 1, {}});
  EXPECT_EQ(place.values(), (std::vector<double>{2, 0, 0}));
  launch("arg_min/f32/i64", FoldArgs{x.in(), place.out(), 3, 4, 1, {}});
  EXPECT_EQ(place.values(), (std::vector<double>{0, 0, 0}));
  Array<int32_t> v({1, 10, 2, 20, 3, 30}), sums(6);
  const auto run = [&](int32_t flags) {
    launch("running_sum/i32", RunningSumArgs{v.in(), sums.out(), 1, 3, 2, flags, 0});
    return sums.values();
  };
  EXPECT_EQ(run(0), (std::vector<double>{1, 10, 3, 30, 6, 60}));
  EXPECT_EQ(run(1), (std::vector<double>{0, 0, 1, 10, 3, 30}));
  EXPECT_EQ(run(2), (std::vector<double>{6, 60, 5, 50, 3, 30}));
  EXPECT_EQ(run(3), (std::vector<double>{5, 50, 3, 30, 0, 0}));
  Array<bool> truth({1, 1, 0, 1}), folded(2);
  const auto rows = axes_of<1>({2}, {{2}}), inside = axes_of<1>({2}, {{1}});
  launch("fold_axes/all/bool", FoldAxesArgs{truth.in(), folded.out(), rows, inside});
  EXPECT_EQ(folded.values(), (std::vector<double>{1, 0}));
  launch("fold_axes/any/bool", FoldAxesArgs{truth.in(), folded.out(), rows, inside});
  EXPECT_EQ(folded.values(), (std::vector<double>{1, 1}));
  Array<int64_t> found({3, 1, 2, 0, 5, 4}), label({1, 0, 9});
  Array<float> share(1);
  Array<int32_t> hits(1), total(1);
  launch("accuracy/i64/i64", AccuracyArgs{found.in(), label.in(), share.out(), hits.out(), total.out(), 3, 2});
  EXPECT_FLOAT_EQ(static_cast<float>(share[0]), 2.0f / 3);
  EXPECT_EQ(hits[0], 2);
  EXPECT_EQ(total[0], 3);
}

}  // namespace
}  // namespace anabranch::device
