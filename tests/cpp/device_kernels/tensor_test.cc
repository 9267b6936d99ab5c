// Copies along strides, fills, borders, made tensors and orders.
#include "host_kernels.h"
#include "ops/device/args_rows.h"
#include "ops/device/args_tensor.h"

namespace anabranch::device {
namespace {

std::vector<double> count_up(size_t n) {
  std::vector<double> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = static_cast<double>(i + 1);
  return v;
}

TEST(DeviceCopy, AlongStrides) {
  Array<int32_t> x(count_up(6)), y(6);
  const auto run = [&](int64_t out_first, int64_t x_first, const Axes<2>& axes) {
    launch("copy/i32", CopyArgs{x.in(), y.out(), out_first, x_first, axes, 0});
    return y.values();
  };
  EXPECT_EQ(run(0, 0, axes_of<2>({3, 2}, {{2, 1}, {1, 3}})), (std::vector<double>{1, 4, 2, 5, 3, 6}));  // transposed
  EXPECT_EQ(run(0, 5, axes_of<2>({6}, {{1}, {-1}})), (std::vector<double>{6, 5, 4, 3, 2, 1}));          // reversed
  EXPECT_EQ(run(0, 1, axes_of<2>({2, 3}, {{3, 1}, {3, 0}})), (std::vector<double>{2, 2, 2, 5, 5, 5}));  // repeated
  EXPECT_EQ(run(1, 0, axes_of<2>({2}, {{3}, {1}})), (std::vector<double>{2, 1, 2, 5, 2, 5}));           // into a slice
  EXPECT_EQ(run(0, 0, axes_of<2>({0, 3}, {{3, 1}, {3, 1}})), (std::vector<double>{2, 1, 2, 5, 2, 5}));  // nothing
  Array<bool> bits({1, 0, 1}), turned(3);
  launch("copy/u8", CopyArgs{bits.in(), turned.out(), 0, 2, axes_of<2>({3}, {{1}, {-1}}), 0});
  EXPECT_EQ(turned.values(), (std::vector<double>{1, 0, 1}));
}

TEST(DeviceFill, NumbersOfArgsAndOfTensors) {
  Array<int64_t> y(3), number(std::vector<double>{9007199254740991.0});
  launch("fill/i64", FillArgs{{}, y.out(), 3, static_cast<uint64_t>(-5)});
  EXPECT_EQ(y.values(), (std::vector<double>{-5, -5, -5}));
  launch("fill/i64", FillArgs{number.in(), y.out(), 3, 0});
  EXPECT_EQ(y[2], 9007199254740991.0);
  Array<half> h(2), one(std::vector<double>{1});
  launch("fill/i16", FillArgs{{}, h.out(), 2, one.at(0).bits});
  EXPECT_EQ(h[1], 1);
}

TEST(DevicePad, ConstantReflectEdge) {
  const std::vector<double> image = count_up(6);  // 2 rows, 3 columns
  const auto run = [&](int32_t mode) {
    Array<float> x(image), y(4 * 6);
    launch("pad2d/f32", Pad2dArgs{x.in(), y.out(), 1, 2, 3, 1, 1, 1, 1, 2, 9, mode, 0});
    return y.values();
  };
  EXPECT_EQ(run(0), (std::vector<double>{9, 9, 9, 9, 9, 9, 9, 1, 2, 3, 9, 9, 9, 4, 5, 6, 9, 9, 9, 9, 9, 9, 9, 9}));
  EXPECT_EQ(run(1), (std::vector<double>{5, 4, 5, 6, 5, 4, 2, 1, 2, 3, 2, 1, 5, 4, 5, 6, 5, 4, 2, 1, 2, 3, 2, 1}));
  EXPECT_EQ(run(2), (std::vector<double>{1, 1, 2, 3, 3, 3, 1, 1, 2, 3, 3, 3, 4, 4, 5, 6, 6, 6, 4, 4, 5, 6, 6, 6}));
}

// The sum over elements equals the sum over their sources: <y, pad(x)> = <pad_grad(y), x>, for channels last, too.
TEST(DevicePad, GradientsAreAdjoint) {
  for (int32_t mode = 0; mode < 3; ++mode) {
    const auto xs = random_values(2 * 4 * 3 * 2, -1, 1), ds = random_values(2 * 7 * 6 * 2, -1, 1, 2);
    Array<double> x(xs), y(ds.size()), d(ds), dx(xs.size());
    launch("pad2d/f64", Pad2dArgs{x.in(), y.out(), 2, 4, 3, 2, 1, 2, 2, 1, 0, mode, 0});
    launch("pad2d_grad/f64", Pad2dArgs{d.in(), dx.out(), 2, 4, 3, 2, 1, 2, 2, 1, 0, mode, 0});
    double forward = 0, backward = 0;
    for (size_t i = 0; i < ds.size(); ++i) forward += ds[i] * y[i];
    for (size_t i = 0; i < xs.size(); ++i) backward += dx[i] * xs[i];
    EXPECT_NEAR(forward, backward, 1e-12) << mode;
  }
}

TEST(DeviceMade, TrianglesRangesAndOneHot) {
  Array<float> x(count_up(9)), y(9);
  launch("triangle/i32", MatrixArgs{x.in(), y.out(), 1, 3, 3, 0, 1, 0});
  EXPECT_EQ(y.values(), (std::vector<double>{1, 0, 0, 4, 5, 0, 7, 8, 9}));
  launch("triangle/i32", MatrixArgs{x.in(), y.out(), 1, 3, 3, 1, 0, 0});
  EXPECT_EQ(y.values(), (std::vector<double>{0, 2, 3, 0, 0, 6, 0, 0, 0}));
  Array<float> eye(6);
  launch("eye/f32", MatrixArgs{{}, eye.out(), 1, 2, 3, 0, 0, 0});
  EXPECT_EQ(eye.values(), (std::vector<double>{1, 0, 0, 0, 1, 0}));
  Array<double> start(std::vector<double>{1}), step(std::vector<double>{0.5}), r(4);
  launch("range/f64", SequenceArgs{start.in(), step.in(), r.out(), 4});
  EXPECT_EQ(r.values(), (std::vector<double>{1, 1.5, 2, 2.5}));
  launch("linspace/f64", SequenceArgs{start.in(), step.in(), r.out(), 4});
  expect_all(r, {1, 1 - 0.5 / 3, 1 - 1.0 / 3, 0.5}, "linspace");
  Array<int64_t> ids({2, -1, 0}), word(1);
  Array<float> hot(9);
  launch("one_hot/i64/f32", OneHotArgs{ids.in(), hot.out(), sink_of(word), 3, 3, 0, 0});
  EXPECT_EQ(hot.values(), (std::vector<double>{0, 0, 1, 0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(fault_of(word).detail, 1);
  launch("one_hot/i64/f32", OneHotArgs{ids.in(), hot.out(), sink_of(word), 3, 3, 1, 0});
  EXPECT_FALSE(faulted(word));
}

TEST(DeviceOrder, FirstElementsOfLines) {
  Array<float> x({2, NAN, 5, 5, -1, 7}), y(4), sorted(6);
  Array<int64_t> places(4), all(6);
  launch("top_k/f32", OrderArgs{x.in(), {}, y.out(), places.out(), {}, 1, 6, 1, 4, 1, 0});
  EXPECT_EQ(y.values(), (std::vector<double>{7, 5, 5, 2}));
  EXPECT_EQ(places.values(), (std::vector<double>{5, 2, 3, 0}));
  launch("argsort/f32", OrderArgs{x.in(), {}, sorted.out(), all.out(), {}, 1, 6, 1, 6, 0, 0});
  EXPECT_EQ(all.values(), (std::vector<double>{4, 0, 2, 3, 5, 1}));
  Array<int32_t> v({1, 9, 3, 7, 2, 8}), w(2);  // [3, 2], the largest of each column
  Array<int64_t> at(2);
  launch("top_k/i32", OrderArgs{v.in(), {}, w.out(), at.out(), {}, 1, 3, 2, 1, 1, 0});
  EXPECT_EQ(w.values(), (std::vector<double>{3, 9}));
  EXPECT_EQ(at.values(), (std::vector<double>{1, 0}));
  Array<float> many({NAN, NAN, 1}), m(3);
  Array<int64_t> order(3);
  launch("top_k/f32", OrderArgs{many.in(), {}, m.out(), order.out(), {}, 1, 3, 1, 3, 0, 0});
  EXPECT_EQ(order.values(), (std::vector<double>{2, 0, 1}));
  Array<float> d({1, 2, 3, 4}), dx(6);
  Array<int64_t> word(1);
  launch("selected_grad/f32", OrderArgs{d.in(), places.in(), dx.out(), {}, sink_of(word), 1, 6, 1, 4, 0, 0});
  EXPECT_EQ(dx.values(), (std::vector<double>{4, 0, 2, 3, 0, 1}));
  places.at(1) = 6;
  launch("selected_grad/f32", OrderArgs{d.in(), places.in(), dx.out(), {}, sink_of(word), 1, 6, 1, 4, 0, 0});
  EXPECT_EQ(fault_of(word).detail, 6);
}

}  // namespace
}  // namespace anabranch::device
