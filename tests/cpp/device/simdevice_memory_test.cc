// Memory of the simulated device: which memory must not be touched, from where, and when.

#include <cmath>
#include <cstring>
#include <set>

#include "harness.h"

namespace anabranch::device {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kAddressSanitizer = true;
#else
constexpr bool kAddressSanitizer = false;
#endif

TEST(SimdeviceMemory, ACpuThatTouchesItDies) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // a forked process would not have the memory at all
  Sim sim;
  volatile float* p = sim.floats(4, 1);
  EXPECT_DEATH(p[1] = 1.0f, "the CPU touched byte 260 of device 1");  // after the first red zone
  EXPECT_DEATH(static_cast<void>(*p), "the CPU touched byte 256 of device 1");
}

TEST(SimdeviceMemory, NewMemoryHoldsPoison) {
  Sim sim;
  for (const float x : sim.read(sim.floats(5), 5)) {
    EXPECT_TRUE(std::isnan(x));
  }
}

TEST(SimdeviceMemory, NothingIsAllocatedForNoBytes) {
  Sim sim;
  EXPECT_EQ(sim.floats(0), nullptr);
  EXPECT_EQ(sim.pinned(0), nullptr);
  AB_WELL(api.release(0, nullptr));
  AB_WELL(api.release_pinned(nullptr));
}

TEST(SimdeviceMemory, AnAddressRestsFor64Frees) {
  Sim sim;
  std::set<void*> seen;
  void* first = nullptr;
  bool again = false;
  for (int i = 0; i < 80; ++i) {
    void* p = sim.floats(16);
    if (i == 0) first = p;
    if (i <= 64) {
      EXPECT_TRUE(seen.insert(p).second) << "free number " << i;
    }
    again = again || (i > 64 && p == first);
    AB_WELL(api.release(0, p));
  }
  EXPECT_TRUE(again) << "addresses are used up";
}

TEST(SimdeviceMemory, SpaceOfFreedBlocksIsJoined) {
  Sim sim;
  for (int iteration = 0; iteration < 20; ++iteration) {  // many small ones, then one of nearly all
    std::vector<float*> all;
    for (int i = 0; i < 100; ++i) all.push_back(sim.floats(1000));
    for (const size_t first : {1u, 0u}) {  // next to free space, and between two ranges of it
      for (size_t i = first; i < all.size(); i += 2) {
        AB_WELL(api.release(0, all[i]));
      }
    }
    float* most = sim.floats(250000);
    ASSERT_NE(most, nullptr) << iteration;
    AB_WELL(api.release(0, most));
  }
}

TEST(SimdeviceMemory, OutOfMemorySaysHowMuchThereIs) {
  Sim sim;
  float* p = sim.floats(200000);
  void* more = nullptr;
  AB_FAILS(api.allocate(0, 400000, &more), AB_RESOURCE_EXHAUSTED,
           "device 0 has 248576 of 1048576 bytes left, 400000 are requested");
  size_t left = 0, total = 0;
  AB_WELL(api.memory_info(0, &left, &total));
  EXPECT_EQ(left, 248576u);
  EXPECT_EQ(total, 1048576u);
  AB_WELL(api.release(0, p));
  AB_WELL(api.allocate(0, 1000000, &more)) << "what rests is given back first";
}

TEST(SimdeviceMemory, UseAfterReleaseIsNamed) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("compute");
    float* x = sim.floats(4);
    AB_WELL(api.release(0, x));
    AB_WELL(api.queue_mark(q, "#3 relu"));
    AB_WELL(scale(q, nullptr, x, 4, 1, 1));
    AB_FAILS(sim.finish(q), AB_FAULT, "byte 0 of block ");
    EXPECT_THAT(last_error(), testing::HasSubstr("which was released and had 16 bytes"));
  }
}

TEST(SimdeviceMemory, ReleaseBeforeTheLastUseIsFoundInAnyOrder) {
  for (const Flags& flags : all_orders()) {
    for (const bool waits : {false, true}) {
      Sim sim(flags);
      ab_queue *q = sim.queue("compute"), *other = sim.queue("other");
      float* x = sim.floats(4);
      AB_WELL(api.queue_mark(q, "#3 relu"));
      AB_WELL(scale(q, nullptr, x, 4, 1, 1));
      AB_WELL(sim.finish(other));  // chance may have run the kernel by now
      if (waits) {
        AB_WELL(sim.finish(q));
      }
      int status = api.release(0, x);
      std::string text = status ? last_error() : "";
      if (!status && (status = sim.finish(q))) text = last_error();
      EXPECT_EQ(status, waits ? AB_OK : AB_FAULT) << text;
      if (!waits) {
        EXPECT_THAT(text, testing::AnyOf(testing::HasSubstr("#3 relu (test/scale/f32), queue compute of device 0"),
                                         testing::HasSubstr("which was released")));
      }
    }
  }
}

TEST(SimdeviceMemory, WritingBeyondABlockIsFound) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  MapArgs args{{}, {sim.floats(3), 12}, 3, {1}};
  AB_WELL(api.launch(q, kernel("test/overrun/f32"), &args, sizeof args, nullptr, 0));
  if (kAddressSanitizer) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(sim.finish(q), "use-after-poison");
  } else {
    AB_FAILS(sim.finish(q), AB_FAULT, "test/overrun/f32, queue compute of device 0 has written beyond a block");
  }
}

TEST(SimdeviceMemory, AnOperandBeyondItsBlockIsFound) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  AB_WELL(scale(q, nullptr, sim.floats(3), 4, 1, 1));
  AB_FAILS(sim.finish(q), AB_FAULT, "access of 16 bytes at byte 0 of block ");
}

TEST(SimdeviceMemory, AKernelSeesItsOwnDeviceOnly) {
  Sim sim;
  ab_queue* q = sim.queue("compute", 1);
  AB_WELL(scale(q, nullptr, sim.floats(3, 0), 3, 1, 1));
  AB_FAILS(sim.finish(q, 1), AB_FAULT, "uses an address of device 0 as memory of device 1");
}

TEST(SimdeviceMemory, AKernelSeesNoHostMemory) {
  Sim sim;
  ab_queue* q = sim.queue("compute");
  float host[3];
  AB_WELL(scale(q, nullptr, host, 3, 1, 1));
  AB_FAILS(sim.finish(q), AB_FAULT, "uses an address of no device as memory of device 0");
}

TEST(SimdeviceMemory, CopiesNamePinnedMemoryOnly) {
  Sim sim;
  ab_queue* q = sim.queue("up");
  float host[4] = {}, *p = sim.pinned(4), *x = sim.floats(4);
  AB_FAILS(api.copy(q, x, 0, host, AB_HOST_MEMORY, 16), AB_INVALID_ARGUMENT, "host memory that is not pinned");
  AB_FAILS(api.copy(q, x, 0, p + 1, AB_HOST_MEMORY, 16), AB_INVALID_ARGUMENT, "host memory that is not pinned");
  AB_FAILS(api.copy(q, x, 1, p, AB_HOST_MEMORY, 16), AB_INVALID_ARGUMENT, "a copy from the host to device 1");
  AB_FAILS(api.copy(q, x, 0, x + 1, 0, 8), AB_INVALID_ARGUMENT, "overlaps itself");
  AB_WELL(sim.finish(q)) << "nothing was kept";
}

TEST(SimdeviceMemory, APinnedSourceThatChangesTooEarlyIsFoundInAnyOrder) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("up");
    float *p = sim.pinned(4), *x = sim.floats(4);
    memset(p, 0, 16);
    AB_WELL(api.copy(q, x, 0, p, AB_HOST_MEMORY, 16));
    p[3] = 1;
    AB_FAILS(sim.finish(q), AB_FAULT, "pinned memory was written before copy of 16 bytes from the host to device 0");
  }
}

TEST(SimdeviceMemory, APinnedSourceMayComeFromAnotherCopy) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("compute");
    float *p = sim.pinned(4), *x = sim.floats(4), *y = sim.floats(4);
    AB_WELL(scale(q, nullptr, x, 4, 1, 7));
    AB_WELL(api.copy(q, p, AB_HOST_MEMORY, x, 0, 16));
    AB_WELL(api.copy(q, y, 0, p, AB_HOST_MEMORY, 16));
    AB_WELL(sim.finish(q));
    EXPECT_EQ(sim.read(y, 4), std::vector<float>(4, 7.0f));
  }
}

TEST(SimdeviceMemory, AHostThatReadsTooEarlySeesPoison) {
  Sim sim;
  ab_queue* q = sim.queue("down");
  float *p = sim.pinned(4), *x = sim.floats(4);
  memset(p, 0, 16);
  AB_WELL(api.fill(q, x, 0, 16));
  AB_WELL(api.copy(q, p, AB_HOST_MEMORY, x, 0, 16));
  EXPECT_TRUE(std::isnan(p[0]));
  AB_WELL(sim.finish(q));
  EXPECT_EQ(p[0], 0.0f);
}

TEST(SimdeviceMemory, AHostThatReadsWhatTheNextCopyOverwritesSeesIt) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue* q = sim.queue("down");
    float *p = sim.pinned(4), *x = sim.floats(4), *y = sim.floats(4);
    AB_WELL(scale(q, nullptr, x, 4, 1, 1));
    AB_WELL(scale(q, nullptr, y, 4, 1, 2));
    AB_WELL(api.copy(q, p, AB_HOST_MEMORY, x, 0, 16));
    ab_event* first = sim.recorded(q);
    AB_WELL(api.copy(q, p, AB_HOST_MEMORY, y, 0, 16));
    AB_WELL(api.event_wait(first, AB_FOREVER));
    EXPECT_TRUE(std::isnan(p[0]) || p[0] == 2.0f) << p[0];
    AB_WELL(sim.finish(q));
    EXPECT_EQ(p[0], 2.0f);
  }
}

TEST(SimdeviceMemory, PinnedMemoryUnderACopyIsNotReleased) {
  for (const Flags& flags : all_orders()) {
    Sim sim(flags);
    ab_queue *q = sim.queue("down"), *other = sim.queue("other");
    float *p = sim.pinned(4), *x = sim.floats(4);
    AB_WELL(api.copy(q, p, AB_HOST_MEMORY, x, 0, 16));
    AB_WELL(sim.finish(other));
    AB_FAILS(api.release_pinned(p), AB_FAULT,
             "16 pinned bytes are released, and no thread has waited for copy of 16 bytes");
    AB_WELL(sim.finish(q));
    AB_WELL(api.release_pinned(p));
    AB_FAILS(api.release_pinned(p), AB_INVALID_ARGUMENT, "release of host memory that is not pinned");
  }
}

}  // namespace
}  // namespace anabranch::device
