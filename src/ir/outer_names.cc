#include "ir/outer_names.h"

namespace anabranch {
namespace {

// A gradient block also sees the variables of the block that it is the gradient of.
bool belongs_to(const ir::Program& program, const ir::Block& block, const std::string& name) {
  return block.find_var(name) ||
         (block.forward_block > 0 && program.block(block.forward_block).find_var(name) != nullptr);
}

}  // namespace

const OuterNames& OuterNamesOf::of(int idx) {
  if (const auto it = known_.find(idx); it != known_.end()) return it->second;
  AB_CHECK(open_.insert(idx).second, InvalidArgument, "block {} contains itself", idx);
  AB_CHECK(open_.size() <= 64, InvalidArgument, "blocks are nested deeper than 64 levels");
  const ir::Block& block = program_.block(idx);
  OuterNames names;
  const auto add = [&](const auto& from, std::set<std::string>* to) {
    for (const auto& n : from) {
      if (!belongs_to(program_, block, n)) to->insert(n);
    }
  };
  for (const auto& op : block.ops()) {
    add(op->input_args(), &names.reads);
    add(op->output_args(), &names.writes);
    for (int sub : op->sub_blocks()) {
      const OuterNames& inner = of(sub);
      add(inner.reads, &names.reads);
      add(inner.writes, &names.writes);
    }
  }
  open_.erase(idx);
  return known_.emplace(idx, std::move(names)).first->second;
}

}  // namespace anabranch
