// THE list of passes, in the order in which they run.
#include <fmt/format.h>

#include <cstdio>
#include <fstream>

#include "graph/passes/passes.h"

namespace anabranch {

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      // what the next ones look at
      kFoldConstants,
      kRemoveCopies,
      kShapeReads,
      kRemoveDead,
      // layouts: before convolutions and normalisations take in what stands behind them
      kBlockedLayout,
      // several nodes become one
      kFuseEmbeddings,
      kFuseFc,
      kFuseElementwise,
      kFuseAllReduce,
      kFuseOptimizers,
      // order
      kUpdatesLast,
      kProgramOrder,
      // memory: every reader is known
      kReuseInput,
  };
  return passes;
}

namespace {

void write_dot(const Graph& graph, const std::string& path, size_t number, const char* name) {
  const std::string file = fmt::format("{}_{:02}_{}.dot", path, number, name);
  std::ofstream out(file);
  out << to_dot(graph);
  AB_CHECK(out.good(), Unavailable, "debug_graphviz_path: cannot write {}", file);
}

}  // namespace

std::vector<PassReport> run_passes(Graph& graph, const PassContext& context) {
  const std::string& dots = context.build.debug_graphviz_path;
  std::vector<PassReport> reports;
  verify(graph);
  if (!dots.empty()) write_dot(graph, dots, 0, "replicated");
  for (const Pass& pass : pipeline()) {
    const bool off = context.build.disabled_passes.count(pass.name) != 0;
    const char* why = off ? "disabled by name" : pass.skip(context);
    if (why) {
      reports.push_back({pass.name, fmt::format("skipped: {}", why)});
      continue;
    }
    const int changes = pass.run(graph, context);
    verify(graph);
    if (!dots.empty()) write_dot(graph, dots, reports.size() + 1, pass.name);
    reports.push_back({pass.name, fmt::format("applied, {} changes ({}; {})", changes, pass.what, pass.tolerance)});
  }
  return reports;
}

}  // namespace anabranch
