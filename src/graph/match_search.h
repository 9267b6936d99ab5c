// The search for a match of one pattern that contains one node (match.h).
#pragma once
#include <string>
#include <vector>

#include "graph/match.h"

namespace anabranch {

class Search {
 public:
  Search(const Graph& graph, const GraphEdit& edit, const PassContext& context, const Pattern& pattern)
      : graph_(graph), edit_(edit), context_(context), pattern_(pattern) {}
  std::optional<Match> run(int first);
  // Adds the near misses, without those of nodes that the match contains.
  void report(const Match* found) const;

 private:
  const GraphNode& node(int at) const { return graph_.nodes[static_cast<size_t>(at)]; }
  bool skips(size_t op) const { return (without_ >> (pattern_.ops_.size() - 1 - op) & 1u) != 0; }

  // Matches the ops from this one on, each next to `m.end_`.
  bool extend(size_t op, const Match& m);
  bool extend_by(size_t op, int at, const Match& m);
  // Whether the node can be part of the match, apart from its arguments.
  bool fits_in(size_t op, int at, const Match& m);
  bool bind(size_t op, int at, const OpPattern::Slot* operand, Match* m);
  bool bind_arguments(size_t op, int at, const OpPattern::Slot* operand, Match* m);
  bool bind_gradient_arguments(size_t op, int at, const OpPattern::Slot* operand, Match* m);
  bool check_conditions(size_t op, int at, const Match& m);
  bool finish(Match m);

  // The gradient ops of the parts, from the last part to the first; none is fine, too.
  bool find_gradient(Match* m);
  // The op's gradient: the only one that reads its operand; -1 if there is none, or if there are several.
  int gradient_of(size_t op, const Match& m) const;
  // The op's gradient, which reads this gradient of the op's result; -1 if another op, or several ops, do.
  int reader_of_gradient(size_t op, int var, const Match& m);
  bool is_read_by_parts_only(const Match& m);

  // The op at this node does not fit. Always false.
  bool miss(const Match& m, int at, std::string_view why);
  bool miss_private(const Match& m, int at, int var);

  const Graph& graph_;
  const GraphEdit& edit_;
  const PassContext& context_;
  const Pattern& pattern_;
  unsigned without_ = 0;  // bits of optional ops that are skipped, the last op first
  std::optional<Match> found_;
  struct Miss {
    int at;                  // the node that does not fit,
    std::string chain, why;  // next to these ops
  };
  std::vector<Miss> misses_;
};

}  // namespace anabranch
