// The values of a model that is replaced while it runs: all variables of a version are exchanged at once, between runs.
// One thread changes it; any thread may run it.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/scope.h"
#include "sparse/growable_table.h"

namespace anabranch {

class FollowedModel {
 public:
  explicit FollowedModel(std::shared_ptr<Scope> scope, int64_t version = 0)
      : scope_(std::move(scope)), version_(version) {}

  // Changes of a table, which stay on top of it until fold() has copied them.
  struct Layer {
    std::shared_ptr<sparse::GrowableTable> table, changes;
  };
  // Waits for the runs in progress, then takes the values of the variables `names` from `fresh`, which must not use
  // them afterwards. ShapeMismatch, NotFound: the values do not fit the model, and nothing has changed.
  void switch_to(int64_t version, Scope& fresh, const std::vector<std::string>& names, std::vector<Layer> layers);
  // Copies the layers to their tables while runs go on.
  void fold();
  // A table takes the images that `image` has, which read as its rows.
  void rest_on(sparse::GrowableTable& table, const std::shared_ptr<sparse::GrowableTable>& image);
  // The version of the values that a run uses. 0: the values of the model's own files.
  int64_t version() const { return version_.load(std::memory_order_relaxed); }
  // Runs are inside this gate while they use the values or the layers.
  RunGate& gate() const { return scope_->gate(); }
  // Runs that begin after the next change are refused.
  void close() { closed_.store(true); }
  bool closed() const { return closed_.load(); }

 private:
  const std::shared_ptr<Scope> scope_;
  std::vector<Layer> layers_;
  std::atomic<int64_t> version_;
  std::atomic<bool> closed_{false};
};

}  // namespace anabranch
