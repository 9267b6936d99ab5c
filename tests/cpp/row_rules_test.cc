// The updates of growable tables: every rule, with and without decay, and the distributions of new rows.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "table_helpers.h"

namespace anabranch::sparse {
namespace {

using test::Keys;
using test::options;
using test::pull;

// A row and its moments.
struct Row {
  std::vector<float> w, first, second;
  float single = 0;
};

// The rules as they are written down, one element at a time.
void reference(const RecordUpdate& u, Row* row, std::vector<float> g) {
  const size_t n = g.size();
  const auto root_of = [&](float x) { return u.power == -0.5f ? std::sqrt(x) : std::pow(x, -u.power); };
  float sums[4] = {};
  for (size_t j = 0; j < n; ++j) {
    float& w = row->w[j];
    w -= u.shrink * w;
    g[j] += u.l2_decay * w;
    g[j] += u.l1_decay * (w > 0 ? 1.0f : w < 0 ? -1.0f : 0.0f);
    sums[j % 4] += g[j] * g[j];
  }
  if (u.rule == RowRule::kRowAdagrad) row->single += (sums[0] + sums[1] + (sums[2] + sums[3])) / static_cast<float>(n);
  for (size_t j = 0; j < n; ++j) {
    float &w = row->w[j], &m = row->first[j], &v = row->second[j];
    switch (u.rule) {
      case RowRule::kSgd: w -= u.rate * g[j]; break;
      case RowRule::kAdagrad:
        m += g[j] * g[j];
        w -= u.rate * g[j] / (std::sqrt(m) + u.epsilon);
        break;
      case RowRule::kAdam:
        m = u.beta1 * m + (1 - u.beta1) * g[j];
        v = u.beta2 * v + (1 - u.beta2) * (g[j] * g[j]);
        w -= u.rate * (m / (std::sqrt(v) + u.epsilon));
        break;
      case RowRule::kMomentum:
        m = m * u.mu + g[j];
        w -= u.nesterov ? (g[j] + m * u.mu) * u.rate : u.rate * m;
        break;
      case RowRule::kFtrl: {
        const float sum = m + g[j] * g[j];
        const float root = root_of(sum), before = root_of(m);
        v += g[j] - (root - before) / u.rate * w;
        const float border = v > 0 ? u.l1 : v < 0 ? -u.l1 : 0;
        w = std::abs(v) > u.l1 ? (border - v) / (root / u.rate + 2 * u.l2) : 0;
        m = sum;
        break;
      }
      case RowRule::kRowAdagrad: w -= u.rate * g[j] / (std::sqrt(row->single) + u.epsilon);
    }
  }
}

std::vector<RecordUpdate> updates() {
  std::vector<RecordUpdate> all;
  for (const RowRule rule : test::kRules) all.push_back(test::rule(rule));
  all.push_back(test::rule(RowRule::kMomentum));
  all.back().nesterov = true;
  all.push_back(test::rule(RowRule::kFtrl));
  all.back().power = -0.7f;
  const size_t plain = all.size();
  for (size_t i = 0; i < plain; ++i) {
    all.push_back(all[i]);
    all.back().l2_decay = 0.3f;
    all.push_back(all[i]);
    all.back().l1_decay = 0.2f;
    all.push_back(all[i]);
    all.back().shrink = 0.1f;
    all.back().l2_decay = 0.1f;
  }
  return all;
}

// The sums of the gradients of each key, in order.
std::map<int64_t, std::vector<float>> sums_of(const Keys& keys, const std::vector<float>& grads) {
  const size_t n = grads.size() / keys.size();
  std::map<int64_t, std::vector<float>> sums;
  for (size_t i = 0; i < keys.size(); ++i) {
    auto& sum = sums[keys[i]];
    if (sum.empty()) {
      sum.assign(grads.begin() + static_cast<int64_t>(i * n), grads.begin() + static_cast<int64_t>((i + 1) * n));
    } else {
      for (size_t j = 0; j < n; ++j) sum[j] += grads[i * n + j];
    }
  }
  return sums;
}

TEST(RowRules, UpdatesFollowTheFormulasAndAddUpRepeatedKeys) {
  for (const RecordUpdate& u : updates()) {
    for (const int64_t width : {1, 5, 16, 67}) {
      TableOptions o = options(width, u.rule);
      o.moment_start = 0.5f;
      o.by_updates = true;
      GrowableTable table("t", o);
      std::map<int64_t, Row> expected;
      GrowableTable::Scratch scratch;
      for (uint64_t step = 0; step < 4; ++step) {
        const Keys keys = test::random_keys(300, step, 40);
        const auto grads = test::random_floats(keys.size() * static_cast<size_t>(width), step);
        for (const auto& [key, sum] : sums_of(keys, grads)) {
          auto [at, fresh] = expected.try_emplace(key);
          if (fresh) {
            const std::vector<float> start(static_cast<size_t>(width), 0.5f);
            at->second = {pull(table, {key}), start, start, 0.5f};
          }
          reference(u, &at->second, sum);
        }
        table.update(keys.data(), static_cast<int64_t>(keys.size()), grads.data(), u, &scratch, nullptr);
      }
      for (const auto& [key, row] : expected) {
        ASSERT_EQ(pull(table, {key}), row.w) << test::name_of(u.rule) << " of width " << width;
      }
    }
  }
}

// Numbers of many new rows.
std::vector<float> fresh(Start start, float low, float high) {
  TableOptions o = options(8);
  o.start = start;
  o.low = low;
  o.high = high;
  o.by_updates = true;
  GrowableTable table("t", o);
  Keys keys(50000);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = static_cast<int64_t>(i) * 977;
  auto all = pull(table, keys);
  std::sort(all.begin(), all.end());
  return all;
}

// The largest distance between the distribution of sorted numbers and the one given; 1.63 / sqrt(n) has probability 1
// %.
template <class Cdf> double distance(const std::vector<float>& sorted, const Cdf& cdf) {
  double most = 0;
  const auto n = static_cast<double>(sorted.size());
  for (size_t i = 0; i < sorted.size(); ++i) {
    most = std::max(most, std::abs(cdf(sorted[i]) - (static_cast<double>(i) + 0.5) / n));
  }
  return most * std::sqrt(n);
}

TEST(RowRules, NewRowsHaveTheirDistribution) {
  const auto normal = [](double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); };
  const auto uniform = fresh(Start::kUniform, -0.5f, 0.25f);
  EXPECT_LT(distance(uniform, [](double x) { return (x + 0.5) / 0.75; }), 1.63);
  const auto gauss = fresh(Start::kNormal, 0.5f, 0.1f);
  EXPECT_LT(distance(gauss, [&](double x) { return normal((x - 0.5) / 0.1); }), 1.63);
  const auto cut = fresh(Start::kTruncatedNormal, 0.5f, 0.1f);
  EXPECT_LT(distance(cut, [&](double x) { return (normal((x - 0.5) / 0.1) - normal(-2)) / (1 - 2 * normal(-2)); }),
            1.63);
  EXPECT_GE(cut.front(), 0.3f);
  EXPECT_LE(cut.back(), 0.7f);
  EXPECT_GT(gauss.back(), 0.85f);
  EXPECT_EQ(fresh(Start::kNormal, 2, 0), std::vector<float>(400000, 2.0f));
}

}  // namespace
}  // namespace anabranch::sparse
