// Statistics of a column of text, in memory that does not grow with the number of values: counts, the range and moments
// of its numbers, a sample of them, an estimate of the number of distinct texts, and the most frequent texts. Numbers,
// ids and missing values are recognized as a reader with a schema does (data/number.h, data/transform.h).
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

namespace anabranch::data {

// How many different texts there are: exact up to kExact, then HyperLogLog, within about 2 %.
class Distinct {
 public:
  static constexpr size_t kExact = 256;
  void add(uint64_t hash);
  double count() const;
  bool is_exact() const { return registers_.empty(); }

 private:
  void keep(uint64_t hash);
  std::unordered_set<uint64_t> hashes_;
  std::vector<uint8_t> registers_;
};

// The most frequent texts (Misra and Gries): a count is too small by at most lost().
class Heavy {
 public:
  void add(std::string_view text);
  int64_t lost() const { return lost_; }
  std::vector<std::pair<std::string, int64_t>> top(size_t count) const;  // descending; equal counts by text

 private:
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  void shrink();
  std::unordered_map<std::string, int64_t, Hash, std::equal_to<>> counts_;
  int64_t lost_ = 0;
};

class ColumnStats {
 public:
  static constexpr size_t kSample = 4096;
  static constexpr size_t kLongText = 256;  // longer texts are counted, but cannot be among the most frequent

  explicit ColumnStats(std::string name) : name_(std::move(name)) {}
  void add(std::string_view text);

  const std::string& name() const { return name_; }
  int64_t values = 0;                 // all fields
  int64_t empty = 0;                  // missing for every type
  int64_t nan = 0;                    // missing for numbers, among `numbers`
  int64_t numbers = 0, integers = 0;  // fields that are one, empty ones apart
  int64_t infinite = 0;               // numbers without a place in float32, and infinity: malformed without `clip`
  int64_t pipes = 0;                  // fields with a '|': lists
  int64_t phrases = 0;                // fields of several words, with spaces between them
  int64_t words = 0, spelled = 0;     // their words, and those of them that start with a letter
  int64_t long_texts = 0;
  double low = 0, high = 0, mean = 0, squares = 0;  // of finite numbers; squares: sum of (x - mean)^2
  int64_t finite() const { return numbers - nan - infinite; }
  const std::vector<float>& sample() const { return sample_; }  // of finite numbers
  const Distinct& distinct() const { return distinct_; }
  const Distinct& distinct_words() const { return distinct_words_; }
  const Heavy& heavy() const { return heavy_; }

 private:
  void add_words(std::string_view text);
  void add_number(float value);
  std::string name_;
  std::vector<float> sample_;
  uint64_t random_ = 0x9e3779b97f4a7c15;  // the same sample for the same values
  Distinct distinct_, distinct_words_;
  Heavy heavy_;
};

}  // namespace anabranch::data
