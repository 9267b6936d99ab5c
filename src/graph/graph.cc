#include "graph/graph.h"

#include <fmt/format.h>

namespace anabranch {

int Graph::var(const std::string& name, int replica, const ir::Var& desc) {
  Ids& ids = by_name_[name];
  ids.first.resize(std::max<size_t>(ids.first.size(), replicas), -1);
  ids.last.resize(ids.first.size(), -1);
  if (ids.last[replica] < 0) {
    ids.first[replica] = ids.last[replica] = static_cast<int>(vars.size());
    GraphVar v;
    v.name = name;
    v.replica = replica;
    v.desc = desc;
    vars.push_back(std::move(v));
  }
  return ids.last[replica];
}

int Graph::find(const std::string& name, int replica) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? -1 : it->second.last[replica];
}

int Graph::first(const std::string& name, int replica) const {
  auto it = by_name_.find(name);
  return it == by_name_.end() ? -1 : it->second.first[replica];
}

int Graph::fetched_as(const std::string& name, int replica) const {
  const int var = first(name, replica);
  return var >= 0 && vars[var].desc.persistable ? var : find(name, replica);
}

int Graph::add_version(int var) {
  GraphVar v;
  v.name = vars[var].name;
  v.replica = vars[var].replica;
  v.version = vars[var].version + 1;
  v.desc = vars[var].desc;
  v.desc.persistable = false;
  const int id = static_cast<int>(vars.size());
  by_name_.at(v.name).last[v.replica] = id;
  vars.push_back(std::move(v));
  return id;
}

int Graph::on_host(int var) const {
  const auto it = on_host_.find(var);
  return it == on_host_.end() ? var : it->second;
}

int Graph::buffer(int var) const {
  while (vars[var].same_buffer_as >= 0) var = vars[var].same_buffer_as;
  return var;
}

std::string GraphNode::describe(int block) const {
  constexpr size_t kListed = 8;
  if (parts.empty()) return op->describe(index, block);
  std::string text = fmt::format("{}, which stands for", op->type);
  for (size_t i = 0; i < parts.size() && i < kListed; ++i) {
    text += "\n         " + parts[i].op->describe(parts[i].index, block);
  }
  if (parts.size() > kListed) text += fmt::format("\n         and {} more", parts.size() - kListed);
  return text;
}

std::string to_dot(const Graph& graph, const std::string& title) {
  const auto escaped = [](const std::string& text) {
    std::string out;
    for (char c : text) {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
    return out;
  };
  std::string s = fmt::format("digraph \"{}\" {{\n", escaped(title));
  s += "  rankdir=TB;\n  node [fontname=\"Helvetica\", fontsize=10];\n";
  std::unordered_map<int, int> version;       // of a buffer; increases with each write
  std::unordered_map<int, std::string> last;  // the dot node of a buffer's newest version
  const auto var_node = [&](int var) {
    const int buffer = graph.buffer(var);
    auto [it, fresh] = last.emplace(buffer, fmt::format("v{}_0", buffer));
    if (fresh) {
      s += fmt::format("  {} [label=\"{}\\nreplica {}\"];\n", it->second, escaped(graph.vars[var].name),
                       graph.vars[var].replica);
    }
    return it->second;
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const GraphNode& node = graph.nodes[i];
    s += fmt::format("  n{} [shape=box, style=filled, fillcolor=\"/pastel19/{}\", label=\"{}\"];\n", i,
                     node.replica % 9 + 1, escaped(node.op->type));
    for (int v : graph.reads(node)) s += fmt::format("  {} -> n{};\n", var_node(v), i);
    for (int v : graph.writes(node)) {
      const int buffer = graph.buffer(v);
      const int next = ++version[buffer];
      const std::string name = fmt::format("v{}_{}", buffer, next);
      last[buffer] = name;
      s += fmt::format("  {} [label=\"{} ({})\\nreplica {}\"];\n  n{} -> {};\n", name, escaped(graph.vars[v].name),
                       next, graph.vars[v].replica, i, name);
    }
  }
  return s + "}\n";
}

}  // namespace anabranch
