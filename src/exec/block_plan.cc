#include "exec/block_plan.h"

#include <utility>

#include "exec/block_code.h"

namespace anabranch {

BlockSet::BlockSet(const ir::Program& program, Options options) : program_(program), options_(std::move(options)) {
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& op : program.block(b).ops()) {
      for (int sub : op->sub_blocks()) {
        if (program.block(sub).forward_block > 0) gradients_[program.block(sub).forward_block].push_back(sub);
      }
    }
  }
}

BlockSet::~BlockSet() = default;

const std::vector<int>& BlockSet::gradients_of(int block) const {
  static const std::vector<int> none;
  const auto it = gradients_.find(block);
  return it == gradients_.end() ? none : it->second;
}

BlockCode& BlockSet::make(int block, const Outer& outer, BlockCode* around) {
  auto& code = made_[block];
  if (!code) {
    code = std::make_shared<BlockCode>(*this, block, outer, around);
    code->prepare();
  }
  return *code;
}

std::shared_ptr<BlockRunner> BlockSet::runner(int block) const { return made_.at(block); }

int BlockSet::number(const std::string& type, const std::string& text) {
  if (!options_.nodes) return -1;
  options_.nodes->push_back({type, text, options_.replica});
  return options_.first_node + static_cast<int>(options_.nodes->size()) - 1;
}

std::string BlockSet::where(int block) const { return made_.at(block)->where(); }

void BlockSet::each_value(const Visit& visit) const {
  for (const auto& [block, code] : made_) {
    if (code->is_outermost()) code->each_value(visit);
  }
}

BlockSet::Bytes BlockSet::private_bytes() const {
  Bytes bytes;
  for (const auto& [block, code] : made_) {
    bytes.held += code->memory().bytes();
    bytes.unshared += code->memory().unshared_bytes();
  }
  return bytes;
}

void BlockSet::drop() {
  for (const auto& [block, code] : made_) code->drop();
}

BlockFactory BlockSet::factory() const {
  return [this](int block) { return runner(block); };
}

}  // namespace anabranch
