// Single assignment: the value of a name that an op refers to. An op that writes a name that was used before creates a
// new version of it, a separate variable with its own memory, shape and LoD. A name stays one variable in two cases:
// updates in place that the op declares (OpDef::updates), and outputs that may keep their previous value
// (kKeepsOutputs, sub-blocks), into which the previous version is copied first. At the end the last version of a
// persistable variable is copied into the first, which is the one in the scope.
#pragma once
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace anabranch {

class Versions {
 public:
  explicit Versions(Graph& graph) : graph_(graph) {}

  // Announces that an op will read an old value: the one after the first `writes` ops that write the name.
  void will_read(const std::string& name, int writes) { read_later_.insert({name, writes}); }

  // The value that an op reads now.
  int read(const std::string& name, int replica, const ir::Var& desc);
  // The value after the first `writes` ops that write the name; the current one if there were fewer.
  int read_after(int writes, const std::string& name, int replica, const ir::Var& desc);
  // The variable for an op that writes the whole value.
  int write(const std::string& name, int replica, const ir::Var& desc);
  // The variable for an op that may write. If `copy_from` is >= 0, it must be copied into the result first.
  int keep(const std::string& name, int replica, const ir::Var& desc, int* copy_from);
  // The current value has a later reader, so no op may change it in place.
  bool must_stay(const std::string& name, int replica) const;
  // An op of the program that writes the name is complete.
  void written(const std::string& name, int replica);

  // Nodes built without read() and write() report the variables they use.
  void touch(int var);
  // The first version of each variable with several, with its last one.
  std::vector<std::pair<int, int>> renewed() const;

  bool touched(int var) const { return var < static_cast<int>(touched_.size()) && touched_[var]; }

 private:
  int next(int var);

  Graph& graph_;
  std::set<std::pair<std::string, int>> read_later_;
  std::vector<char> touched_;                                        // by variable
  std::map<std::pair<std::string, int>, std::vector<int>> history_;  // the value after 0, 1, ... writes
};

}  // namespace anabranch
