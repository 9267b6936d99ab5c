// What gradient ops read of the forward part. A gradient op needs the value that its forward op saw, or made. Where the
// variable is written again, ops in the same block say which version they read (ir/versions.h); those of a gradient
// block read a copy, which the forward block takes in time.
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
  // `outer`: versions of the variables of outer blocks that the forward ops read. `passing`: those of them that
  // somebody writes before the gradient ops run - a later turn of the loop, say.
  ForwardReads(const ir::Block& forward, Versions outer, std::set<std::string> passing = {});

  // Notes what the gradient op of forward op `index` reads, and takes the mark of written outputs from its arguments.
  void note(size_t index, ir::Op& grad);
  // Binds the reads of a gradient op. same_block: it stands behind the forward ops.
  void bind(ir::Op& op, bool same_block);
  // The copies that bound ops read; after all are bound.
  void insert_copies(ir::Block& forward) const;

  // The variables around the block of forward op `index` that have other values when its gradient runs.
  std::set<std::string> passing_for_block_of(size_t index) const;
  // The versions that the block of forward op `index` reads of the variables around it.
  Versions seen_by_block_of(size_t index) const;
  // Which version of a variable a gradient op means that does not say so itself: one that reads outer variables, or
  // that has a gradient block. Absent: the latest.
  std::optional<int> version_meant(const ir::Op& op, const std::string& name) const;

 private:
  struct Read {
    std::string slot;
    size_t arg;
    int version;  // by the ops in front of `at`
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
