// Batches on their way to a device while it computes: what arrives, which memory they use, and what they wait for.
#include "core/uploads.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/flags.h"
#include "core/host_copy.h"
#include "device/pool.h"

namespace anabranch {
namespace {

class UploadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    set_flag("FLAGS_device_plugin", std::string("simdevice"));
    set_flag("FLAGS_simdevice_order", std::string("latest"));
    if (!device::Devices::offered()) GTEST_SKIP() << "the simulated device was not built";
  }
  static Tensor counted(int64_t rows, Place place = {}, float first = 0) {
    Tensor host(Shape{rows, 3}, DType::kFloat32);
    for (int64_t i = 0; i < host.numel(); ++i) host.mutable_data<float>()[i] = first + static_cast<float>(i);
    Tensor there;
    there.copy_from(host, place);
    return there;
  }
  static void expect_equal(const Tensor& a, const Tensor& b) {
    const Tensor x = on_host(a), y = on_host(b);
    ASSERT_EQ(x.shape(), y.shape());
    ASSERT_EQ(x.dtype(), y.dtype());
    for (int64_t i = 0; i < x.numel(); ++i) EXPECT_EQ(x.data<float>()[i], y.data<float>()[i]);
  }
};

TEST_F(UploadsTest, ArriveFromEverywhereWithTheirSequences) {
  Uploads uploads(0, "batches of a test");
  for (const Place from : {Place(), Place::pinned(), Place::cuda(1)}) {
    Tensor fed = counted(4, from, 7);
    fed.set_lod(LoD{{0, 1, 4}});
    const Tensor brought = uploads.bring({&fed, 1}).front();
    EXPECT_EQ(brought.place(), Place::cuda(0));
    EXPECT_EQ(brought.lod(), fed.lod());
    expect_equal(brought, fed);
  }
}

TEST_F(UploadsTest, StayWhereTheyAre) {
  Uploads uploads(1, "batches of a test");
  const Tensor there = counted(2, Place::cuda(1));
  EXPECT_EQ(uploads.bring({&there, 1}).front().raw(), there.raw());
}

TEST_F(UploadsTest, StridedAndEmptyTensors) {
  Uploads uploads(0, "batches of a test");
  const Tensor whole = counted(4);
  Tensor columns;
  columns.view(const_cast<void*>(whole.raw()), Shape{4, 2}, DType::kFloat32, nullptr, 3);
  const std::vector<Tensor> batch{columns, Tensor(Shape{0, 3}, DType::kFloat32)};
  const std::vector<Tensor> brought = uploads.bring(batch);
  const Tensor host = on_host(brought[0]);
  for (int r = 0; r < 4; ++r) {
    for (int c = 0; c < 2; ++c) EXPECT_EQ(host.data<float>()[2 * r + c], static_cast<float>(3 * r + c));
  }
  EXPECT_EQ(brought[1].shape(), Shape({0, 3}));
  EXPECT_TRUE(brought[1].initialized());
}

TEST_F(UploadsTest, ReuseUnreferencedMemory) {
  Uploads uploads(0, "batches of a test");
  const Tensor fed = counted(8);
  std::vector<Tensor> held = uploads.bring({&fed, 1});
  const void* const first = held[0].raw();
  const int64_t used = device::Devices::get().pool(0).used();
  const Tensor other = counted(8, {}, 100);
  const std::vector<Tensor> second = uploads.bring({&other, 1});
  EXPECT_NE(second[0].raw(), first);
  expect_equal(held[0], fed);
  held.clear();
  EXPECT_EQ(uploads.bring({&other, 1})[0].raw(), first);
  for (int k = 0; k < 50; ++k) uploads.bring({&fed, 1});
  EXPECT_LE(device::Devices::get().pool(0).used(), used + 512);
}

TEST_F(UploadsTest, GiveBackWhatNoBatchUses) {
  Uploads uploads(0, "batches of a test");
  const int64_t before = device::Devices::get().pool(0).used();
  const Tensor large = counted(100'000), small = counted(1);
  uploads.bring({&large, 1});
  EXPECT_GE(device::Devices::get().pool(0).used(), before + static_cast<int64_t>(large.bytes()));
  for (int k = 0; k < 20; ++k) uploads.bring({&small, 1});
  EXPECT_LE(device::Devices::get().pool(0).used(), before + 512);
}

// The device runs what is waited for, and this first. Memory is there from the first batch.
TEST_F(UploadsTest, DoNotWaitForWhatTheDeviceHasUnderWay) {
  const device::Devices& devices = device::Devices::get();
  Uploads uploads(0, "batches of a test");
  const std::vector<Tensor> batch{counted(8), counted(8, Place::pinned())};
  uploads.bring(batch);
  bool called = false;
  const auto call = [](void* arg, int) { *static_cast<bool*>(arg) = true; };
  devices.check(devices.api().queue_call(devices.queue(0, device::QueueKind::kCompute), call, &called), "calling");
  const std::vector<Tensor> brought = uploads.bring(batch);
  EXPECT_FALSE(called);
  devices.wait(0);
  EXPECT_TRUE(called);
  for (size_t i = 0; i < batch.size(); ++i) expect_equal(brought[i], batch[i]);
}

TEST_F(UploadsTest, RefuseWhatIsNotThere) {
  EXPECT_THROW(Uploads(99, "batches of a test"), Error);
  Uploads uploads(0, "batches of a test");
  const std::vector<Tensor> batch{counted(2), Tensor()};
  EXPECT_THROW(uploads.bring(batch), Error);
  expect_equal(uploads.bring({batch.data(), 1})[0], batch[0]);
}

}  // namespace
}  // namespace anabranch
