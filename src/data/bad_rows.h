// Applies a BadRowPolicy to blocks, one after another, in one thread at a time.
#pragma once
#include <atomic>
#include <cstdio>
#include <memory>
#include <string>

#include "data/block.h"
#include "data/dataset.h"

namespace anabranch::data {

class BadRows {
 public:
  BadRows(const BadRowPolicy& policy, const Schema& schema) : policy_(policy), schema_(schema) {}

  // Throws InvalidArgument for a row that the policy rejects; *rows is the number of good ones before it. The block's
  // first_line is known.
  void admit(const Block& block, const std::string& file, int64_t* rows);
  void close() { quarantine_.reset(); }  // no more rows are admitted
  int64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  void quarantine(const BadRow& row, const std::string& message);

  BadRowPolicy policy_;
  const Schema& schema_;
  std::atomic<int64_t> count_{0};
  struct Close {
    void operator()(std::FILE* f) const { std::fclose(f); }
  };
  std::unique_ptr<std::FILE, Close> quarantine_;  // created at the first bad row of a pass
};

}  // namespace anabranch::data
