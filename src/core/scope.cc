#include "core/scope.h"

#include <algorithm>
#include <atomic>

namespace anabranch {
namespace {
std::atomic<uint64_t> next_id{1};
}

Scope::Scope() : id_(next_id++) {}

std::shared_ptr<Value> Scope::share(const std::string& name) {
  auto& slot = vars_[name];
  if (!slot) slot = std::make_shared<Value>();
  return slot;
}

Value* Scope::var(const std::string& name) { return share(name).get(); }

Value* Scope::find_local(const std::string& name) const {
  auto it = vars_.find(name);
  return it == vars_.end() ? nullptr : it->second.get();
}

Value* Scope::find_var(const std::string& name) const {
  if (Value* v = find_local(name)) return v;
  const auto up = parent_.lock();
  return up ? up->find_var(name) : nullptr;
}

void Scope::erase(const std::string& name) { vars_.erase(name); }

std::vector<std::string> Scope::local_names() const {
  std::vector<std::string> names;
  for (const auto& [name, value] : vars_) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

std::shared_ptr<Scope> Scope::new_scope() {
  std::shared_ptr<Scope> kid = make();
  kid->parent_ = weak_from_this();
  kids_.push_back(kid);
  return kid;
}

}  // namespace anabranch
