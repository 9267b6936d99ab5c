// Single assignment: which value of a name an op means. An op that writes a name which something has touched before
// makes a new version of it, a variable of its own with memory, shape and LoD of its own. What stays one variable:
// updates in place that the op declares (OpDef::updates), and outputs that may keep what they held (kKeepsOutputs,
// sub-blocks), for which the version before is copied first. At the end the last version of a persistable variable is
// copied into the first, which is the one in the scope.
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

  // Some op reads the value after the first `writes` ops that write the name, when it is the current one no more.
  void will_read(const std::string& name, int writes) { read_later_.insert({name, writes}); }

  // The value that an op reads now.
  int read(const std::string& name, int replica, const ir::Var& desc);
  // The value after the first `writes` ops that write the name; the current one when there were fewer.
  int read_after(int writes, const std::string& name, int replica, const ir::Var& desc);
  // The variable for an op that writes the whole value.
  int write(const std::string& name, int replica, const ir::Var& desc);
  // The variable for an op that may write. When `copy_from` comes back >= 0, it must be copied into the result first.
  int keep(const std::string& name, int replica, const ir::Var& desc, int* copy_from);
  // The current value is read later, so that no op may change it in its place.
  bool must_stay(const std::string& name, int replica) const;
  // An op of the program that writes the name is done.
  void written(const std::string& name, int replica);

  // Nodes that were made without read() and write() say what they touch.
  void touch(int var);
  // The first version of each variable whose last version is another, with that one.
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
