// Images read at places between their pixels, frames that move in time, columns that are normalized.
#include "host_kernels.h"
#include "ops/device/args_rows.h"
#include "ops/device/args_vision.h"

namespace anabranch::device {
namespace {

template <class T> class DevicePlaces : public ::testing::Test {};
TYPED_TEST_SUITE(DevicePlaces, Floats);

TYPED_TEST(DevicePlaces, PixelsAndWhatLiesBetween) {
  using T = TypeParam;
  // Two channels of one image of 2 x 2; the corner, the middle, between two pixels, and outside.
  Array<T> x({1, 2, 3, 4, 10, 20, 30, 40}), grid({-1, -1, 0, 0, 1, 0, 3, 3}), y(8), dout({1, 2, 3, 4, 5, 6, 7, 8});
  Array<T> dx(8), dgrid(8);
  GridArgs a = {x.in(), grid.in(), {}, y.out(), {}, 1, 2, 2, 2};
  launch(key_of<T>("grid_sample"), a);
  expect_all(y, {1, 2.5, 3, 0, 10, 25, 30, 0}, "values");
  a.dout = dout.in(), a.y = dx.out(), a.dgrid = dgrid.out();
  launch(key_of<T>("grid_sample_grad"), a);
  expect_all(dx, {1.5, 2, 0.5, 2, 6.5, 5, 1.5, 5}, "by the images");
  // By the place in the middle: sum over channels of d times the slopes 0.5 and 1 (10 times that in channel two).
  EXPECT_NEAR(dgrid[2], (2 * 0.5 + 6 * 5), 0.05);
  EXPECT_NEAR(dgrid[3], (2 * 1.0 + 6 * 10), 0.1);
  EXPECT_EQ(dgrid[6], 0);
}

TYPED_TEST(DevicePlaces, OfTransformedImages) {
  using T = TypeParam;
  Array<T> theta({1, 0, 0.5, 0, 2, -0.5}), y(12), d({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), dtheta(6);
  launch(key_of<T>("affine_grid"), AffineGridArgs{theta.in(), y.out(), 1, 2, 3});
  expect_all(y, {-0.5, -2.5, 0.5, -2.5, 1.5, -2.5, -0.5, 1.5, 0.5, 1.5, 1.5, 1.5}, "places");
  launch(key_of<T>("affine_grid_grad"), AffineGridArgs{d.in(), dtheta.out(), 1, 2, 3});
  expect_all(dtheta, {8, 18, 36, 8, 18, 42}, "by the transformation");
}

TEST(DeviceFrames, MoveInTime) {
  Array<int32_t> x({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}), y(12);  // two segments of two frames of three channels
  FramesArgs a = {x.in(), y.out(), 4, 2, 3, 1, 1, 2, 1};
  launch("shift_frames/i32", a);
  EXPECT_EQ(y.values(), (std::vector<double>{0, 5, 3, 1, 0, 6, 0, 11, 9, 7, 0, 12}));
  a.direction = -1;
  launch("shift_frames/i32", a);
  EXPECT_EQ(y.values(), (std::vector<double>{4, 0, 3, 0, 2, 6, 10, 0, 9, 0, 8, 12}));
}

TYPED_TEST(DevicePlaces, ColumnsAreNormalizedByStatisticsThatAreParameters) {
  using T = TypeParam;
  // A slot of two columns that the second row does not show: the first column counts.
  Array<T> x({2, 4, 0, 6}), size({4, 4}), sum({4, 8}), square({1, 4}), w({2, 1}), b({0, 1}), dy({1, 2, 3, 4});
  Array<T> y(4), means(2), scales(2), dx(4), dsize(2), dsum(2), dsquare(2), dw(2), db(2);
  DataNormArgs a = {};
  a.x = x.in(), a.size = size.in(), a.sum = sum.in(), a.square = square.in(), a.scale_w = w.in(), a.bias = b.in();
  a.y = y.out(), a.means = means.out(), a.scales = scales.out(), a.rows = 2, a.columns = 2, a.slot = 2;
  launch(key_of<T>("data_norm"), a);
  expect_all(means, {1, 2}, "means");
  expect_all(scales, {2, 1}, "scales");
  expect_all(y, {4, 3, 0, 1}, "values");
  DataNormArgs g = {};
  g.x = x.in(), g.means_in = means.in(), g.scales_in = scales.in(), g.scale_w = w.in(), g.dy = dy.in();
  g.y = dx.out(), g.dsize = dsize.out(), g.dsum = dsum.out(), g.dsquare = dsquare.out();
  g.dscale_w = dw.out(), g.dbias = db.out(), g.rows = 2, g.columns = 2, g.slot = 2, g.epsilon = 0.5;
  launch(key_of<T>("data_norm_grad"), g);
  expect_all(dx, {4, 2, 12, 4}, "by x");
  expect_all(dsize, {1, 1}, "rows");
  expect_all(dsum, {2, 4}, "sums");
  expect_all(dsquare, {1.5, 4.5}, "squares");
  expect_all(dw, {2, 4}, "by the scale");
  expect_all(db, {4, 6}, "by the bias");
  g.slot = 0;
  launch(key_of<T>("data_norm_grad"), g);
  expect_all(dsize, {2, 2}, "rows without slots");
  expect_all(dsum, {2, 10}, "sums without slots");
  expect_all(dsquare, {3, 21}, "squares without slots");
}

// Windows as rows: what "unfold" gives with the last axes exchanged, and both ways back give the same.
TYPED_TEST(DevicePlaces, WindowsAsRows) {
  using T = TypeParam;
  constexpr int64_t kSamples = 2, kChannels = 3, kTaps = 6, kWindows = 6;
  const size_t n = kSamples * kChannels * kTaps * kWindows, images = kSamples * kChannels * 20;
  const auto xs = held<T>(random_values(images, -1, 1)), ds = held<T>(random_values(n, -1, 1, 2));
  std::vector<double> turned(n);
  const auto row_place = [](size_t i) {  // of element i of [samples, channels, taps, windows]
    const size_t window = i % kWindows, tap = i / kWindows % kTaps, channel = i / kWindows / kTaps % kChannels;
    return ((i / kWindows / kTaps / kChannels * kWindows + window) * kChannels + channel) * kTaps + tap;
  };
  for (size_t i = 0; i < n; ++i) turned[row_place(i)] = ds[i];
  Array<T> x(xs), columns(n), rows(n), d(ds), d_rows(turned), dx(images), dx_rows(images);
  UnfoldArgs a = {x.in(), columns.out(), kSamples * kChannels, {4, 5}, {3, 2}, {2, 3}, {1, 2}, {1, 1}, {0, 0}, 0};
  launch(key_of<T>("unfold"), a);
  a.channels = kChannels, a.y = rows.out();
  launch(key_of<T>("unfold"), a);
  for (size_t i = 0; i < n; ++i) EXPECT_EQ(rows[row_place(i)], columns[i]) << i;
  a.x = d_rows.in(), a.y = dx_rows.out();
  launch(key_of<T>("unfold_grad"), a);
  a.channels = 0, a.x = d.in(), a.y = dx.out();
  launch(key_of<T>("unfold_grad"), a);
  EXPECT_EQ(dx_rows.values(), dx.values());
}

}  // namespace
}  // namespace anabranch::device
