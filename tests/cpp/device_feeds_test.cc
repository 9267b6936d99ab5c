// Fed tensors that lie on a device: borrowed where they lie if the plan needs them there, else copied to the host.
#include <gtest/gtest.h>

#include "base/flags.h"
#include "device/devices.h"
#include "engine/feed_slots.h"

namespace anabranch {
namespace {

class DeviceFeeds : public ::testing::Test {
 protected:
  void SetUp() override {
    set_flag("FLAGS_device_plugin", std::string("simdevice"));
    if (!device::Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
    Tensor host;
    host.resize(Shape{2, 3}, DType::kFloat32);
    for (int i = 0; i < 6; ++i) host.mutable_data<float>()[i] = static_cast<float>(i);
    fed_.copy_from(host, Place::cuda(0));
  }
  // The value of a plan that needs it on this device.
  const Tensor& bound(FeedSlots& slots, Place needed, bool keeps = false) {
    slots.add(0, &value_, keeps, needed);
    slots.bind({{fed_}});
    return value_.tensor();
  }

  Tensor fed_;
  Value value_;
};

TEST_F(DeviceFeeds, StayOnTheDeviceThatNeedsThem) {
  FeedSlots slots;
  const Tensor& t = bound(slots, Place::cuda(0));
  EXPECT_EQ(t.raw(), fed_.raw());
  EXPECT_EQ(t.place(), Place::cuda(0));
  EXPECT_EQ(t.shape(), Shape({2, 3}));
  slots.release();
  EXPECT_FALSE(t.initialized());
}

TEST_F(DeviceFeeds, AreCopiedToTheHostForOtherReaders) {
  for (const Place needed : {Place(), Place::cuda(1)}) {
    for (const bool keeps : {false, true}) {
      FeedSlots slots;
      value_.as<Tensor>() = Tensor();
      const Tensor& t = bound(slots, needed, keeps);
      EXPECT_EQ(t.place(), Place());
      ASSERT_EQ(t.shape(), Shape({2, 3}));
      for (int i = 0; i < 6; ++i) EXPECT_EQ(t.data<float>()[i], static_cast<float>(i));
    }
  }
}

}  // namespace
}  // namespace anabranch
