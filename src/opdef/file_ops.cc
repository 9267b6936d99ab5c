#include "opdef/file_ops.h"

#include <map>

#include "ir/serialize.h"

namespace anabranch {
namespace {

std::map<std::string, ReplaceOp>& declared() {
  static std::map<std::string, ReplaceOp> all;
  return all;
}

bool replace_in(ir::Block& block) {
  bool replaced = false;
  for (size_t i = 0; i < block.ops().size();) {
    const auto found = declared().find(block.ops()[i]->type);
    i += found == declared().end() ? 1 : found->second(block, i);
    replaced |= found != declared().end();
  }
  return replaced;
}

}  // namespace

bool declare_file_op(const char* type, ReplaceOp replace) { return declared().emplace(type, replace).second; }

void replace_file_ops(ir::Program& program) {
  bool replaced = false;
  for (int b = 0; b < program.num_blocks(); ++b) replaced |= replace_in(program.block(b));
  if (replaced) program.read_canonical = ir::serialize_canonical(program);
}

}  // namespace anabranch
