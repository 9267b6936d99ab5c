#include "ir/well_formed.h"

#include <functional>

#include "ir/versions.h"

namespace anabranch::ir {
namespace {

// One rule: what it demands of an op in its block. The op is added to the message by the caller.
using Rule = std::function<void(const Block&, const Op&)>;

void has_type(const Block&, const Op& op) { AB_CHECK(!op.type.empty(), InvalidArgument, "an op has no type"); }

void arguments_can_be_seen(const Block& block, const Op& op) {
  for (const auto* slots : {&op.inputs, &op.outputs}) {
    for (const auto& slot : *slots) {
      for (const auto& arg : slot.args) {
        AB_CHECK(arg == kEmptyVar || block.find_var_recursive(arg), NotFound,
                 "{}: variable {} of slot {} is in no block that can be seen from block {}", op.type, arg, slot.name,
                 block.idx());
      }
    }
  }
}

// Sub-blocks were created after the block that uses them, so references lead forward and cannot form a cycle.
void sub_blocks_exist(const Block& block, const Op& op) {
  for (const int sub : op.sub_blocks()) {
    AB_CHECK(sub > block.idx() && sub < block.program().num_blocks(), InvalidArgument,
             "{}: sub-block {} is not in ({}, {})", op.type, sub, block.idx(), block.program().num_blocks());
  }
}

void role_is_readable(const Block&, const Op& op) {
  op.role();
  op.role_vars();
}

void check_block(const Block& block) {
  const int idx = block.idx();
  AB_CHECK(idx == 0 ? block.parent() < 0 : block.parent() >= 0 && block.parent() < idx, InvalidArgument,
           "block {} has block {} as its parent", idx, block.parent());
  AB_CHECK(block.forward_block < idx, InvalidArgument, "block {} has block {} as its forward block", idx,
           block.forward_block);
  for (const auto& var : block.vars()) {
    AB_CHECK(!var->name.empty() && var->name.find('\0') == std::string::npos, InvalidArgument,
             "a variable of block {} has no legal name", idx);
  }
}

void versions_exist(const Block& block, size_t index) {
  const Op& op = *block.ops()[index];
  for (const auto& read : version_reads(op)) {
    const std::string& name = op.input(read.slot)[read.arg];
    const int writes = writes_before(block, name, index);
    AB_CHECK(read.version <= writes, InvalidArgument, "{}: the version of {} that is read must be at most {}, got {}",
             op.type, name, writes, read.version);
  }
}

}  // namespace

void check_well_formed(const Program& program) {
  static const Rule rules[] = {has_type, sub_blocks_exist, role_is_readable, arguments_can_be_seen};
  for (int b = 0; b < program.num_blocks(); ++b) check_block(program.block(b));
  for (int b = 0; b < program.num_blocks(); ++b) {
    const Block& block = program.block(b);
    for (size_t i = 0; i < block.ops().size(); ++i) {
      const Op& op = *block.ops()[i];
      try {
        for (const Rule& rule : rules) rule(block, op);
        versions_exist(block, i);
      } catch (Error& e) {
        std::string line;
        try {
          line = op.describe(static_cast<int>(i), b);
        } catch (const Error&) {  // the role itself is what is wrong
          line = op.type;
        }
        throw e.with_op(line).with_while("checking the program");
      }
    }
  }
}

}  // namespace anabranch::ir
