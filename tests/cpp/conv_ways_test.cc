// The choice between implementations of a convolution depends on shapes alone.
#include "ops/nn/conv_ways.h"

#include <gtest/gtest.h>

#include "ops/nn/blocked.h"
#include "ops/nn/conv_rows_loops.h"

namespace anabranch::nn {
namespace {

ConvDims square(int64_t batch, int64_t in, int64_t out, int64_t side, int64_t kernel) {
  ConvDims d;
  d.batch = batch;
  d.in_channels = in;
  d.out_channels = out;
  const int64_t pad = kernel / 2;
  d.window.in = d.window.out = {1, side, side};
  d.window.kernel = {1, kernel, kernel};
  d.window.before = d.window.after = {0, pad, pad};
  return d;
}

class ConvWays : public testing::Test {
 protected:
  void SetUp() override {
    if (rows::sizes().floats > channel_block()) GTEST_SKIP() << "the library uses shorter vectors";
  }
};

TEST_F(ConvWays, SmallImagesWithLargeFiltersAreRows) {
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardFilter}) {
    EXPECT_TRUE(rows_are_faster(pass, square(32, 512, 512, 4, 3)));
    EXPECT_TRUE(rows_are_faster(pass, square(32, 512, 512, 2, 3)));
    EXPECT_TRUE(rows_are_faster(pass, square(32, 1024, 1024, 2, 1)));
  }
}

TEST_F(ConvWays, LargeImagesWithWholeBlocksStayWithTheLibrary) {
  for (const ConvPass pass : {ConvPass::kForward, ConvPass::kBackwardData, ConvPass::kBackwardFilter}) {
    EXPECT_FALSE(rows_are_faster(pass, square(32, 64, 64, 56, 3)));
    EXPECT_FALSE(rows_are_faster(pass, square(32, 3, 64, 64, 3)));
  }
}

TEST_F(ConvWays, GradientsOfLargeFiltersAreRowsWhereTheirImagesAreNot) {
  EXPECT_TRUE(rows_are_faster(ConvPass::kBackwardFilter, square(32, 512, 512, 8, 3)));
}

TEST_F(ConvWays, GroupsStayWithTheLibrary) {
  ConvDims d = square(32, 512, 512, 4, 3);
  d.groups = 2;
  EXPECT_FALSE(rows_are_faster(ConvPass::kForward, d));
}

TEST_F(ConvWays, TheForwardPassIsIndependentOfTheBatch) {
  for (const int64_t channels : {16, 20, 64, 100, 512}) {
    for (const int64_t side : {1, 4, 8, 12, 32}) {
      const bool one = rows_are_faster(ConvPass::kForward, square(1, channels, channels, side, 3));
      EXPECT_EQ(one, rows_are_faster(ConvPass::kForward, square(128, channels, channels, side, 3)));
    }
  }
}

}  // namespace
}  // namespace anabranch::nn
