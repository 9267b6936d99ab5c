// "update_many/<rule>" takes gradients as they come, and neighbors at once: the bits are those of "update/<rule>" by
// gradients that were widened and divided before.
#include <memory>

#include "ops/device/args_update.h"
#include "update_rules.h"

namespace anabranch::device {
namespace {

constexpr size_t kSizes[] = {1, 3, 5, 1000, 1025, 4097};

// A parameter's arrays, whose first element is left out where `at` is 1: they do not start at a pack then.
template <class G> struct Parameter {
  size_t n, at;
  std::vector<std::unique_ptr<Array<float>>> values;  // the parameter and two states
  Array<G> grad;
  Parameter(size_t count, size_t begin, uint32_t seed)
      : n(count), at(begin), grad(random_values(count + begin, -1, 1, seed)) {
    for (uint32_t k = 1; k < 4; ++k) {
      values.push_back(std::make_unique<Array<float>>(held<float>(random_values(n + at, 0.5, 1, seed + 100 * k))));
    }
  }
  DeviceOut out(size_t k) { return {&values[k]->at(at), n * sizeof(float)}; }
  UpdateArgs args(const Rule& rule, const Array<float>& rate, const Array<float>& power1, const Array<float>& power2) {
    UpdateArgs a = {};
    a.param = out(0), a.rate = rate.in(), a.n = static_cast<int64_t>(n);
    for (int s = 0; s < rule.states; ++s) a.state[s] = out(static_cast<size_t>(s) + 1);
    if (rule.reads > 0) a.reads[0] = power1.in(), a.reads[1] = power2.in();
    std::memcpy(a.p, rule.p, sizeof a.p);
    return a;
  }
};

template <class G> class DeviceUpdateMany : public ::testing::Test {
 protected:
  static constexpr size_t kCount = std::size(kSizes);

  // Parameters with an odd number are divided; those from the third on begin between packs.
  static std::vector<std::unique_ptr<Parameter<G>>> parameters() {
    std::vector<std::unique_ptr<Parameter<G>>> made;
    for (const size_t at : {0, 1}) {
      for (size_t k = 0; k < kCount; ++k)
        made.push_back(std::make_unique<Parameter<G>>(kSizes[k], at, static_cast<uint32_t>(k + 10 * at)));
    }
    return made;
  }

  void one_by_one(const Rule& rule, Parameter<G>& own, bool divided) {
    Array<float> grad(own.n);
    for (size_t i = 0; i < own.n; ++i) {
      const float wide = load(own.grad.at(own.at + i));
      grad.at(i) = divided ? wide / scale.at(0) : wide;
    }
    UpdateArgs a = own.args(rule, rate, power1, power2);
    a.grad = grad.in();
    launch(key_of<float>(std::string("update/") + rule.name), a);
  }

  void all_at_once(const Rule& rule, std::vector<std::unique_ptr<Parameter<G>>>& all) {
    Plain<UpdateManyEntry> table(all.size());
    Array<int64_t> starts(all.size() + 1);
    for (size_t k = 0; k < all.size(); ++k) {
      Parameter<G>& own = *all[k];
      UpdateArgs a = own.args(rule, rate, power1, power2);
      a.grad = {&own.grad.at(own.at), own.n * sizeof(G)};
      if (std::is_same_v<G, half>) a.flags = kHalfGrad;
      if (std::is_same_v<G, bfloat16>) a.flags = kBfloat16Grad;
      table.at(k) = {a, k % 2 ? scale.in() : DeviceIn{}};
      starts.at(k + 1) = starts.at(k) + (a.n + kUpdateChunk - 1) / kUpdateChunk;
    }
    launch(key_of<float>(std::string("update_many/") + rule.name),
           UpdateManyArgs{table.in(), starts.in(), static_cast<int64_t>(all.size()), starts.at(all.size())});
  }

  Array<float> rate{std::vector<double>{0.1}}, scale{std::vector<double>{3}}, power1{std::vector<double>{kReads[0]}},
      power2{std::vector<double>{kReads[1]}};
};
using Gradients = ::testing::Types<float, half, bfloat16>;
TYPED_TEST_SUITE(DeviceUpdateMany, Gradients);

TYPED_TEST(DeviceUpdateMany, BitsAreThoseOfElementsOneByOne) {
  for (const Rule* rule : {&kRules[0], &kRules[1], &kRules[2], &kRules[5]}) {
    auto expected = this->parameters(), got = this->parameters();
    for (size_t k = 0; k < expected.size(); ++k) this->one_by_one(*rule, *expected[k], k % 2 != 0);
    this->all_at_once(*rule, got);
    for (size_t k = 0; k < got.size(); ++k) {
      for (size_t s = 0; s < 3; ++s) {
        // No update writes in front of the parameter.
        EXPECT_EQ(got[k]->values[s]->values(), expected[k]->values[s]->values())
            << rule->name << " of " << got[k]->n << " elements, operand " << s;
      }
    }
  }
}

}  // namespace
}  // namespace anabranch::device
