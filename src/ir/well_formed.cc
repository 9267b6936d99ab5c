#include "ir/well_formed.h"

#include <algorithm>
#include <functional>
#include <vector>

#include "ir/versions.h"

namespace anabranch::ir {
namespace {

// One rule: its requirement on an op in its block. The caller adds the op to the message.
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

// How deeply a block is nested. All code that walks over blocks relies on these limits, and on a block having one user:
// a walk that follows sub-blocks takes no more steps than there are blocks.
struct Depths {
  std::vector<int> above;    // blocks on the longest path up, by parents and forward blocks
  std::vector<int> running;  // blocks that run around it
  std::vector<const Op*> user;
};

constexpr int kMostNested = 64;
constexpr int kMostAbove = 2 * kMostNested;  // a gradient has its own way up, and that of its forward block

// Sub-blocks are created after the block that uses them, so references point forward and cannot form a cycle.
void check_sub_blocks(const Block& block, const Op& op, Depths* depths) {
  const int count = block.program().num_blocks();
  for (const int sub : op.sub_blocks()) {
    AB_CHECK(sub > block.idx() && sub < count, InvalidArgument, "{}: sub-block {} is not in ({}, {})", op.type, sub,
             block.idx(), count);
    const Op*& user = depths->user[static_cast<size_t>(sub)];
    AB_CHECK(user == nullptr || user == &op, InvalidArgument, "{}: sub-block {} belongs to another op already, {}",
             op.type, sub, user ? user->type : "");
    user = &op;
    const int running = depths->running[static_cast<size_t>(block.idx())] + 1;
    AB_CHECK(running < kMostNested, InvalidArgument, "{}: blocks are nested deeper than {} levels", op.type,
             kMostNested);
    depths->running[static_cast<size_t>(sub)] = running;
  }
}

void role_is_readable(const Block&, const Op& op) {
  op.role();
  op.role_vars();
}

void check_block(const Block& block, Depths* depths) {
  const int idx = block.idx();
  AB_CHECK(idx == 0 ? block.parent() < 0 : block.parent() >= 0 && block.parent() < idx, InvalidArgument,
           "block {} has block {} as its parent", idx, block.parent());
  AB_CHECK(block.forward_block == -1 || (block.forward_block > 0 && block.forward_block < idx), InvalidArgument,
           "block {} has block {} as its forward block", idx, block.forward_block);
  for (const int over : {block.parent(), block.forward_block}) {
    if (over < 0) continue;
    int& above = depths->above[static_cast<size_t>(idx)];
    above = std::max(above, depths->above[static_cast<size_t>(over)] + 1);
    AB_CHECK(above < kMostAbove, InvalidArgument, "blocks are nested deeper than {} levels", kMostNested);
  }
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
  const auto count = static_cast<size_t>(program.num_blocks());
  Depths depths{std::vector<int>(count), std::vector<int>(count), std::vector<const Op*>(count)};
  const Rule rules[] = {has_type, [&](const Block& block, const Op& op) { check_sub_blocks(block, op, &depths); },
                        role_is_readable, arguments_can_be_seen};
  for (int b = 0; b < program.num_blocks(); ++b) check_block(program.block(b), &depths);
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
