// Forward values that gradient ops read. A gradient op needs the value that its forward op read or computed. If the
// variable is written again, ops in the same block record the version they read (ir/versions.h); those of a gradient
// block read a copy, which the forward block makes in time.
#pragma once
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace anabranch {

class ForwardReads {
 public:
  using Versions = std::map<std::string, int>;
  // `outer`: versions of the variables of outer blocks that the forward ops read. `passing`: those of them that are
  // overwritten before the gradient ops run, for instance by a later iteration of the loop.
  ForwardReads(const ir::Block& forward, Versions outer, std::set<std::string> passing = {});

  // Records what the gradient op of forward op `index` reads, and removes the mark of written outputs from its
  // arguments.
  void note(size_t index, ir::Op& grad);
  // Binds the reads of a gradient op. same_block: it follows the forward ops.
  void bind(ir::Op& op, bool same_block);
  // The copies that bound ops read; call it after all are bound.
  void insert_copies(ir::Block& forward) const;

  // The variables around the block of forward op `index` that have other values when its gradient runs.
  std::set<std::string> passing_for_block_of(size_t index) const;
  // The versions of outer variables that the block of forward op `index` reads.
  Versions seen_by_block_of(size_t index) const;
  // The version of a variable for a gradient op without its own record: one that reads outer variables, or that has a
  // gradient block. Absent: the latest.
  std::optional<int> version_meant(const ir::Op& op, const std::string& name) const;

 private:
  struct Read {
    std::string slot;
    size_t arg;
    int version;  // by the ops before `at`
    size_t at;
  };
  struct Copy {
    std::string name;
    size_t at;
  };

  int writes_before(const std::string& name, size_t end) const;
  bool is_stale(const std::string& name, int version) const;
  std::string copy_name(const std::string& var, int version) const;

  const ir::Block& forward_;
  Versions outer_;
  std::set<std::string> passing_;
  std::unordered_map<std::string, std::vector<size_t>> writers_;  // ops of the block, in order
  std::map<const ir::Op*, std::vector<Read>> reads_;
  std::map<std::pair<std::string, int>, Copy> copies_;  // by name and version
};

}  // namespace anabranch
