#include "autodiff/forward_reads.h"

#include <algorithm>

#include "autodiff/names.h"
#include "ir/versions.h"
#include "opdef/append_op.h"

namespace anabranch {

ForwardReads::ForwardReads(const ir::Block& forward, Versions outer, std::set<std::string> passing)
    : forward_(forward), outer_(std::move(outer)), passing_(std::move(passing)) {
  for (size_t i = 0; i < forward.ops().size(); ++i) {
    for (const auto& out : forward.ops()[i]->output_args()) {
      auto& writers = writers_[out];
      if (writers.empty() || writers.back() != i) writers.push_back(i);
    }
  }
}

int ForwardReads::writes_before(const std::string& name, size_t end) const {
  auto it = writers_.find(name);
  if (it == writers_.end()) return 0;
  return static_cast<int>(std::lower_bound(it->second.begin(), it->second.end(), end) - it->second.begin());
}

// Whether the variable is written again. Updates of parameters do not count: a second loss of one program is
// differentiated by the updated parameters, in place, as it has always been.
bool ForwardReads::is_stale(const std::string& name, int version) const {
  if (passing_.count(name) && !forward_.find_var(name)) return true;
  auto it = writers_.find(name);
  if (it == writers_.end()) return false;
  return std::any_of(it->second.begin() + version, it->second.end(),
                     [&](size_t i) { return (forward_.ops()[i]->role() & ir::role::kOptimize) == 0; });
}

void ForwardReads::note(size_t index, ir::Op& grad) {
  const auto ins = forward_.ops()[index]->input_args();
  for (auto& slot : grad.inputs) {
    for (size_t i = 0; i < slot.args.size(); ++i) {
      std::string& arg = slot.args[i];
      if (arg == ir::kEmptyVar || is_gradient(arg)) continue;
      const bool marked = arg.ends_with(kWrittenMark);
      if (marked) arg.pop_back();
      const bool read = !marked && std::find(ins.begin(), ins.end(), arg) != ins.end();
      const size_t at = read ? index : index + 1;
      reads_[&grad].push_back({slot.name, i, writes_before(arg, at), at});
    }
  }
}

// An op with its own gradient block reads, like that block, the values that the forward op read: the graph ensures
// that.
void ForwardReads::bind(ir::Op& op, bool same_block) {
  if (!op.sub_blocks().empty()) return;
  std::vector<ir::VersionRead> bound;
  for (const Read& read : reads_[&op]) {
    auto slot = std::find_if(op.inputs.begin(), op.inputs.end(), [&](const auto& s) { return s.name == read.slot; });
    std::string& arg = slot->args[read.arg];
    if (!is_stale(arg, read.version)) continue;
    if (same_block) {
      bound.push_back({read.slot, read.arg, read.version});
      continue;
    }
    auto [copy, made] = copies_.try_emplace({arg, read.version}, Copy{"", read.at});
    if (made) copy->second.name = copy_name(arg, read.version);
    arg = copy->second.name;
  }
  if (!bound.empty()) ir::set_version_reads(op, bound);
}

// In block 0 the graph keeps the values that blocks have read; a block inside a block must copy them.
std::set<std::string> ForwardReads::passing_for_block_of(size_t index) const {
  const ir::Op& op = *forward_.ops()[index];
  std::set<std::string> passing = passing_;
  if (find_op(op.type).has(kRepeats)) {
    for (const auto& name : op.output_args()) passing.insert(name);
  }
  if (forward_.idx() == 0) return passing;
  for (const auto& [name, writers] : writers_) {
    if (writers.back() > index) passing.insert(name);
  }
  return passing;
}

ForwardReads::Versions ForwardReads::seen_by_block_of(size_t index) const {
  Versions seen = outer_;
  for (const auto& name : forward_.ops()[index]->input_args()) {
    if (forward_.find_var(name)) seen[name] = writes_before(name, index);
  }
  return seen;
}

std::optional<int> ForwardReads::version_meant(const ir::Op& op, const std::string& name) const {
  if (!forward_.find_var(name)) {
    const auto outer = outer_.find(name);
    return outer == outer_.end() ? std::nullopt : std::optional(outer->second);
  }
  const auto reads = reads_.find(&op);
  if (op.sub_blocks().empty() || reads == reads_.end()) return std::nullopt;
  for (const Read& read : reads->second) {
    if (op.input(read.slot).at(read.arg) == name) return read.version;
  }
  return std::nullopt;
}

std::string ForwardReads::copy_name(const std::string& var, int version) const {
  std::string name = fmt::format("{}@VERSION@{}", var, version);
  while (forward_.find_var_recursive(name)) name += "_";
  return name;
}

void ForwardReads::insert_copies(ir::Block& forward) const {
  std::vector<std::pair<std::string, Copy>> last_first;
  for (const auto& [version, copy] : copies_) last_first.emplace_back(version.first, copy);
  std::stable_sort(last_first.begin(), last_first.end(),
                   [](const auto& a, const auto& b) { return a.second.at > b.second.at; });
  for (const auto& [var, copy] : last_first) {
    append_op(forward, {"assign", {{"X", {var}}}, {{"Out", {copy.name}}}, {{"op_role", int32_t{ir::role::kBackward}}}},
              copy.at);
    forward.find_var(copy.name)->stop_gradient = true;
  }
}

}  // namespace anabranch
