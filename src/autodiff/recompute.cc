#include "autodiff/recompute.h"

#include <algorithm>
#include <map>
#include <set>

#include "ir/versions.h"
#include "opdef/op_def.h"

namespace anabranch {
namespace {

// One segment between checkpoints, and the variables that have been recomputed.
struct Part {
  std::vector<ir::OpRef> ops;                // the ops that are copied
  std::map<std::string, std::string> again;  // variable -> its copy, which has a name once it is made
  std::set<std::string> gradients;           // gradients of the segment's variables
};

class Recompute {
 public:
  Recompute(ir::Block& block, size_t backward, const std::vector<std::string>& checkpoints)
      : block_(block), backward_(backward), kept_(checkpoints.begin(), checkpoints.end()) {
    cut(checkpoints);
    note_uses();
    collect();
  }

  void run() {
    for (size_t i = backward_; i < block_.ops().size(); ++i) {
      const ir::OpRef op = block_.ops()[i];
      for (Part& part : parts_) {
        if (!concerns(*op, part)) continue;
        if (!made_.count(&part)) i += insert(part, i);
        for (const auto& [name, copy] : part.again) op->rename_input(name, copy);
      }
    }
  }

 private:
  void cut(const std::vector<std::string>& checkpoints) {
    for (const auto& name : checkpoints) {
      AB_CHECK(block_.find_var(name) != nullptr, NotFound, "checkpoint {} is not in the global block", name);
    }
    for (size_t i = 0; i < backward_; ++i) {
      const auto outs = block_.ops()[i]->output_args();
      if (std::any_of(outs.begin(), outs.end(), [&](const auto& o) { return kept_.count(o) != 0; })) ends_.push_back(i);
    }
    parts_.resize(ends_.size());
  }

  // The segment of op i; parts_.size() after the last checkpoint.
  size_t part_of(size_t i) const {
    return static_cast<size_t>(std::lower_bound(ends_.begin(), ends_.end(), i) - ends_.begin());
  }

  void note_uses() {
    for (size_t i = 0; i < block_.ops().size(); ++i) {
      const ir::Op& op = *block_.ops()[i];
      for (const auto& out : op.output_args()) {
        writers_[out].push_back(i);
      }
      if (i >= backward_) continue;
      for (const auto& in : op.input_args()) {
        readers_[in].insert(part_of(i));
        first_read_.emplace(in, i);
      }
    }
    for (int b = 1; b < block_.program().num_blocks(); ++b) {  // blocks name the variables of this one that they use
      for (const auto& op : block_.program().block(b).ops()) {
        for (const auto& args : {op->input_args(), op->output_args()}) kept_.insert(args.begin(), args.end());
      }
    }
  }

  // Ops with a seed or a draw number give the same random numbers again.
  static bool draws_again(const ir::Op& op) {
    auto seed = op.attrs.find("seed");
    const auto* own = seed == op.attrs.end() ? nullptr : std::get_if<int32_t>(&seed->second);
    return op.has_attr(ir::kDrawNumber) || (own && *own != 0);
  }

  // Whether the op itself allows that it runs again in the backward pass.
  static bool may_repeat(const ir::Op& op) {
    const OpDef& def = find_op(op.type);
    if (!op.sub_blocks().empty() || op.has_attr(ir::kReadVersions)) return false;
    if (def.has(kOrdered) || def.has(kRunsBlock) || def.has(kKeepsOutputs)) return false;
    return !def.has(kRandom) || draws_again(op);
  }

  // Whether op `index` gives the same result again: each input still has the value that the op read, or gets it again
  // because all its writers are repeated, as those of an in-place reshape are.
  bool repeatable(size_t index) const {
    const ir::Op& op = *block_.ops()[index];
    if (!may_repeat(op)) return false;
    const auto ins = op.input_args();
    return std::all_of(ins.begin(), ins.end(), [&](const std::string& in) {
      auto it = writers_.find(in);
      return it == writers_.end() || it->second.back() < index || parts_[part_of(index)].again.count(in);
    });
  }

  // Whether a result of a segment may be dropped: only this segment writes and reads it, and writes it first.
  bool droppable(const std::string& name, size_t part) const {
    const ir::VarRef var = block_.find_var(name);
    if (kept_.count(name) || !var || var->persistable || var->kind != VarKind::kLoDTensor) return false;
    const auto& writers = writers_.at(name);
    if (writers.back() >= backward_ || part_of(writers.front()) != part || part_of(writers.back()) != part)
      return false;
    auto it = readers_.find(name);
    if (it == readers_.end()) return true;
    return it->second.size() == 1 && *it->second.begin() == part && first_read_.at(name) > writers.front();
  }

  // Drops what can be made again. A value that cannot keeps others from being dropped, so this repeats until none is
  // left.
  void collect() {
    const size_t end = ends_.empty() ? 0 : ends_.back() + 1;
    for (size_t i = 0; i < end; ++i) {
      Part& part = parts_[part_of(i)];
      for (const auto& out : block_.ops()[i]->output_args()) {
        part.gradients.insert(ir::grad_name(out));
        if (droppable(out, part_of(i))) part.again[out];
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t i = 0; i < end; ++i) {
        if (repeatable(i)) continue;
        for (const auto& out : block_.ops()[i]->output_args()) changed |= parts_[part_of(i)].again.erase(out) != 0;
      }
    }
    for (size_t i = 0; i < end; ++i) {
      Part& part = parts_[part_of(i)];
      const auto outs = block_.ops()[i]->output_args();
      const bool some = std::any_of(outs.begin(), outs.end(), [&](const auto& o) { return part.again.count(o) != 0; });
      if (some) part.ops.push_back(block_.ops()[i]);
    }
  }

  static bool concerns(const ir::Op& op, const Part& part) {
    const auto ins = op.input_args();
    return !part.ops.empty() && std::any_of(ins.begin(), ins.end(), [&](const std::string& in) {
      return part.again.count(in) != 0 || part.gradients.count(in) != 0;
    });
  }

  std::string free_name(const std::string& name) const {
    std::string copy = fmt::format("{}.subprog_{}", name, made_.size());
    while (block_.find_var(copy)) copy += "_";
    return copy;
  }

  // The copy of a variable that is recomputed, or of an output of the same op that must not be written twice.
  std::string declare_copy(const std::string& name) {
    ir::Var var = *block_.find_var(name);
    var.name = free_name(name);
    var.persistable = var.is_parameter = false;
    block_.create_var(var);
    return var.name;
  }

  size_t insert(Part& part, size_t index) {
    for (auto& [name, copy] : part.again) copy = declare_copy(name);
    size_t at = index;
    for (const auto& op : part.ops) {
      auto again = std::make_shared<ir::Op>(*op);
      again->attrs["op_role"] = int32_t{ir::role::kBackward};
      again->attrs.erase("op_role_var");
      for (const auto& [name, copy] : part.again) {
        again->rename_input(name, copy);
        again->rename_output(name, copy);
      }
      const auto outs = op->output_args();
      for (const auto& out : outs) {
        if (!part.again.count(out)) again->rename_output(out, declare_copy(out));
      }
      block_.insert_op(at++, std::move(again));
    }
    made_.insert(&part);
    return at - index;
  }

  ir::Block& block_;
  size_t backward_;
  std::set<std::string> kept_;
  std::vector<size_t> ends_;  // ops that make checkpoints
  std::vector<Part> parts_;
  std::set<const Part*> made_;
  std::map<std::string, std::vector<size_t>> writers_;
  std::map<std::string, std::set<size_t>> readers_;  // parts of the forward pass
  std::map<std::string, size_t> first_read_;         // the first op of the forward pass that reads it
};

}  // namespace

void recompute(ir::Block& block, size_t backward, const std::vector<std::string>& checkpoints) {
  Recompute(block, backward, checkpoints).run();
}

}  // namespace anabranch
