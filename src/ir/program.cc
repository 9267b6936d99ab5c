#include "ir/program.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "base/utf8.h"
#include "ir/versions.h"

namespace anabranch::ir {
namespace {

std::atomic<uint64_t> next_program_id{1};

void check_alike(const Var& old, const Var& var) {
  const auto differs = [&](const char* what, const std::string& had, const std::string& got) {
    AB_THROW(InvalidArgument, "variable {} exists already with {} {}, it cannot be created again with {}", old.name,
             what, had, got);
  };
  if (old.kind != var.kind) differs("type", var_kind_name(old.kind), var_kind_name(var.kind));
  if (old.dtype != var.dtype) differs("dtype", dtype_name(old.dtype), dtype_name(var.dtype));
  if (old.lod_level != var.lod_level) {
    differs("lod_level", std::to_string(old.lod_level), std::to_string(var.lod_level));
  }
  if (!compatible(old.shape, var.shape)) differs("shape", old.shape.str(), var.shape.str());
}

void add_sub_blocks(const Block& block, std::set<int>* kept) {
  for (const auto& op : block.ops()) {
    for (const int sub : op->sub_blocks()) kept->insert(sub);
  }
}

void renumber(Op& op, const std::vector<int>& new_idx) {
  for (auto& [name, value] : op.attrs) {
    if (auto* one = std::get_if<BlockRef>(&value)) one->idx = new_idx.at(one->idx);
    if (auto* list = std::get_if<std::vector<BlockRef>>(&value)) {
      for (auto& ref : *list) ref.idx = new_idx.at(ref.idx);
    }
  }
}

}  // namespace

VarRef Block::find_var(const std::string& name) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? nullptr : it->second;
}

VarRef Block::find_var_recursive(const std::string& name) const {
  const Block* block = this;
  for (; block->forward_block < 0; block = &program_->block(block->parent_)) {
    if (VarRef var = block->find_var(name)) return var;
    if (block->parent_ < 0) return nullptr;
  }
  // Two paths lead up from here, so the blocks above form a net, not a chain: each is visited once. The forward block
  // comes first: if it has a local variable with the name of an outer one, its gradient refers to the local one.
  std::vector<bool> known(static_cast<size_t>(program_->num_blocks()));
  std::vector<int> queue{block->idx_};
  for (size_t i = 0; i < queue.size(); ++i) {
    block = &program_->block(queue[i]);
    if (VarRef var = block->find_var(name)) return var;
    for (const int next : {block->forward_block, block->parent_}) {
      if (next < 0 || known.at(static_cast<size_t>(next))) continue;
      known[static_cast<size_t>(next)] = true;
      queue.push_back(next);
    }
  }
  return nullptr;
}

VarRef Block::create_var(const Var& var) {
  AB_CHECK(!var.name.empty(), InvalidArgument, "a variable must have a name");
  AB_CHECK(is_utf8(var.name), InvalidArgument, "the name of a variable must be text, got {}", var.name);
  AB_CHECK(var.name != kEmptyVar, InvalidArgument, "{} is reserved for \"no variable\" and cannot be created",
           kEmptyVar);
  if (VarRef old = find_var(var.name)) {
    check_alike(*old, var);
    return old;
  }
  VarRef made = std::make_shared<Var>(var);
  vars_.push_back(made);
  by_name_.emplace(var.name, made);
  program_->touch();
  return made;
}

void Block::remove_var(const std::string& name) {
  const VarRef var = find_var(name);
  AB_CHECK(var != nullptr, NotFound, "block {} has no variable {} to remove", idx_, name);
  vars_.erase(std::find(vars_.begin(), vars_.end(), var));
  by_name_.erase(name);
  program_->touch();
}

void Block::rename_var(const std::string& from, const std::string& to) {
  const VarRef var = find_var(from);
  AB_CHECK(var != nullptr, NotFound, "block {} has no variable {} to rename", idx_, from);
  if (from == to) return;
  AB_CHECK(!to.empty() && to != kEmptyVar, InvalidArgument, "\"{}\" is not a valid name for a variable", to);
  AB_CHECK(!find_var(to), InvalidArgument, "variable {} cannot be renamed to {}: block {} has one of that name", from,
           to, idx_);
  by_name_.erase(from);
  var->name = to;
  by_name_.emplace(to, var);
  for (const auto& op : ops_) {
    op->rename_input(from, to);
    op->rename_output(from, to);
  }
  program_->touch();
}

OpRef Block::insert_op(size_t index, OpRef op) {
  AB_CHECK(op != nullptr, Internal, "an op must be given, got none");
  AB_CHECK(index <= ops_.size(), InvalidArgument, "op {} cannot be inserted at {}: block {} has {} ops", op->type,
           index, idx_, ops_.size());
  if (auto it = op->attrs.find(kDrawNumber); it != op->attrs.end()) {
    if (const auto* number = std::get_if<int32_t>(&it->second)) program_->draws = std::max(program_->draws, *number);
  }
  reads_versions_ |= op->has_attr(kReadVersions);
  if (reads_versions_) shift_version_reads(*this, *op, index, index, 1);
  ops_.insert(ops_.begin() + static_cast<std::ptrdiff_t>(index), op);
  program_->touch();
  return op;
}

void Block::remove_ops(size_t first, size_t last) {
  AB_CHECK(first <= last && last <= ops_.size(), InvalidArgument, "ops [{}, {}) cannot be removed: block {} has {}",
           first, last, idx_, ops_.size());
  for (size_t i = last; reads_versions_ && i-- > first;) shift_version_reads(*this, *ops_[i], i, last, -1);
  ops_.erase(ops_.begin() + static_cast<std::ptrdiff_t>(first), ops_.begin() + static_cast<std::ptrdiff_t>(last));
  program_->touch();
}

Program::Program() : id_(next_program_id++) { blocks_.push_back(std::make_unique<Block>(this, 0, -1)); }

Block& Program::block(int idx) const {
  AB_CHECK(idx >= 0 && idx < num_blocks(), InvalidArgument, "block {} does not exist: the program has {}", idx,
           num_blocks());
  return *blocks_[static_cast<size_t>(idx)];
}

Block& Program::create_block(int parent) {
  block(parent);  // must exist
  blocks_.push_back(std::make_unique<Block>(this, num_blocks(), parent));
  touch();
  return *blocks_.back();
}

ProgramRef Program::clone() const {
  ProgramRef copy = make();
  copy->random_seed = random_seed;
  copy->draws = draws;
  copy->file_version = file_version;
  for (const auto& block : blocks_) {
    Block& to = block->idx() == 0 ? copy->global_block() : copy->create_block(block->parent());
    to.forward_block = block->forward_block;
    for (const auto& var : block->vars()) to.create_var(*var);
    for (const auto& op : block->ops()) to.push_op(std::make_shared<Op>(*op));
  }
  return copy;
}

void Program::drop_unused_blocks() {
  std::set<int> kept{0};
  for (size_t before = 0; before != kept.size();) {
    before = kept.size();
    for (const int idx : std::vector<int>(kept.begin(), kept.end())) {
      const Block& b = block(idx);
      add_sub_blocks(b, &kept);
      // A block that stays needs the blocks through which its names are visible.
      for (const int up : {b.parent(), b.forward_block}) {
        if (up >= 0) kept.insert(up);
      }
    }
  }
  if (kept.size() == blocks_.size()) return;
  std::vector<int> new_idx(blocks_.size(), -1);
  std::deque<std::unique_ptr<Block>> left;
  for (const int idx : kept) {
    new_idx[static_cast<size_t>(idx)] = static_cast<int>(left.size());
    left.push_back(std::move(blocks_[static_cast<size_t>(idx)]));
  }
  blocks_ = std::move(left);
  for (size_t i = 0; i < blocks_.size(); ++i) {
    Block& b = *blocks_[i];
    b.idx_ = static_cast<int>(i);
    if (b.parent_ >= 0) b.parent_ = new_idx[static_cast<size_t>(b.parent_)];
    if (b.forward_block >= 0) b.forward_block = new_idx[static_cast<size_t>(b.forward_block)];
    for (const auto& op : b.ops_) renumber(*op, new_idx);
  }
  touch();
}

}  // namespace anabranch::ir
