// A pass edits a graph and keeps every value it computes (bit for bit, or within the tolerance it names). All passes
// are in one list (pipeline.cc); each is a file in passes/, can be switched off by name, and is verified afterwards.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "graph/build_strategy.h"
#include "graph/graph.h"

namespace anabranch {

struct PassContext {
  const BuildStrategy& build;
  std::string disable = {};                   // why passes that change ops are disabled; empty: they are not
  const ir::Program* program = nullptr;       // the graph is of one of its blocks; null: no pass may look into others
  int block = 0;                              // the block of the graph
  int replicas = 1;                           // of the blocks
  std::vector<Place> places = {};             // by replica; empty: the CPU
  std::vector<std::string>* notes = nullptr;  // lines for explain(), one per finding
  // Ops that almost fit a pattern, and the condition that failed; null unless explain() asks for them.
  std::vector<std::string>* near_misses = nullptr;
};

// Passes for devices only.
inline const char* skip_on_cpu(const PassContext& context) {
  return context.places.empty() ? "the program runs on the CPU" : nullptr;
}

// A field of BuildStrategy that must not be False. An unset field does not disable the pass.
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
  Switch needs = {};                                  // the switch that disables it,
  const char* needs_flag = nullptr;                   // and a flag that does so
  bool keeps_ops = false;                             // remaining ops are unchanged, and so are their checks
  bool in_bodies = false;                             // applies to the graphs of sub-blocks, too (body_graphs.h)
  bool trusts_shapes = false;                         // relies on declared shapes of values from outside
  bool on_devices = false;                            // creates no ops without kernels for devices
  const char* (*skip)(const PassContext&) = nullptr;  // any other reason not to apply; null: it applies
  int (*run)(Graph&, const PassContext&) = nullptr;   // returns the number of changes
};

const std::vector<Pass>& pipeline();

struct PassReport {
  std::string name, outcome;
  bool applied = false;      // not skipped
  double milliseconds = 0;   // duration of the pass, without the check after it
  bool changed_ops = false;  // the new ops may refuse other shapes than the program's own ops
  int changes = 0;
  bool trusts_shapes = false;  // it changed something that holds only while values from outside look as declared
};
// A line for every pass: what it would do under this strategy, or why it would not.
std::string explain_passes(const BuildStrategy& build);
// Runs the pipeline; adds near misses with the name of the pass; verifies after each pass, and writes
// <debug_graphviz_path>_<nn>_<pass>.dot when a path is set.
std::vector<PassReport> run_passes(Graph& graph, const PassContext& context);

}  // namespace anabranch
