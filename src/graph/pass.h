// A pass edits a graph and keeps every value it computes (bit for bit, or within the tolerance it names). All passes
// are in one list (pipeline.cc); each is a file in passes/, can be switched off by name, and is verified afterwards.
#pragma once
#include <string>
#include <vector>

#include "graph/build_strategy.h"
#include "graph/graph.h"

namespace anabranch {

struct PassContext {
  const BuildStrategy& build;
};

struct Pass {
  const char* name;
  const char* what;                         // one line for explain()
  const char* tolerance;                    // "bit-equal", or by how much values may differ
  const char* (*skip)(const PassContext&);  // why it does not apply, or null
  int (*run)(Graph&, const PassContext&);   // how many places it changed
};

const std::vector<Pass>& pipeline();

struct PassReport {
  std::string name, outcome;
};
// A line for every pass: what it would do under this strategy, or why it would not.
std::string explain_passes(const BuildStrategy& build);
// Runs the pipeline; verifies after each pass, and writes <debug_graphviz_path>_<nn>_<pass>.dot when a path is set.
std::vector<PassReport> run_passes(Graph& graph, const PassContext& context);

}  // namespace anabranch
