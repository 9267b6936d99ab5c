// Names to Values, with a parent whose names are seen too. Values keep their address for the life of the scope.
// Look-ups happen when a plan is made, never in a step. Not thread-safe.
#pragma once
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/value.h"

namespace anabranch {

class Scope : public std::enable_shared_from_this<Scope> {
 public:
  static std::shared_ptr<Scope> make() { return std::shared_ptr<Scope>(new Scope()); }

  Value* var(const std::string& name);             // found in this scope, or made here
  Value* find_var(const std::string& name) const;  // here or in a parent; null when absent
  Value* find_local(const std::string& name) const;
  std::shared_ptr<Value> share(const std::string& name);  // as var(), kept alive beyond the scope
  void erase(const std::string& name);
  std::vector<std::string> local_names() const;  // sorted

  std::shared_ptr<Scope> new_scope();  // a child, owned by this scope until drop_kids
  void drop_kids() { kids_.clear(); }
  std::shared_ptr<Scope> parent() const { return parent_.lock(); }

  uint64_t id() const { return id_; }  // never reused, unlike addresses: safe as a cache key

 private:
  Scope();

  std::unordered_map<std::string, std::shared_ptr<Value>> vars_;
  std::weak_ptr<Scope> parent_;
  std::vector<std::shared_ptr<Scope>> kids_;
  uint64_t id_;
};

}  // namespace anabranch
