#include "graph/versions.h"

namespace anabranch {

void Versions::touch(int var) {
  if (var < 0) return;
  if (var >= static_cast<int>(touched_.size())) touched_.resize(graph_.vars.size(), 0);
  touched_[var] = 1;
}

int Versions::read(const std::string& name, int replica, const ir::Var& desc) {
  const int var = graph_.var(name, replica, desc);
  touch(var);
  return var;
}

int Versions::read_after(int writes, const std::string& name, int replica, const ir::Var& desc) {
  const auto it = history_.find({name, replica});
  if (it == history_.end() || writes >= static_cast<int>(it->second.size())) return read(name, replica, desc);
  touch(it->second[writes]);
  return it->second[writes];
}

int Versions::write(const std::string& name, int replica, const ir::Var& desc) {
  int var = graph_.var(name, replica, desc);
  if (touched(var)) var = next(var);
  touch(var);
  return var;
}

int Versions::keep(const std::string& name, int replica, const ir::Var& desc, int* copy_from) {
  *copy_from = -1;
  int var = graph_.var(name, replica, desc);
  // The shape may change from here on. Earlier readers of a value with a fixed shape must not see that.
  if (must_stay(name, replica) || (touched(var) && !graph_.vars[var].dynamic)) {
    *copy_from = var;
    var = next(var);
  }
  graph_.vars[var].dynamic = true;
  touch(var);
  return var;
}

bool Versions::must_stay(const std::string& name, int replica) const {
  if (read_later_.empty()) return false;
  const auto it = history_.find({name, replica});
  const int writes = it == history_.end() ? 0 : static_cast<int>(it->second.size()) - 1;
  return read_later_.count({name, writes}) != 0;
}

void Versions::written(const std::string& name, int replica) {
  auto& values = history_[{name, replica}];
  const int now = graph_.find(name, replica);
  if (values.empty()) values.push_back(graph_.first(name, replica));
  values.push_back(now);
}

int Versions::next(int var) {
  const int made = graph_.add_version(var);
  // The program describes a name once, so it is unknown which version that description fits. Passes ignore variables of
  // an unknown kind.
  for (int v : {var, made}) {
    graph_.vars[v].desc.kind = VarKind::kRaw;
    graph_.vars[v].desc.shape = Shape{};
  }
  return made;
}

std::vector<std::pair<int, int>> Versions::renewed() const {
  std::vector<std::pair<int, int>> found;
  for (size_t v = 0; v < graph_.vars.size(); ++v) {
    const GraphVar& var = graph_.vars[v];
    if (var.version != 0) continue;
    const int last = graph_.find(var.name, var.replica);
    if (last != static_cast<int>(v)) found.emplace_back(static_cast<int>(v), last);
  }
  return found;
}

}  // namespace anabranch
