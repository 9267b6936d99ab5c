// Pools of images with their channels last: a thread takes as many channels as 16 bytes hold, and the bits are those of
// images of one channel each.
#include <algorithm>

#include "host_kernels.h"
#include "ops/device/args_library.h"

namespace anabranch::device {
namespace {

struct Axis {
  int64_t in, kernel, stride, before, after;
};

// [2, height, width, channels] with its windows.
PoolArgs pool_of(int64_t channels, std::vector<Axis> axes, bool adaptive) {
  PoolArgs a{};
  WindowDesc& w = a.window;
  w.axes = 2;
  w.channels_last = 1;
  axes.insert(axes.begin(), Axis{1, 1, 1, 0, 0});
  for (size_t k = 0; k < 3; ++k) {
    const Axis& x = axes[k];
    w.in[k] = x.in, w.kernel[k] = x.kernel, w.stride[k] = x.stride, w.dilation[k] = 1;
    w.before[k] = x.before, w.after[k] = x.after;
    w.out[k] = adaptive && k ? x.kernel : (x.in + x.before + x.after - x.kernel) / x.stride + 1;
  }
  a.batch = 2;
  a.channels = channels;
  a.adaptive = adaptive;
  return a;
}

size_t size_of(const PoolArgs& a, const int64_t (&e)[3]) {
  return static_cast<size_t>(a.batch * a.channels * e[0] * e[1] * e[2]);
}

// Channel c of many.
std::vector<double> channel(const std::vector<double>& all, size_t channels, size_t c) {
  std::vector<double> one;
  for (size_t i = c; i < all.size(); i += channels) one.push_back(all[i]);
  return one;
}

struct Pools {
  std::vector<double> out, dx;
};

template <class T>
Pools pools(const std::string& kind, PoolArgs a, const std::vector<double>& x, const std::vector<double>& dout) {
  const auto pack = static_cast<int64_t>(16 / sizeof(T)), taken = a.channels % pack ? 1 : pack;  // channels of a thread
  const Array<T> images(x), given(dout);
  Array<T> out(size_of(a, a.window.out)), dx(x.size());
  Pools found;
  a.x = images.in();
  a.result = out.out();
  launch(key_of<T>("pool/" + kind), a);
  expect_threads(static_cast<int64_t>(out.size()) / taken, kind);
  a.out = out.in();
  a.dout = given.in();
  a.result = dx.out();
  launch(key_of<T>("pool_grad/" + kind), a);
  expect_threads(static_cast<int64_t>(dx.size()) / taken, kind);
  found.out = out.values();
  found.dx = dx.values();
  return found;
}

template <class T> void check(const std::string& kind, const std::vector<Axis>& axes, bool adaptive, int64_t channels) {
  const PoolArgs all = pool_of(channels, axes, adaptive), one = pool_of(1, axes, adaptive);
  std::vector<double> x = random_values(size_of(all, all.window.in), -3, 3);
  for (double& v : x) v = std::round(v);  // many are equal
  const std::vector<double> dout = held<T>(random_values(size_of(all, all.window.out), -1, 1, 2));
  const Pools found = pools<T>(kind, all, x, dout);
  const auto count = static_cast<size_t>(channels);
  for (size_t c = 0; c < count; ++c) {
    const Pools alone = pools<T>(kind, one, channel(x, count, c), channel(dout, count, c));
    EXPECT_EQ(channel(found.out, count, c), alone.out) << kind << " of channel " << c;
    EXPECT_EQ(channel(found.dx, count, c), alone.dx) << kind << "'s gradient of channel " << c;
  }
}

template <class T> class DevicePools : public testing::Test {};
using Floats = testing::Types<float, double, half, bfloat16>;
TYPED_TEST_SUITE(DevicePools, Floats);

TYPED_TEST(DevicePools, ChannelsThatFillPacksAreTakenTogether) {
  for (const std::string kind : {"max", "avg"}) {
    check<TypeParam>(kind, {{7, 3, 2, 1, 1}, {6, 3, 2, 1, 0}}, false, 16);
    check<TypeParam>(kind, {{5, 2, 1, 0, 0}, {4, 4, 1, 0, 0}}, false, 8);
    check<TypeParam>(kind, {{5, 3, 1, 0, 0}, {7, 2, 1, 0, 0}}, true, 8);
  }
}

TYPED_TEST(DevicePools, OtherChannelsAreTakenOneByOne) {
  for (const std::string kind : {"max", "avg"}) check<TypeParam>(kind, {{5, 3, 2, 1, 1}, {4, 2, 2, 0, 0}}, false, 7);
}

TYPED_TEST(DevicePools, ExtentsThat32BitsMayNotHoldGiveTheSame) {
  for (const std::string kind : {"max", "avg"}) {
    const auto pool = [&](int64_t stride) {  // of an axis with one window
      const PoolArgs a = pool_of(8, {{7, 3, 2, 1, 1}, {4, 4, stride, 0, 0}}, false);
      const std::vector<double> x = random_values(size_of(a, a.window.in), -3, 3);
      return pools<TypeParam>(kind, a, x, held<TypeParam>(random_values(size_of(a, a.window.out), -1, 1, 2)));
    };
    const Pools narrow = pool(1), wide = pool(40000);
    EXPECT_EQ(narrow.out, wide.out) << kind;
    EXPECT_EQ(narrow.dx, wide.dx) << kind;
  }
}

TYPED_TEST(DevicePools, ANumberThatIsNoneIsTheLargestOfItsWindowAndGetsNothing) {
  const PoolArgs a = pool_of(8, {{2, 2, 2, 0, 0}, {2, 2, 2, 0, 0}}, false);
  std::vector<double> x(size_of(a, a.window.in), 1), dout(size_of(a, a.window.out), 1);
  x[8 + 3] = std::nan("");  // of channel 3
  const Pools found = pools<TypeParam>("max", a, x, dout);
  for (size_t c = 0; c < 8; ++c) EXPECT_EQ(std::isnan(found.out[c]), c == 3);
  EXPECT_EQ(found.dx[3] + found.dx[8 + 3] + found.dx[16 + 3] + found.dx[24 + 3], 0);
  EXPECT_EQ(found.dx[4], 1);
}

}  // namespace
}  // namespace anabranch::device
