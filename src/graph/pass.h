// A pass edits a graph and keeps every value that the graph computes, bit for bit or within the pass's tolerance. The
// list of all passes is in pipeline.cc. Each has a file in passes/ and can be disabled by name, and the graph is
// verified after each.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "graph/build_strategy.h"
#include "graph/graph.h"

namespace anabranch {

struct PassContext {
  const BuildStrategy& build;
  std::string disable = {};  // the reason why passes that change ops are disabled; empty if they are enabled
  const ir::Program* program = nullptr;       // the program of the graph; null: passes cannot read its other blocks
  int block = 0;                              // the block that the graph represents
  int replicas = 1;                           // number of replicas that run the block
  std::vector<Place> places = {};             // by replica; empty: the CPU
  std::vector<std::string>* notes = nullptr;  // lines for explain(), one per finding
  // Ops that almost fit a pattern, and the condition that failed. Set by explain() only, else null.
  std::vector<std::string>* near_misses = nullptr;
};

// The `skip` function of passes that run on devices only.
inline const char* skip_on_cpu(const PassContext& context) {
  return context.places.empty() ? "the program runs on the CPU" : nullptr;
}

// The field of BuildStrategy that disables a pass if it is False. An unset field does not disable it.
struct Switch {
  const char* field = nullptr;
  bool BuildStrategy::*plain = nullptr;
  std::optional<bool> BuildStrategy::*automatic = nullptr;
  constexpr Switch() = default;
  constexpr Switch(const char* name, bool BuildStrategy::*member) : field(name), plain(member) {}
  constexpr Switch(const char* name, std::optional<bool> BuildStrategy::*member) : field(name), automatic(member) {}
  bool is_off(const BuildStrategy& build) const {
    return plain ? !(build.*plain) : automatic && !(build.*automatic).value_or(true);
  }
};
#define AB_SWITCH(field) ::anabranch::Switch(#field, &::anabranch::BuildStrategy::field)

struct Pass {
  const char* name;
  const char* what;                                   // one line for explain()
  const char* tolerance;                              // "bit-equal", or the possible difference of values
  Switch needs = {};                                  // field of BuildStrategy that disables the pass if False
  const char* needs_flag = nullptr;                   // flag that disables the pass if 0
  bool keeps_ops = false;                             // remaining ops are unchanged, and so are their checks
  bool in_bodies = false;                             // applies to the graphs of sub-blocks, too (body_graphs.h)
  bool trusts_shapes = false;                         // relies on declared shapes of values from outside
  bool on_devices = false;                            // creates no ops without kernels for devices
  const char* (*skip)(const PassContext&) = nullptr;  // returns another reason to skip the pass; null: it runs
  int (*run)(Graph&, const PassContext&) = nullptr;   // returns the number of changes
};

const std::vector<Pass>& pipeline();

struct PassReport {
  std::string name, outcome;
  bool applied = false;      // not skipped
  double milliseconds = 0;   // duration of the pass, without the check after it
  bool changed_ops = false;  // its new ops may refuse shapes that the program's own ops accept
  int changes = 0;
  bool trusts_shapes = false;  // its changes are valid only while values from outside have their declared shapes
};
// Returns a line for every pass: its effect under this strategy, or the reason why it is skipped.
std::string explain_passes(const BuildStrategy& build);
// Runs the pipeline; adds near misses with the name of the pass; verifies after each pass, and writes
// <debug_graphviz_path>_<nn>_<pass>.dot when a path is set.
std::vector<PassReport> run_passes(Graph& graph, const PassContext& context);

}  // namespace anabranch
