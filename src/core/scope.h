// Names to Values, with a parent whose names are visible too. A Value keeps its address while it is shared: anything
// that keeps one for longer than a call - a plan, a replica's copies - shares it, because a name can be erased at any
// time. Any thread may look up, add and erase names; the scope's gate (base/run_gate.h) guards what a Value holds.
// Lookups happen when a plan is made, never in a step.
#pragma once
#include <atomic>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/run_gate.h"
#include "core/value.h"

namespace anabranch {

class Scope : public std::enable_shared_from_this<Scope> {
 public:
  static std::shared_ptr<Scope> make() { return std::shared_ptr<Scope>(new Scope(nullptr)); }

  std::shared_ptr<Value> share(const std::string& name);              // found in this scope, or created here
  std::shared_ptr<Value> find_shared(const std::string& name) const;  // here or in a parent; null when absent
  std::shared_ptr<Value> find_shared_local(const std::string& name) const;
  // The same for a caller that knows that the name is not erased meanwhile.
  Value* var(const std::string& name) { return share(name).get(); }
  Value* find_var(const std::string& name) const { return find_shared(name).get(); }
  Value* find_local(const std::string& name) const { return find_shared_local(name).get(); }
  void erase(const std::string& name);
  std::vector<std::string> local_names() const;  // sorted

  std::shared_ptr<Scope> new_scope();  // a child keeps its parent alive, not the reverse
  std::shared_ptr<Scope> parent() const { return parent_; }

  uint64_t id() const { return id_; }  // never reused, unlike addresses: safe as a cache key
  // Increases when a name is added to this scope or a parent, or erased there: earlier lookups may be outdated. A few
  // loads, no lock.
  uint64_t names_version() const;
  RunGate& gate() const { return *gate_; }  // shared by a scope and all its descendants

 private:
  explicit Scope(std::shared_ptr<Scope> parent);

  std::unordered_map<std::string, std::shared_ptr<Value>> vars_;
  const std::shared_ptr<Scope> parent_;
  const std::shared_ptr<RunGate> gate_;
  std::atomic<uint64_t> names_version_{0};
  const uint64_t id_;
};

}  // namespace anabranch
