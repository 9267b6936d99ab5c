// A growable table at a simulated server of GEO training: its rules decide when differences are added. It keeps a log
// of what was added, which is part of its snapshots: a table to which the log is added once more must be equal.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "ps/store.h"
#include "sparse/growable_table.h"

namespace anabranch::ps::sim {

struct GrownRules {
  int32_t admit_count = 1;
  int64_t expire_after = 0, shrink_every = 0;
};

class GrownTable {
 public:
  static constexpr int64_t kWidth = 3;  // shows and clicks, which are sent in full, and one number more

  explicit GrownTable(const GrownRules& rules);
  // Of a worker: without rules.
  static sparse::TableOptions copy_options();

  void add(const Change& change);
  void read_changed(uint32_t variable, std::span<const int64_t> ids, Message* into) const;
  void read_table(uint32_t variable, uint64_t part, int bits, Message* into) const;
  std::vector<int64_t> take_told() { return table_->take_told(); }
  void save(SavedCopies* copies, const std::string& name) const;
  void load(const Tensor& value);

  const std::shared_ptr<sparse::GrowableTable>& table() const { return table_; }
  double shows_added() const;  // of all differences
  // Empty, or what is wrong with it.
  std::string check() const;

 private:
  void add(const std::vector<int64_t>& ids, const float* differences);

  const sparse::TableOptions options_;
  std::shared_ptr<sparse::GrowableTable> table_;
  std::vector<double> log_;  // for each update: the number of rows; then id and numbers of each
};

// The rows of a table by key.
std::vector<float> rows_of(sparse::GrowableTable& table, const std::vector<int64_t>& keys);

}  // namespace anabranch::ps::sim
