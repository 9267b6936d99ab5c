#include "graph/passes/constants.h"

#include <algorithm>

namespace anabranch {
namespace {

// Within a block all outer variables are persistable, and others may write them.
bool is_constant(const ir::Program& program, int block, const std::string& name) {
  const auto known = program.block(block).find_var_recursive(name);
  if (!known || !known->persistable) return false;
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& op : program.block(b).ops()) {
      const auto written = op->output_args();
      if (std::count(written.begin(), written.end(), name) != 0) return false;
    }
  }
  return true;
}

}  // namespace

// False with several replicas, because the copy of a replica does not show when it was refreshed.
bool is_constant(const Match& m, int name) {
  const PassContext& context = m.context();
  if (std::max(m.graph().replicas, context.replicas) > 1 || !m.uses().writers(m[name]).empty()) return false;
  if (context.block == 0) return m.desc(name).persistable;
  return context.program && is_constant(*context.program, context.block, m.desc(name).name);
}

}  // namespace anabranch
