// Numbers and rows of sequences: softmax, sums of rows, rows with lookahead, position encodings.
#include "host_kernels.h"
#include "ops/device/args_sequence.h"

namespace anabranch::device {
namespace {

template <class T> class DeviceSequenceRows : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceSequenceRows, Floats);

TYPED_TEST(DeviceSequenceRows, Softmax) {
  using T = TypeParam;
  const auto xs = held<T>({1, 3, 0.5, -2, 1}), ds = held<T>({1, -1, 2, 0.5, 3});
  Array<T> x(xs), y(5), d(ds), dx(5);
  Array<int64_t> offsets({0, 2, 2, 5});  // the second is empty
  launch(key_of<T>("sequence_softmax"), SequenceSoftmaxArgs{x.in(), {}, offsets.in(), y.out(), 3});
  launch(key_of<T>("sequence_softmax_grad"), SequenceSoftmaxArgs{y.in(), d.in(), offsets.in(), dx.out(), 3});
  for (const auto& [first, last] : {std::pair<size_t, size_t>{0, 2}, {2, 5}}) {
    double sum = 0, slope = 0;
    for (size_t i = first; i < last; ++i) sum += std::exp(xs[i]);
    for (size_t i = first; i < last; ++i) slope += std::exp(xs[i]) / sum * ds[i];
    for (size_t i = first; i < last; ++i) {
      expect_near(y[i], std::exp(xs[i]) / sum, 2 * rounding<T>(), "softmax");
      expect_near(dx[i], std::exp(xs[i]) / sum * (ds[i] - slope), 4 * rounding<T>(), "its gradient");
    }
  }
}

TEST(DeviceSequenceSoftmax, ANumberThatIsNoneStaysInItsSequence) {
  Array<double> x({1, NAN, 2, 1000, -1000}), y(5);
  Array<int64_t> offsets({0, 3, 5});
  launch("sequence_softmax/f64", SequenceSoftmaxArgs{x.in(), {}, offsets.in(), y.out(), 2});
  expect_all(y, {NAN, NAN, NAN, 1, 0}, "softmax");
}

TYPED_TEST(DeviceSequenceRows, Sums) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5, 6}), y(6);
  Array<int64_t> starts({0, 2, 2, 5}), places({0, 2, 1, 1, 0});
  launch(key_of<T>("sum_rows"), SumRowsArgs{x.in(), starts.in(), places.in(), y.out(), 3, 2});
  expect_all(y, {6, 8, 0, 0, 7, 10}, "sums");
}

TEST(DeviceSumRows, IntegersWrapAround) {
  Array<int32_t> x({2147483647, 1}), y(1);
  Array<int64_t> starts({0, 2}), places({0, 1});
  launch("sum_rows/i32", SumRowsArgs{x.in(), starts.in(), places.in(), y.out(), 1, 1});
  EXPECT_EQ(y[0], -2147483648.0);
}

TYPED_TEST(DeviceSequenceRows, LookAhead) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5}), filter({2, 10, 100}), y(5), d({1, 2, 3, 4, 5}), dx(5), dfilter(3);
  Array<int64_t> offsets({0, 3, 5});
  launch(key_of<T>("row_conv"), RowConvArgs{x.in(), filter.in(), {}, offsets.in(), y.out(), {}, 2, 5, 1, 3});
  expect_all(y, {322, 34, 6, 58, 10}, "values");
  launch(key_of<T>("row_conv_grad"),
         RowConvArgs{x.in(), filter.in(), d.in(), offsets.in(), dx.out(), dfilter.out(), 2, 5, 1, 3});
  expect_all(dx, {2, 14, 126, 8, 50}, "by x");
  expect_all(dfilter, {55, 28, 3}, "by the filter");
}

TYPED_TEST(DeviceSequenceRows, Encodings) {
  using T = TypeParam;
  Array<T> x({1, 2, 3, 4, 5, 6}), y(6);
  Array<int64_t> offsets({0, 2, 3});
  Array<double> table({0.5, -0.5, 1, 2});
  launch(key_of<T>("position_encoding"), EncodingArgs{x.in(), offsets.in(), table.in(), y.out(), 2, 3, 2, 2, 4});
  expect_all(y, {4, 2, 10, 16, 12, 10}, "values");
}

}  // namespace
}  // namespace anabranch::device
