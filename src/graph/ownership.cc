#include "graph/ownership.h"

#include <algorithm>

#include "base/error.h"
#include "opdef/check_op.h"
#include "opdef/op_def.h"

namespace anabranch {

bool is_update(const ir::Op& op) { return (op.role() & ir::role::kOptimize) != 0; }

bool is_exchange(const ir::Op& op) {
  if ((op.role() & (ir::role::kRpc | ir::role::kDist)) == 0) return false;
  const OpDef* def = find_op_or_null(op.type);
  return def && !def->is(kForAllReplicas);
}

std::set<std::string> shared_persistables(const ir::Program& program, bool independent) {
  std::set<std::string> shared, kept;
  for (int b = 0; b < program.num_blocks(); ++b) {
    for (const auto& v : program.block(b).vars()) {
      if (v->persistable) shared.insert(v->name);
    }
    for (const auto& op : program.block(b).ops()) {
      if (independent || is_update(*op) || is_exchange(*op)) continue;
      for (const auto& n : written_args(*op)) kept.insert(n);
    }
  }
  for (const auto& n : kept) shared.erase(n);
  return shared;
}

int Ownership::replica_of(const std::string& name, int replica, bool update) const {
  if (is_shared(name)) return 0;
  const auto it = update ? owners_.find(name) : owners_.end();
  return it == owners_.end() ? replica : it->second;
}

void Ownership::note_outputs(const ir::Op& update, int replica) {
  for (const auto& n : update.output_args()) {
    if (!is_shared(n)) owners_[n] = replica;
  }
}

int Ownership::choose_owner(const std::string& gradient, int64_t bytes) {
  const auto least = std::min_element(owned_bytes_.begin(), owned_bytes_.end());
  *least += std::max<int64_t>(1, bytes);
  return owners_[gradient] = static_cast<int>(least - owned_bytes_.begin());
}

int Ownership::owner_of(const ir::Op& update) const {
  const auto pairs = update.role_vars();
  const auto outs = update.output_args();
  const bool updates = std::any_of(outs.begin(), outs.end(), [&](const auto& n) { return is_shared(n); });
  for (const auto& [param, grad] : pairs) {
    AB_CHECK(pairs.size() == 1 || !updates, InvalidArgument,
             "op_role_var of {}, which updates a parameter, must name one parameter, got {}", update.type,
             pairs.size());
    if (auto it = owners_.find(grad); it != owners_.end()) return it->second;
  }
  for (const auto& n : update.input_args()) {
    if (auto it = owners_.find(n); it != owners_.end()) return it->second;
  }
  return 0;
}

}  // namespace anabranch
