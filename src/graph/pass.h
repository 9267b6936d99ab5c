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
  std::string set_aside = {};                 // why passes that change ops stay off; empty: they do not
  const ir::Program* program = nullptr;       // the graph is of one of its blocks; null: no pass may look into others
  int block = 0;                              // the block that the graph is made of
  int replicas = 1;                           // that the blocks run on
  std::vector<Place> places = {};             // by replica; none: the CPU
  std::vector<std::string>* notes = nullptr;  // lines for explain(): what was found in one place or another
};

// Of passes for devices alone.
inline const char* skip_on_cpu(const PassContext& context) {
  return context.places.empty() ? "the program runs on the CPU" : nullptr;
}

// A field of BuildStrategy that must not be False. One that is not set does not stand in the way.
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
  const char* tolerance;                              // "bit-equal", or by how much values may differ
  Switch needs = {};                                  // what switches it off,
  const char* needs_flag = nullptr;                   // and a flag that does so
  bool keeps_ops = false;                             // ops that are left stay as they are, and so do their checks
  bool in_bodies = false;                             // fits the graphs of sub-blocks, too (body_graphs.h)
  bool trusts_shapes = false;                         // relies on it that values from outside look as declared
  bool on_devices = false;                            // makes no ops that devices have no kernels for
  const char* (*skip)(const PassContext&) = nullptr;  // any other reason why it does not apply; null: it does
  int (*run)(Graph&, const PassContext&) = nullptr;   // how many places it changed
};

const std::vector<Pass>& pipeline();

struct PassReport {
  std::string name, outcome;
  bool applied = false;      // not skipped
  double milliseconds = 0;   // of the pass, without the check after it
  bool changed_ops = false;  // other shapes may be refused than the program's own ops refuse
  int changes = 0;
  bool trusts_shapes = false;  // it changed something that holds only while values from outside look as declared
};
// A line for every pass: what it would do under this strategy, or why it would not.
std::string explain_passes(const BuildStrategy& build);
// Runs the pipeline; verifies after each pass, and writes <debug_graphviz_path>_<nn>_<pass>.dot when a path is set.
std::vector<PassReport> run_passes(Graph& graph, const PassContext& context);

}  // namespace anabranch
