#include "graph/effects.h"

namespace anabranch {
namespace {

void collect(const ir::Program& program, int idx, const std::set<std::string>& inner, OuterNames* out, int depth) {
  AB_CHECK(depth < 64, InvalidArgument, "blocks are nested deeper than 64 levels");
  const ir::Block& block = program.block(idx);
  std::set<std::string> known = inner;
  for (const auto& v : block.vars()) known.insert(v->name);
  // A gradient block also sees the variables of the block that it is the gradient of.
  if (block.forward_block >= 0) {
    for (const auto& v : program.block(block.forward_block).vars()) known.insert(v->name);
  }
  for (const auto& op : block.ops()) {
    for (const auto& n : op->input_args()) {
      if (!known.count(n)) out->reads.insert(n);
    }
    for (const auto& n : op->output_args()) {
      if (!known.count(n)) out->writes.insert(n);
    }
    for (int sub : op->sub_blocks()) collect(program, sub, known, out, depth + 1);
  }
}

}  // namespace

OuterNames outer_names(const ir::Program& program, int idx) {
  OuterNames out;
  collect(program, idx, {}, &out, 0);
  return out;
}

}  // namespace anabranch
