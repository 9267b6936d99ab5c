// The plug-in over the fake runtime.
#pragma once
#include "../device/harness.h"
#include "fake_runtime.h"

namespace anabranch::cuda {

using namespace device;

class Cuda : public testing::Test {
 protected:
  void SetUp() override { fake::reset(); }
  // A failed call leaves no error for a later launch.
  void TearDown() override { EXPECT_EQ(fake::state().last, cudaSuccess); }

  static bool did(const std::string& call) { return testing::Matches(testing::Contains(call))(fake::state().calls); }
  static void fail_next(const char* function, cudaError_t error) { fake::state().failures[function] = error; }
  static int open(int* count) { return api.open(nullptr, count); }
};

}  // namespace anabranch::cuda
