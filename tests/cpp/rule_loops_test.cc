// The vector loops of the update rules: the bits of plain loops, wherever a loop is cut.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <random>
#include <vector>

#include "ops/optim/rule_loops.h"

namespace anabranch::optim {
namespace {

using Arrays = std::vector<std::vector<float>>;  // parameter, then state; positive, as squares are
using Update = std::function<void(const std::vector<float*>&, const float* grad, int64_t n)>;

std::vector<float> random_floats(size_t n, float lo, unsigned seed) {
  std::mt19937 gen(seed);
  std::uniform_real_distribution<float> draw(lo, 1.0f);
  std::vector<float> x(n);
  for (float& v : x) v = draw(gen);
  return x;
}

void apply(const Update& update, Arrays& arrays, const std::vector<float>& grad, size_t begin, size_t end) {
  std::vector<float*> at;
  for (auto& a : arrays) at.push_back(a.data() + begin);
  update(at, grad.data() + begin, static_cast<int64_t>(end - begin));
}

void expect_same_anywhere(const Update& update, const Update& plain) {
  for (size_t n : {1, 3, 4, 7, 16, 17, 64, 133}) {
    const Arrays start = {random_floats(n, -1, 1), random_floats(n, 0.1f, 2), random_floats(n, 0.1f, 3),
                          random_floats(n, 0.0f, 4)};
    const auto grad = random_floats(n, -1, 5);
    Arrays whole = start, cut = start, reference = start;
    apply(update, whole, grad, 0, n);
    for (size_t b = 0; b < n; b += 5) apply(update, cut, grad, b, std::min(n, b + 5));
    for (size_t i = 0; i < n; ++i) apply(plain, reference, grad, i, i + 1);
    EXPECT_EQ(whole, cut) << n;
    EXPECT_EQ(whole, reference) << n;
  }
}

TEST(RuleLoops, Sgd) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) { loops::update(rules::Sgd<float>{0.3f}, a[0], a.data() + 1, g, n); },
      [](auto& a, auto* g, int64_t) { *a[0] -= 0.3f * *g; });
}

TEST(RuleLoops, Momentum) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Momentum<float>{0.9f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = *a[1] * 0.9f + *g;
        *a[0] -= 0.3f * *a[1];
      });
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Nesterov<float>{0.9f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = *a[1] * 0.9f + *g;
        *a[0] -= (*g + *a[1] * 0.9f) * 0.3f;
      });
}

TEST(RuleLoops, Adam) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Adam<float>{0.9f, 0.99f, 1e-8f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = 0.9f * *a[1] + (1 - 0.9f) * *g;
        *a[2] = 0.99f * *a[2] + (1 - 0.99f) * (*g * *g);
        *a[0] -= 0.3f * (*a[1] / (std::sqrt(*a[2]) + 1e-8f));
      });
}

TEST(RuleLoops, Adamax) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Adamax<float>{0.9f, 0.99f, 1e-8f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = 0.9f * *a[1] + (1 - 0.9f) * *g;
        *a[2] = std::max(std::abs(*g), 0.99f * *a[2] + 1e-8f);
        *a[0] -= 0.3f * (*a[1] / *a[2]);
      });
}

TEST(RuleLoops, Adagrad) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Adagrad<float>{1e-6f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = *a[1] + *g * *g;
        *a[0] -= 0.3f * *g / (std::sqrt(*a[1]) + 1e-6f);
      });
}

TEST(RuleLoops, DecayedAdagrad) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::DecayedAdagrad<float>{0.9f, 0.2f, 1e-6f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = 0.9f * *a[1] + 0.2f * *g * *g;
        *a[0] -= 0.3f * *g / (std::sqrt(*a[1]) + 1e-6f);
      });
}

TEST(RuleLoops, Adadelta) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Adadelta<float>{0.9f, 1e-6f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        *a[1] = 0.9f * *a[1] + (1 - 0.9f) * (*g * *g);
        const float under = *a[1] + 1e-6f;
        const float by = -std::sqrt((*a[2] + 1e-6f) / under) * *g;
        *a[2] = 0.9f * *a[2] + (1 - 0.9f) * (by * by);
        *a[0] -= std::sqrt((*a[2] + 1e-6f) / under) * *g;
      });
}

TEST(RuleLoops, RmsProp) {
  for (bool centered : {false, true}) {
    expect_same_anywhere(
        [=](auto& a, auto* g, int64_t n) {
          if (centered)
            loops::update(rules::CenteredRmsProp<float>{0.9f, 0.5f, 2.0f, 0.3f}, a[0], a.data() + 1, g, n);
          else
            loops::update(rules::RmsProp<float>{0.9f, 0.5f, 2.0f, 0.3f}, a[0], a.data() + 1, g, n);
        },
        [=](auto& a, auto* g, int64_t) {
          *a[1] = 0.9f * *a[1] + (1 - 0.9f) * (*g * *g);
          float under = *a[1];
          if (centered) {
            *a[3] = 0.9f * *a[3] + (1 - 0.9f) * *g;
            under -= *a[3] * *a[3];
          }
          *a[2] = 0.5f * *a[2] + 0.3f * *g / std::sqrt(under + 2.0f);
          *a[0] -= *a[2];
        });
  }
}

TEST(RuleLoops, Ftrl) {
  expect_same_anywhere(
      [](auto& a, auto* g, int64_t n) {
        loops::update(rules::Ftrl<float>{0.4f, 0.1f, -0.5f, 0.3f}, a[0], a.data() + 1, g, n);
      },
      [](auto& a, auto* g, int64_t) {
        const float sum = *a[1] + *g * *g, root = std::sqrt(sum);
        *a[2] += *g - (root - std::sqrt(*a[1])) / 0.3f * *a[0];
        const float pull = (*a[2] > 0 ? 0.4f : *a[2] < 0 ? -0.4f : 0.0f) - *a[2];
        *a[0] = std::abs(*a[2]) > 0.4f ? pull / (root / 0.3f + 2 * 0.1f) : 0.0f;
        *a[1] = sum;
      });
}

}  // namespace
}  // namespace anabranch::optim
