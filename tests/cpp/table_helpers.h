// Helpers of the tests of growable tables.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "io/atomic_file.h"
#include "sparse/growable_table.h"

namespace anabranch::sparse::test {

using Keys = std::vector<int64_t>;

inline constexpr RowRule kRules[] = {RowRule::kSgd,      RowRule::kAdagrad, RowRule::kAdam,
                                     RowRule::kMomentum, RowRule::kFtrl,    RowRule::kRowAdagrad};
inline const char* name_of(RowRule rule) { return rules::info_of(rule).name; }

inline TableOptions options(int64_t width, RowRule rule = RowRule::kSgd) {
  TableOptions o;
  o.width = width;
  o.rule = rule;
  o.seed = 1;
  o.low = -1;
  o.high = 1;
  return o;
}

// n keys below `range`; the same seed gives the same ones.
inline Keys random_keys(size_t n, uint64_t seed, uint64_t range) {
  std::mt19937_64 draw(seed);
  Keys keys(n);
  for (auto& k : keys) k = static_cast<int64_t>(draw() % range);
  return keys;
}

inline std::vector<float> random_floats(size_t n, uint64_t seed) {
  std::mt19937_64 draw(seed);
  std::vector<float> x(n);
  for (float& v : x) v = static_cast<float>(draw() % 2001) / 1000 - 1;
  return x;
}

inline std::vector<float> pull(GrowableTable& table, const Keys& keys, bool train = true,
                               Parallel* parallel = nullptr) {
  std::vector<float> out(keys.size() * static_cast<size_t>(table.options().width), 99.0f);
  KeyOrder scratch;
  table.pull(keys.data(), static_cast<int64_t>(keys.size()), {.train = train}, out.data(), &scratch, parallel);
  return out;
}

inline RecordUpdate rule(RowRule which) {
  RecordUpdate u;
  u.rule = which;
  u.rate = 0.1f;
  u.beta1 = 0.9f;
  u.beta2 = 0.99f;
  u.epsilon = 1e-6f;
  u.mu = 0.8f;
  u.l1 = 0.01f;
  u.l2 = 0.02f;
  return u;
}

inline void update(GrowableTable& table, const Keys& keys, const std::vector<float>& grads, RowRule which,
                   Parallel* parallel = nullptr) {
  GrowableTable::Scratch scratch;
  table.update(keys.data(), static_cast<int64_t>(keys.size()), grads.data(), rule(which), &scratch, parallel);
}

inline void save(GrowableTable& table, const std::string& path, bool with_moments = true) {
  io::FileSet files;
  table.save(path, with_moments, &files);
  files.commit();
}

// A file in a folder of this process, which removes it at its end.
inline std::string scratch_path(const std::string& name) {
  struct Folder {
    const pid_t owner = getpid();
    const std::filesystem::path path =
        std::filesystem::temp_directory_path() / ("anabranch-tables-" + std::to_string(owner));
    Folder() { std::filesystem::create_directories(path); }
    ~Folder() {
      if (getpid() == owner) std::filesystem::remove_all(path);
    }
  };
  static const Folder folder;
  return (folder.path / name).string();
}

}  // namespace anabranch::sparse::test
