// Update rules, dense and by rows, and groups of equal ids.
#include <memory>

#include "ops/device/args_index.h"
#include "update_rules.h"

namespace anabranch::device {
namespace {

template <class T> struct Parameter {
  static constexpr size_t kRows = 5, kWidth = 3, kSize = kRows * kWidth;
  Array<T> p{held<T>(random_values(kSize, -1, 1))};
  // The squared mean must not be above the mean square.
  Array<T> s0{held<T>(random_values(kSize, 0.5, 1, 2))}, s1{held<T>(random_values(kSize, 0.5, 1, 3))},
      s2{held<T>(random_values(kSize, 0.1, 0.2, 4))};
  Array<T> rate{std::vector<double>{Array<T>::number(Array<T>::of(0.1))}}, r0{std::vector<double>{kReads[0]}},
      r1{std::vector<double>{kReads[1]}};

  UpdateArgs args(const Rule& rule, DeviceIn grad) {
    UpdateArgs a = {};
    a.param = p.out(), a.grad = grad, a.rate = rate.in(), a.n = kSize;
    Array<T>* states[] = {&s0, &s1, &s2};
    for (int k = 0; k < rule.states; ++k) a.state[k] = states[k]->out();
    if (rule.reads > 0) a.reads[0] = r0.in();
    if (rule.reads > 1) a.reads[1] = r1.in();
    std::memcpy(a.p, rule.p, sizeof a.p);
    return a;
  }
  State element(size_t i) const { return {p[i], {s0[i], s1[i], s2[i]}}; }
};

template <class T> class DeviceUpdate : public ::testing::Test {};
TYPED_TEST_SUITE(DeviceUpdate, RealFloats);

// Runs the rule and compares with one element after the other; grads: of each element, NaN: it is left alone.
template <class T>
void check_rule(const Rule& rule, Parameter<T>& own, const std::vector<double>& grads,
                const std::function<void()>& run) {
  std::vector<State> expected;
  for (size_t i = 0; i < own.kSize; ++i) {
    expected.push_back(own.element(i));
    if (std::isnan(grads[i])) continue;
    rule.step(expected[i], grads[i], rule.p, own.rate[0], kReads);
  }
  run();
  for (size_t i = 0; i < own.kSize; ++i) {
    const State got = own.element(i);
    expect_near(got.p, expected[i].p, 20 * rounding<T>(), std::string(rule.name) + " parameter");
    for (int k = 0; k < rule.states; ++k) expect_near(got.s[k], expected[i].s[k], 20 * rounding<T>(), rule.name);
  }
}

TYPED_TEST(DeviceUpdate, DenseGradients) {
  for (const Rule& rule : kRules) {
    Parameter<TypeParam> own;
    const auto gs = held<TypeParam>(random_values(own.kSize, -1, 1, 5));
    Array<TypeParam> g(gs);
    check_rule(rule, own, gs,
               [&] { launch(key_of<TypeParam>(std::string("update/") + rule.name), own.args(rule, g.in())); });
  }
}

struct Grouped {  // ids brought together
  Array<int64_t> ids, rows, starts, count, word;
  Array<int32_t> order;
  Grouped(const std::vector<double>& of, int64_t height)
      : ids(of), rows(of.size()), starts(of.size() + 1), count(1), word(1), order(of.size()) {
    launch("group_rows/i64", GroupRowsArgs{ids.in(), rows.out(), starts.out(), order.out(), count.out(), sink_of(word),
                                           static_cast<int64_t>(of.size()), height});
  }
  RowGroups groups() const { return {rows.in(), starts.in(), order.in(), count.in()}; }
};

TYPED_TEST(DeviceUpdate, SparseGradients) {
  using T = TypeParam;
  const std::vector<double> ids = {3, 0, 3, -1, 4, 3};
  for (const Rule& rule : kRules) {
    for (const bool touched : {true, false}) {
      Parameter<T> own;
      constexpr size_t kWidth = Parameter<T>::kWidth;
      const auto values = held<T>(random_values(ids.size() * kWidth, -1, 1, 6));
      std::vector<double> dense(own.kSize, touched ? NAN : 0.0);
      for (size_t k = 0; k < ids.size(); ++k) {
        for (size_t j = 0; j < kWidth && ids[k] >= 0; ++j) {
          double& g = dense[static_cast<size_t>(ids[k]) * kWidth + j];
          g = (std::isnan(g) ? 0 : g) + values[k * kWidth + j];
        }
      }
      Array<T> g(values);
      Grouped grouped(ids, own.kRows);
      UpdateRowsArgs args = {own.args(rule, g.in()), grouped.groups(), 6, own.kRows, kWidth};
      check_rule(rule, own, dense, [&] {
        launch(key_of<T>(std::string(touched ? "update_touched/" : "update_rows/") + rule.name), args);
      });
    }
  }
}

TYPED_TEST(DeviceUpdate, ManyParametersInOneLaunch) {
  using T = TypeParam;
  for (const Rule* rule : {&kRules[0], &kRules[1], &kRules[5]}) {
    constexpr size_t kSizes[] = {3000, 1, 0, 1024, 1025};
    std::vector<std::unique_ptr<Array<T>>> held_arrays;
    const auto array = [&](size_t n, uint32_t seed) {
      held_arrays.push_back(std::make_unique<Array<T>>(held<T>(random_values(n, 0.5, 1, seed))));
      return held_arrays.back().get();
    };
    Parameter<T> own;
    Plain<UpdateManyEntry> table(std::size(kSizes));
    Array<int64_t> starts(std::size(kSizes) + 1);
    std::vector<std::array<Array<T>*, 4>> arrays;
    int64_t chunks = 0;
    for (size_t k = 0; k < std::size(kSizes); ++k) {
      const size_t n = kSizes[k];
      const auto seed = static_cast<uint32_t>(k);
      arrays.push_back({array(n, seed), array(n, seed + 10), array(n, seed + 20), array(n, seed + 30)});
      UpdateArgs a = own.args(*rule, arrays.back()[3]->in());
      a.param = arrays.back()[0]->out(), a.n = static_cast<int64_t>(n);
      for (size_t s = 0; s < 2; ++s) a.state[s] = arrays.back()[s + 1]->out();
      table.at(k) = {a, {}};
      starts.at(k) = chunks;
      chunks += (a.n + kUpdateChunk - 1) / kUpdateChunk;
    }
    starts.at(std::size(kSizes)) = chunks;
    std::vector<std::vector<State>> expected;
    for (const auto& a : arrays) {
      expected.emplace_back();
      for (size_t i = 0; i < a[0]->size(); ++i) {
        State e{(*a[0])[i], {(*a[1])[i], (*a[2])[i], 0}};
        rule->step(e, (*a[3])[i], rule->p, own.rate[0], kReads);
        expected.back().push_back(e);
      }
    }
    launch(key_of<T>(std::string("update_many/") + rule->name),
           UpdateManyArgs{table.in(), starts.in(), std::size(kSizes), chunks});
    for (size_t k = 0; k < arrays.size(); ++k) {
      for (size_t i = 0; i < arrays[k][0]->size(); ++i)
        expect_near((*arrays[k][0])[i], expected[k][i].p, 20 * rounding<T>(), rule->name);
    }
  }
}

TYPED_TEST(DeviceUpdate, NumbersOfTheOtherFloatAndNextPowers) {
  using T = TypeParam;
  using Other = std::conditional_t<std::is_same_v<T, float>, double, float>;
  Parameter<T> own;
  Array<T> g(std::vector<double>(own.kSize, 1));
  Array<Other> rate(std::vector<double>{0.5});
  UpdateArgs args = own.args(kRules[0], g.in());
  args.rate = rate.in(), args.flags = kOtherFloat;
  const double before = own.p[0];
  launch(key_of<T>("update/sgd"), args);
  expect_near(own.p[0], before - 0.5, rounding<T>(), "sgd");
  Array<T> out1(1), out2(1), beta2(std::vector<double>{0.5});
  args = own.args(kRules[5], g.in());
  args.state[0] = out1.out(), args.state[1] = out2.out(), args.reads[3] = beta2.in();
  launch(key_of<T>("next_powers"), args);
  expect_near(out1[0], 0.81 * 0.9, rounding<T>(), "beta1");
  expect_near(out2[0], 0.9 * 0.5, rounding<T>(), "beta2, of a tensor");
}

}  // namespace
}  // namespace anabranch::device
