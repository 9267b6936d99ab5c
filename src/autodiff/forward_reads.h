// What gradient ops read of the forward part. A gradient op needs the value that its forward op saw, or made. Where the
// variable is written again, ops in the same block say which version they read (ir/versions.h); those of a gradient
// block read a copy, which the forward block takes in time.
#pragma once
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/program.h"

namespace anabranch {

class ForwardReads {
 public:
  explicit ForwardReads(const ir::Block& forward);

  // Notes what the gradient op of forward op `index` reads, and takes the mark of written outputs from its arguments.
  void note(size_t index, ir::Op& grad);
  // Binds the reads of a gradient op; same_block: it stands behind the forward ops.
  void bind(ir::Op& op, bool same_block);
  // The copies that bound ops read; after all are bound.
  void insert_copies(ir::Block& forward) const;

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
  std::unordered_map<std::string, std::vector<size_t>> writers_;  // ops of the block, in order
  std::map<const ir::Op*, std::vector<Read>> reads_;
  std::map<std::pair<std::string, int>, Copy> copies_;  // by name and version
};

}  // namespace anabranch
