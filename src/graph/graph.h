// The SSA graph of one compiled program: block 0, once per replica, with the collectives between them. Nodes are in a
// legal sequential order and list what they read and write; edges and versions follow from that order, so a pass edits
// a list. Names end at lowering (exec/lower.h).
#pragma once
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "device/place.h"
#include "ir/program.h"

namespace anabranch {

struct GraphVar {
  std::string name;
  int replica = 0;
  int version = 0;  // number of earlier values of the name; see versions.h
  ir::Var desc;     // kind, dtype, declared shape; persistable: it is the variable of the scope (version 0 only)
  bool fed = false;
  bool fetched = false;
  bool produced = false;     // computed in the graph: some node writes it and does not read it
  bool dynamic = false;      // its shape depends on values
  bool speculative = false;  // computed even if the program would not: NaN and infinity in it are not errors
  int same_buffer_as = -1;   // shares the memory of that variable (set by passes)
  Place place;               // location of its value
};

struct GraphNode {
  ir::OpRef op;
  int index = -1;  // position in block 0, for messages; -1: created by the engine
  int replica = 0;
  Place from, place;                         // location of its inputs and of its outputs: different only for copies
  std::vector<int> ins, outs;                // variables by flattened argument; -1 for "none"
  std::vector<int> more_reads, more_writes;  // variables that a sub-block uses in addition to the arguments
  std::vector<int> only_shapes;              // inputs of which only the (static) shape is read: they need no edge
  static constexpr int kOrderToken = 0;      // held by ops with an effect outside of the graph: print, files, readers
  std::vector<int> tokens;
  struct Part {
    int index;
    ir::OpRef op;
  };
  std::vector<Part> parts;  // the original ops of a fused node, with their positions
  int role() const { return op->role(); }
  bool on_device() const { return !from.on_host() || !place.on_host(); }
  // The op and the user's line, for messages; a fused node lists its parts on separate lines.
  std::string describe(int block = 0) const;
};

// The variables in two lists of a node, without missing arguments. It holds no copy: passes ask for these often.
class VarsOfNode {
 public:
  class Iterator {
   public:
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using reference = const int&;
    using pointer = const int*;
    using iterator_category = std::forward_iterator_tag;

    Iterator() = default;
    Iterator(const int* at, const int* end, std::span<const int> then) : at_(at), end_(end), then_(then) { settle(); }
    const int& operator*() const { return *at_; }
    Iterator& operator++() {
      ++at_;
      settle();
      return *this;
    }
    Iterator operator++(int) {
      const Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator& other) const { return at_ == other.at_; }

   private:
    // Moves to an argument that is there, or to the second list, in which nothing is missing.
    void settle() {
      while (in_args_ && at_ != end_ && *at_ < 0) ++at_;
      if (at_ != end_ || !then_.data()) return;
      at_ = then_.data();
      end_ = at_ + then_.size();
      then_ = {};
      in_args_ = false;
    }

    const int *at_ = nullptr, *end_ = nullptr;
    std::span<const int> then_;
    bool in_args_ = true;
  };

  VarsOfNode(std::span<const int> args, std::span<const int> more) : args_(args), more_(more) {}
  Iterator begin() const { return {args_.data(), args_.data() + args_.size(), more_}; }
  Iterator end() const {
    const int* last = more_.data() ? more_.data() + more_.size() : args_.data() + args_.size();
    return {last, last, {}};
  }
  operator std::vector<int>() const { return {begin(), end()}; }  // NOLINT(*-explicit-*): for those who keep them

 private:
  std::span<const int> args_, more_;
};

class Graph {
 public:
  int replicas = 1;
  std::vector<GraphVar> vars;
  std::vector<GraphNode> nodes;

  // The variable of this name on this replica, created at first mention from its description.
  int var(const std::string& name, int replica, const ir::Var& desc);
  int find(const std::string& name, int replica) const;   // its last version; -1 if it was never mentioned
  int first(const std::string& name, int replica) const;  // its version 0
  int add_version(int var);                               // another value of the name: a temporary
  // The value of the name after a run: the last version, in the scope's variable if it is persistable.
  int fetched_as(const std::string& name, int replica) const;
  int buffer(int var) const;  // follows same_buffer_as
  // For a fetched variable on a device: its copy on the host, which the caller gets.
  int on_host(int var) const;
  void give_on_host(int var, int host) { on_host_[var] = host; }
  // Variables, including those of sub-blocks; valid until the node changes.
  VarsOfNode reads(const GraphNode& node) const { return {node.ins, node.more_reads}; }
  VarsOfNode writes(const GraphNode& node) const { return {node.outs, node.more_writes}; }

 private:
  struct Ids {
    std::vector<int> first, last;  // per replica
  };
  std::unordered_map<std::string, Ids> by_name_;
  std::unordered_map<int, int> on_host_;
};

std::string to_dot(const Graph& graph, const std::string& title = "anabranch");

}  // namespace anabranch
