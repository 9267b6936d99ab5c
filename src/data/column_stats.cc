#include "data/column_stats.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "data/number.h"
#include "data/row_format.h"

namespace anabranch::data {
namespace {

constexpr int kRegisterBits = 12;
constexpr size_t kHeavy = 256;                 // that are kept
constexpr uint64_t kStatsSeed = 0x7374617473;  // another than those of ids

}  // namespace

void Distinct::add(uint64_t hash) {
  if (!is_exact()) return keep(hash);
  hashes_.insert(hash);
  if (hashes_.size() <= kExact) return;
  registers_.assign(size_t{1} << kRegisterBits, 0);
  for (const uint64_t one : hashes_) keep(one);
  hashes_ = {};
}

void Distinct::keep(uint64_t hash) {
  uint8_t& place = registers_[hash >> (64 - kRegisterBits)];
  const uint64_t rest = hash << kRegisterBits;
  place = std::max(place, static_cast<uint8_t>(std::min(std::countl_zero(rest), 64 - kRegisterBits) + 1));
}

double Distinct::count() const {
  if (is_exact()) return static_cast<double>(hashes_.size());
  const auto m = static_cast<double>(registers_.size());
  double sum = 0, zeros = 0;
  for (const uint8_t place : registers_) {
    sum += std::ldexp(1.0, -place);
    zeros += place == 0;
  }
  const double raw = 0.7213 / (1 + 1.079 / m) * m * m / sum;
  return raw <= 2.5 * m && zeros > 0 ? m * std::log(m / zeros) : raw;  // small numbers by the empty registers
}

void Heavy::add(std::string_view text) {
  const auto found = counts_.find(text);
  if (found != counts_.end()) {
    ++found->second;
    return;
  }
  counts_.emplace(text, 1);
  if (counts_.size() > 2 * kHeavy) shrink();
}

// Subtracts the largest count that is not kept from all.
void Heavy::shrink() {
  std::vector<int64_t> counts;
  for (const auto& one : counts_) counts.push_back(one.second);
  const auto middle = counts.begin() + kHeavy;
  std::nth_element(counts.begin(), middle, counts.end(), std::greater<>());
  const int64_t less = *middle;
  lost_ += less;
  for (auto& one : counts_) one.second -= less;
  std::erase_if(counts_, [](const auto& one) { return one.second <= 0; });
}

std::vector<std::pair<std::string, int64_t>> Heavy::top(size_t count) const {
  std::vector<std::pair<std::string, int64_t>> all(counts_.begin(), counts_.end());
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  if (all.size() > count) all.resize(count);
  return all;
}

void ColumnStats::add(std::string_view text) {
  ++values;
  if (text.empty()) {
    ++empty;
    return;
  }
  distinct_.add(hash_bytes(text, kStatsSeed));
  if (text.size() <= kLongText) {
    heavy_.add(text);
  } else {
    ++long_texts;
  }
  pipes += text.find('|') != std::string_view::npos;
  add_words(text);
  uint64_t id = 0;
  integers += careful_id(text, &id) == Spelling::kGood;
  float value = 0;
  const Spelling spelling = careful_float(text, &value);
  if (spelling == Spelling::kNone) return;
  ++numbers;
  if (spelling == Spelling::kRange || std::isinf(value)) {
    ++infinite;
  } else if (std::isnan(value)) {
    ++nan;
  } else {
    add_number(value);
  }
}

void ColumnStats::add_words(std::string_view text) {
  if (text.find(' ') == std::string_view::npos) return;
  ++phrases;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    if (word.empty()) continue;
    ++words;
    const auto first = static_cast<unsigned char>(word.front());
    spelled += first >= 0x80 || std::isalpha(first);  // those of other alphabets start with a byte above ASCII
    distinct_words_.add(hash_bytes(word, kStatsSeed));
  }
}

void ColumnStats::add_number(float value) {
  const int64_t count = finite();
  const double x = value, step = x - mean;
  low = count == 1 ? x : std::min(low, x);
  high = count == 1 ? x : std::max(high, x);
  mean += step / static_cast<double>(count);
  squares += step * (x - mean);
  if (sample_.size() < kSample) {
    sample_.push_back(value);
    return;
  }
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  const uint64_t place = hash_to_id(random_, static_cast<uint64_t>(count));
  if (place < kSample) sample_[place] = value;
}

}  // namespace anabranch::data
