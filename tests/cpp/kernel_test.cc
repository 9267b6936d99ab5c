// Kernels carry what they captured with them, move, and end it once.
#include "opdef/kernel.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "opdef/kernel_context.h"

namespace anabranch {
namespace {

// The number of a context's replica is what these kernels count in.
int run(const Kernel& kernel) {
  KernelContext c;
  kernel(c);
  return c.replica;
}

TEST(Kernel, AnEmptyOneIsFalse) {
  Kernel kernel;
  EXPECT_FALSE(kernel);
  kernel = [](KernelContext& c) { c.replica = 7; };
  ASSERT_TRUE(kernel);
  const Kernel taken = std::move(kernel);
  EXPECT_FALSE(kernel);  // NOLINT(bugprone-use-after-move): what is moved from is empty
  EXPECT_EQ(run(taken), 7);
}

template <class Held> void check_lifetime() {
  auto shared = std::make_shared<int>(3);
  const std::weak_ptr<int> watched = shared;
  {
    std::vector<Kernel> kernels;
    kernels.emplace_back(
        [held = Held{}, shared = std::move(shared)](KernelContext& c) { c.replica = (*shared)++ + held[0]; });
    EXPECT_EQ(watched.use_count(), 1);
    kernels.resize(10);  // moves it
    EXPECT_EQ(run(kernels[0]), 3);
    Kernel other([](KernelContext& c) { c.replica = 1; });
    other = std::move(kernels[0]);
    EXPECT_FALSE(kernels[0]);
    EXPECT_EQ(run(other), 4);
    EXPECT_EQ(watched.use_count(), 1);
    other = [](KernelContext& c) { c.replica = 9; };
    EXPECT_TRUE(watched.expired());
    EXPECT_EQ(run(other), 9);
  }
}

TEST(Kernel, SmallCapturesLieInItAndEndOnce) { check_lifetime<std::array<char, 8>>(); }
TEST(Kernel, LargeCapturesLiveElsewhereAndEndOnce) { check_lifetime<std::array<char, 200>>(); }

TEST(Kernel, SmallCapturesNeedNoHeap) {
  std::array<int, Kernel::kInline / sizeof(int)> numbers{};
  numbers.back() = 5;
  const Kernel kernel([numbers](KernelContext& c) { c.replica = numbers.back(); });
  const Kernel* where = nullptr;
  const Kernel inside([&where, numbers = 1](KernelContext& c) {
    where = reinterpret_cast<const Kernel*>(&numbers);
    c.replica = numbers;
  });
  EXPECT_EQ(run(kernel), 5);
  EXPECT_EQ(run(inside), 1);
  EXPECT_GE(where, &inside);
  EXPECT_LT(where, &inside + 1);
}

TEST(KernelContext, OnlyAnIterationItselfIsInAnIteration) {
  const KernelContext outside;
  const IterationContext iteration(outside, 3);
  EXPECT_EQ(IterationContext::iterations_of(outside), 0U);
  EXPECT_NE(IterationContext::iterations_of(iteration), 0U);
  const IterationContext copy = iteration;
  EXPECT_EQ(IterationContext::iterations_of(copy), IterationContext::iterations_of(iteration));
  const KernelContext sliced =
      iteration;  // NOLINT(cppcoreguidelines-slicing): kernels of fused ops hand such copies on
  EXPECT_EQ(IterationContext::iterations_of(sliced), 0U);
}

}  // namespace
}  // namespace anabranch
