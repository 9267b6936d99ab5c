#include "engine/replica_values.h"

#include <algorithm>
#include <mutex>

namespace anabranch {

ReplicaValues::ReplicaValues(std::shared_ptr<Scope> scope, int replicas, std::set<std::string> shared)
    : scope_(std::move(scope)),
      replicas_(replicas),
      shared_(std::move(shared)),
      names_version_(scope_->names_version()) {}

std::shared_ptr<Value> ReplicaValues::find(const std::string& name) {
  const std::lock_guard lock(in_use_);
  return look_up(name);
}

std::shared_ptr<Value> ReplicaValues::look_up(const std::string& name) {
  return found_[name] = scope_->find_shared(name);
}

uint64_t ReplicaValues::moves() {
  const uint64_t lenders = lender_ ? lender_->moves() : 0;
  const std::lock_guard lock(in_use_);
  if (const uint64_t now = scope_->names_version(); now != names_version_) [[unlikely]] {
    names_version_ = now;
    const bool moved = std::any_of(found_.begin(), found_.end(),
                                   [&](const auto& f) { return scope_->find_shared(f.first) != f.second; });
    if (moved) {
      ++moves_;
      found_.clear();
      copies_.clear();
    }
  }
  return moves_ + lenders;
}

std::shared_ptr<Value> ReplicaValues::get(const std::string& name, int replica) {
  if (lender_) {
    if (lender_->shared_.count(name) || lender_->scope_->find_shared(name)) {
      return lender_->get(name, std::min(replica, lender_->replicas_ - 1));
    }
  }
  const std::lock_guard lock(in_use_);
  std::shared_ptr<Value> original = look_up(name);
  if (!original) original = found_[name] = scope_->share(name);
  if (replica == 0 || shared_.count(name)) return original;
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
  return copy;
}

void ReplicaValues::refresh_copies() {
  if (lender_) lender_->refresh_copies();
  const std::lock_guard lock(in_use_);
  for (auto& [name, c] : copies_) {
    if (c.version == c.original->version() || !c.original->initialized()) continue;
    for (auto& copy : c.of_replica) {
      if (copy) copy->copy_from(*c.original);
    }
    c.version = c.original->version();
  }
}

std::vector<ReplicaValues::Copy> ReplicaValues::copies() {
  refresh_copies();
  const std::lock_guard lock(in_use_);
  std::vector<Copy> out;
  for (const auto& [name, c] : copies_) {
    for (size_t r = 1; r < c.of_replica.size(); ++r) {
      if (c.of_replica[r]) out.push_back({name, static_cast<int>(r), c.of_replica[r]});
    }
  }
  return out;
}

void ReplicaValues::set_copy(const std::string& name, int replica, const Tensor& value) {
  if (shared_.count(name)) return;  // the first replica's exists already
  const std::shared_ptr<Value> copy = get(name, replica);
  refresh_copies();  // otherwise the next run would overwrite it
  copy->as<Tensor>().copy_from(value);
}

void ReplicaValues::mark_written(const std::vector<Value*>& written, bool complete) {
  for (Value* v : written) v->touch();
  if (complete) keep_up();
}

// A copy that was current before the run is current after it: the run updated copy and source alike.
void ReplicaValues::keep_up() {
  if (lender_) lender_->keep_up();
  const std::lock_guard lock(in_use_);
  for (auto& [name, c] : copies_) {
    if (c.version + 1 == c.original->version()) ++c.version;
  }
}

}  // namespace anabranch
