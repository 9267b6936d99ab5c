// The SSA graph of one compiled program: block 0, once per replica, with the collectives between them. Nodes stand in
// a legal sequential order and say what they read and write; edges and versions follow from that order, so a pass
// edits a list. Names live here and die at lowering (exec/lower.h).
#pragma once
#include <string>
#include <unordered_map>
#include <vector>

#include "device/place.h"
#include "ir/program.h"

namespace anabranch {

struct GraphVar {
  std::string name;
  int replica = 0;
  int version = 0;  // how many values the name had before this one; see versions.h
  ir::Var desc;     // kind, dtype, declared shape; persistable: it is the variable of the scope (version 0 only)
  bool fed = false;
  bool fetched = false;
  bool produced = false;  // its value is made in the graph: some node writes it and does not read it
  bool dynamic = false;   // its shape depends on values
  bool speculative =
      false;  // made whether the program would have made it or not: numbers that mean nothing are no error
  int same_buffer_as = -1;  // shares the memory of that variable (set by passes)
  Place place;              // where its value lies
};

struct GraphNode {
  ir::OpRef op;
  int index = -1;  // place in block 0, for messages; -1: made by the engine
  int replica = 0;
  Place from, place;                         // where what it reads lies, and what it makes: others only of copies
  std::vector<int> ins, outs;                // variables by flattened argument; -1 for "none"
  std::vector<int> more_reads, more_writes;  // what a sub-block touches beside the arguments
  std::vector<int> only_shapes;              // inputs of which only the (static) shape is read: no edge is needed
  std::vector<int> tokens;
  struct Part {
    int index;
    ir::OpRef op;
  };
  std::vector<Part> parts;  // of a node that passes made of several ops: those ops, with their places
  int role() const { return op->role(); }
  bool on_device() const { return !from.on_host() || !place.on_host(); }
  // The op and the user's line, for messages; of a node with parts, theirs in lines of their own.
  std::string describe(int block = 0) const;
};

class Graph {
 public:
  int replicas = 1;
  std::vector<GraphVar> vars;
  std::vector<GraphNode> nodes;

  // The variable of this name on this replica, made at first mention from its description.
  int var(const std::string& name, int replica, const ir::Var& desc);
  int find(const std::string& name, int replica) const;   // its last version; -1 when it was never mentioned
  int first(const std::string& name, int replica) const;  // its version 0
  int add_version(int var);                               // one more value of the name: a temporary
  // What somebody who asks for the name after a run is given: the last version, in the scope's variable when it is
  // persistable.
  int fetched_as(const std::string& name, int replica) const;
  int buffer(int var) const;  // follows same_buffer_as
  // Of a fetched variable that lies at a device: the one on the host that the caller is given.
  int on_host(int var) const;
  void give_on_host(int var, int host) { on_host_[var] = host; }
  std::vector<int> reads(const GraphNode& node) const;  // variables, with those of sub-blocks
  std::vector<int> writes(const GraphNode& node) const;

 private:
  struct Ids {
    std::vector<int> first, last;  // per replica
  };
  std::unordered_map<std::string, Ids> by_name_;
  std::unordered_map<int, int> on_host_;
};

std::string to_dot(const Graph& graph, const std::string& title = "anabranch");

}  // namespace anabranch
