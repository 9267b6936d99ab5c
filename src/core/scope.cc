#include "core/scope.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/fork.h"

namespace anabranch {
namespace {

std::atomic<uint64_t> next_id{1};

// One for the names of all scopes: names are looked up when plans are made, and it is held across a fork. It must not
// check its owner: another thread unlocks it in the child.
std::mutex& names() {
  static auto& mutex = *new std::mutex();
  return mutex;
}

[[maybe_unused]] const bool hooked = [] {
  const auto unlock = [] { names().unlock(); };
  at_fork(ForkStage::kScopes, {[] { names().lock(); }, unlock, unlock});
  return true;
}();

}  // namespace

Scope::Scope(std::shared_ptr<Scope> parent)
    : parent_(std::move(parent)), gate_(parent_ ? parent_->gate_ : std::make_shared<RunGate>()), id_(next_id++) {}

std::shared_ptr<Value> Scope::share(const std::string& name) {
  if (auto found = find_shared_local(name)) return found;
  const std::lock_guard lock(names());
  auto& slot = vars_[name];
  if (!slot) {
    slot = std::make_shared<Value>(gate_);
    names_version_.fetch_add(1);
  }
  return slot;
}

std::shared_ptr<Value> Scope::find_shared_local(const std::string& name) const {
  const std::lock_guard lock(names());
  const auto it = vars_.find(name);
  return it == vars_.end() ? nullptr : it->second;
}

std::shared_ptr<Value> Scope::find_shared(const std::string& name) const {
  for (const Scope* s = this; s; s = s->parent_.get()) {
    if (auto found = s->find_shared_local(name)) return found;
  }
  return nullptr;
}

void Scope::erase(const std::string& name) {
  std::shared_ptr<Value> erased;  // destroyed when the lock is free
  const std::lock_guard lock(names());
  const auto it = vars_.find(name);
  if (it == vars_.end()) return;
  erased = std::move(it->second);
  vars_.erase(it);
  names_version_.fetch_add(1);
}

std::vector<std::string> Scope::local_names() const {
  std::vector<std::string> all;
  {
    const std::lock_guard lock(names());
    for (const auto& [name, value] : vars_) all.push_back(name);
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::shared_ptr<Scope> Scope::new_scope() { return std::shared_ptr<Scope>(new Scope(shared_from_this())); }

uint64_t Scope::names_version() const {
  uint64_t version = 0;
  for (const Scope* s = this; s; s = s->parent_.get()) version += s->names_version_.load(std::memory_order_acquire);
  return version;
}

}  // namespace anabranch
