// Norms of rows against formulas, by each of the ways that their width, number and place may take.
#include "differences.h"
#include "ops/device/args_rows.h"
#include "ops/device/fold_rows.h"

namespace anabranch::device {
namespace {

// Of [rows, width], all in float64.
struct LayerNormCase {
  size_t rows, width;
  Values x, dy, scale, bias, y, mean, variance, dx, dscale, dbias;

  template <class T> static LayerNormCase of(size_t rows, size_t width) {
    const size_t n = rows * width;
    LayerNormCase c = {};
    c.rows = rows, c.width = width;
    c.x = held<T>(random_values(n, -2, 2)), c.dy = held<T>(random_values(n, -1, 1, 2));
    c.scale = held<T>(random_values(width, 0.5, 2, 3)), c.bias = held<T>(random_values(width, -1, 1, 4));
    c.y = c.dx = Values(n), c.mean = c.variance = Values(rows), c.dscale = c.dbias = Values(width);
    for (size_t r = 0; r < rows; ++r) c.work_out(r);
    return c;
  }
  void work_out(size_t r) {
    const size_t begin = r * width;
    const double count = static_cast<double>(width);
    for (size_t i = 0; i < width; ++i) mean[r] += x[begin + i] / count;
    for (size_t i = 0; i < width; ++i) variance[r] += std::pow(x[begin + i] - mean[r], 2) / count;
    const double inv = 1 / std::sqrt(variance[r] + 1e-3);
    const auto hat = [&](size_t i) { return (x[begin + i] - mean[r]) * inv; };
    double sum = 0, products = 0;
    for (size_t i = 0; i < width; ++i) {
      const double h = dy[begin + i] * scale[i];
      y[begin + i] = hat(i) * scale[i] + bias[i];
      dscale[i] += dy[begin + i] * hat(i), dbias[i] += dy[begin + i];
      sum += h / count, products += h * hat(i) / count;
    }
    for (size_t i = 0; i < width; ++i) {
      dx[begin + i] = inv * (dy[begin + i] * scale[i] - sum - hat(i) * products);
    }
  }
};

// The operands of one case, with those of T once more where no pack starts.
template <class T> struct LayerNormRun {
  using P = Compute<T>;
  LayerNormCase of;
  Array<T> x, dy, out, x_apart, dy_apart, out_apart;
  Array<P> scale, bias, mean, variance, dscale, dbias;
  LayerNormRun(size_t rows, size_t width)
      : of(LayerNormCase::of<T>(rows, width)),
        x(of.x),
        dy(of.dy),
        out(rows * width),
        x_apart(rows * width + 1),
        dy_apart(rows * width + 1),
        out_apart(rows * width + 1),
        scale(of.scale),
        bias(of.bias),
        mean(rows),
        variance(rows),
        dscale(width),
        dbias(width) {
    for (size_t i = 0; i < rows * width; ++i) x_apart.at(i + 1) = x.at(i), dy_apart.at(i + 1) = dy.at(i);
  }
  LayerNormArgs args() const {
    LayerNormArgs a = {};
    a.rows = static_cast<int64_t>(of.rows), a.width = static_cast<int64_t>(of.width), a.epsilon = 1e-3;
    a.scale = scale.in();
    return a;
  }
  LayerNormArgs forward() {
    LayerNormArgs a = args();
    a.x = x.in(), a.bias = bias.in(), a.y = out.out(), a.mean = mean.out(), a.variance = variance.out();
    return a;
  }
  LayerNormArgs backward() {
    LayerNormArgs a = args();
    a.x = x.in(), a.dy = dy.in(), a.mean_in = mean.in(), a.variance_in = variance.in();
    a.y = out.out(), a.mean = dscale.out(), a.variance = dbias.out();
    return a;
  }
};

template <class T> class DeviceRowNorms : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceRowNorms, Floats);

TYPED_TEST(DeviceRowNorms, LayerNormOfRowsThatLanesHold) {
  using T = TypeParam;
  for (const size_t width : {4u, 7u, 128u, 130u, 264u, 768u, 1024u, 1032u}) {
    LayerNormRun<T> run(6, width);
    const std::string what = " of " + std::to_string(width);
    LayerNormArgs a = run.forward();
    launch(key_of<T>("layer_norm"), a);
    expect_lanes<T>(6, static_cast<int64_t>(width));
    expect_all(run.out, run.of.y, "y" + what, 4);
    expect_all(run.mean, run.of.mean, "mean" + what);
    expect_all(run.variance, run.of.variance, "variance" + what, 2);
    a.x = in_from(run.x_apart, 1), a.y = out_from(run.out_apart, 1);
    launch(key_of<T>("layer_norm"), a);
    expect_same_bits(run.out_apart, run.out, "y where no pack starts" + what, 1);
    a = run.backward();
    launch(key_of<T>("layer_norm_grad"), a);
    expect_lanes<T>(6, static_cast<int64_t>(width));
    expect_all(run.out, run.of.dx, "dx" + what, 8);
    expect_all(run.dscale, run.of.dscale, "dscale" + what, 4);
    expect_all(run.dbias, run.of.dbias, "dbias" + what, 4);
    a.x = in_from(run.x_apart, 1), a.dy = in_from(run.dy_apart, 1), a.y = out_from(run.out_apart, 1);
    launch(key_of<T>("layer_norm_grad"), a);
    expect_same_bits(run.out_apart, run.out, "dx where no pack starts" + what, 1);
  }
}

// Without scale and bias rows are held, too.
TYPED_TEST(DeviceRowNorms, LayerNormAlone) {
  using T = TypeParam;
  LayerNormRun<T> run(3, 136), ones(3, 136);
  for (size_t i = 0; i < 136; ++i) ones.scale.at(i) = 1, ones.bias.at(i) = 0;
  LayerNormArgs a = run.forward();
  a.scale = a.bias = {};
  launch(key_of<T>("layer_norm"), a);
  launch(key_of<T>("layer_norm"), ones.forward());
  expect_same_bits(run.out, ones.out, "y");
  a = run.backward();
  a.scale = {};
  launch(key_of<T>("layer_norm_grad"), a);
  launch(key_of<T>("layer_norm_grad"), ones.backward());
  expect_same_bits(run.out, ones.out, "dx");
}

// The sums of columns of many rows are cut into chunks, which threads take for several columns at once; the order
// stays.
TYPED_TEST(DeviceRowNorms, LayerNormOfManyRows) {
  using T = TypeParam;
  using P = Compute<T>;
  for (const size_t width : {128u, 130u}) {
    constexpr size_t kRows = 2100;
    LayerNormRun<T> run(kRows, width);
    launch(key_of<T>("layer_norm"), run.forward());
    LayerNormArgs a = run.backward();
    a.y = {};
    launch(key_of<T>("layer_norm_grad"), a);
    expect_all(run.dscale, run.of.dscale, "dscale", sizeof(P) == 8 ? 1 : 40);
    expect_all(run.dbias, run.of.dbias, "dbias", sizeof(P) == 8 ? 1 : 40);
    const bool packs = sizeof(T) <= 4 && width % 4 == 0;
    if (!last_launched().empty()) {
      ASSERT_EQ(last_launched().size(), 2u);
      const int64_t chunks = cut_of(static_cast<int64_t>(width), kRows, Neighbors::kRows).chunks;
      ASSERT_GT(chunks, 1);
      EXPECT_EQ(last_launched()[0], (Launched{chunks * static_cast<int64_t>(packs ? width / 4 : width), 1}));
    }
    Array<P> dscale(width), dbias(width);
    a.x = in_from(run.x_apart, 1), a.dy = in_from(run.dy_apart, 1), a.variance = {}, a.mean = dscale.out();
    launch(key_of<T>("layer_norm_grad"), a);
    expect_same_bits(dscale, run.dscale, "dscale by itself, where no pack starts");
    a.variance = dbias.out(), a.mean = {};
    launch(key_of<T>("layer_norm_grad"), a);
    expect_same_bits(dbias, run.dbias, "dbias by itself, where no pack starts");
  }
}

}  // namespace
}  // namespace anabranch::device
