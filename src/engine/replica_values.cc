#include "engine/replica_values.h"

#include <algorithm>
#include <mutex>

namespace anabranch {

ReplicaValues::ReplicaValues(std::shared_ptr<Scope> scope, int replicas, std::set<std::string> shared)
    : scope_(std::move(scope)), replicas_(replicas), shared_(std::move(shared)) {}

Value* ReplicaValues::get(const std::string& name, int replica) {
  if (lender_) {
    if (lender_->shared_.count(name) || lender_->scope_->find_var(name)) {
      return lender_->get(name, std::min(replica, lender_->replicas_ - 1));
    }
  }
  Value* original = scope_->find_var(name);
  if (!original) original = scope_->var(name);
  if (replica == 0 || shared_.count(name)) return original;
  const std::lock_guard turn(copies_in_use_);
  auto [it, fresh] = copies_.try_emplace(name);
  Copies& c = it->second;
  if (fresh) {
    c.original = original;
    c.version = ~uint64_t{0};  // older than anything: copied before the next run
    c.of_replica.resize(replicas_);
  }
  auto& copy = c.of_replica[replica];
  if (!copy) {
    copy = std::make_shared<Value>();
    if (original->initialized()) copy->copy_from(*original);
  }
  return copy.get();
}

void ReplicaValues::refresh_copies() {
  if (lender_) lender_->refresh_copies();
  const std::lock_guard turn(copies_in_use_);
  for (auto& [name, c] : copies_) {
    if (c.version == c.original->version() || !c.original->initialized()) continue;
    for (auto& copy : c.of_replica) {
      if (copy) copy->copy_from(*c.original);
    }
    c.version = c.original->version();
  }
}

void ReplicaValues::mark_written(const std::vector<Value*>& written, bool complete) {
  for (Value* v : written) v->touch();
  if (complete) keep_up();
}

// A copy that was up to date before the run is up to date after it: the run updated copy and original alike.
void ReplicaValues::keep_up() {
  if (lender_) lender_->keep_up();
  const std::lock_guard turn(copies_in_use_);
  for (auto& [name, c] : copies_) {
    if (c.version + 1 == c.original->version()) ++c.version;
  }
}

}  // namespace anabranch
