// The list of all passes, in order of execution.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <sstream>

#include "base/counted.h"
#include "base/flags.h"
#include "graph/passes/passes.h"
#include "graph/verify.h"

namespace anabranch {

const std::vector<Pass>& pipeline() {
  static const std::vector<Pass> passes = {
      // simplifications for later passes
      kFoldConstants,
      kRemoveCopies,
      kShapeReads,
      kRemoveDead,
      // element types: before fusion
      kMixedPrecision,
      // loops: before the ops around them change
      kFuseRecurrent,
      kFuseSequenceSteps,
      kFuseUnrolled,
      // gradients of slices: before images get their layouts
      kSumSliceGradients,
      // convolutions with the ops after them: before images get their layouts
      kFuseConv,
      // layouts: before convolutions and normalizations fuse later ops
      kBlockedLayout,
      kChannelsLast,
      // fusion
      kFuseAttention,
      kFuseLayerNorm,
      kFuseEmbeddings,
      kFuseQuantized,
      kFuseFc,
      kBfloat16Products,
      kFuseBnAct,
      kFuseElementwise,
      kShareSumGradients,
      kFuseAllReduce,
      kFuseOptimizers,
      kRawGradients,
      // order
      kUpdatesLast,
      kProgramOrder,
      // devices: sums of gradients have their nodes, and their ops are known
      kSyncBatchNorm,
      kStraightenBlocks,
      kPlaceOnDevices,
      // memory: every reader is known
      kReuseInput,
  };
  return passes;
}

namespace {

void write_dot(const Graph& graph, const std::string& path, size_t number, const char* name, const std::string& did) {
  const std::string file = fmt::format("{}_{:02}_{}.dot", path, number, name);
  std::ofstream out(file);
  out << to_dot(graph, did.empty() ? name : fmt::format("{}: {}", name, did));
  AB_CHECK(out.good(), Unavailable, "debug_graphviz_path: cannot write {}", file);
}

// Names in FLAGS_disable_passes. An unknown name would be mistaken for a disabled pass.
std::set<std::string> disabled_by_flag() {
  std::set<std::string> names;
  std::istringstream listed(std::get<std::string>(get_flag("FLAGS_disable_passes")));
  for (std::string name; std::getline(listed, name, ',');) {
    name.erase(std::remove(name.begin(), name.end(), ' '), name.end());
    if (name.empty()) continue;
    const auto& all = pipeline();
    const bool known = std::any_of(all.begin(), all.end(), [&](const Pass& p) { return name == p.name; });
    if (!known && name != "all") {
      std::string text;
      for (const Pass& p : all) text += fmt::format("{}{}", text.empty() ? "" : ", ", p.name);
      AB_THROW(InvalidArgument, "FLAGS_disable_passes: there is no pass {}; there are: {}", name, text);
    }
    names.insert(name);
  }
  return names;
}

// Why a pass does not run; empty if it does.
std::string reason_to_skip(const Pass& pass, const PassContext& context, const std::set<std::string>& by_flag) {
  if (context.block > 0 && !pass.in_bodies) return "not in sub-blocks";
  if (context.build.disabled_passes.count(pass.name) != 0) return "disabled by name";
  if (by_flag.count(pass.name) != 0 || by_flag.count("all") != 0) return "FLAGS_disable_passes names it";
  if (!pass.keeps_ops && !context.disable.empty()) return fmt::format("disabled for this step: {}", context.disable);
  if (pass.needs.is_off(context.build)) return fmt::format("{} is False", pass.needs.field);
  if (pass.needs_flag && !std::get<bool>(get_flag(pass.needs_flag))) return fmt::format("{} is 0", pass.needs_flag);
  if (!context.places.empty() && !pass.on_devices) return "the program runs on a device";
  const char* why = pass.skip ? pass.skip(context) : nullptr;
  return why ? why : "";
}

void name_near_misses(const Pass& pass, size_t first, std::vector<std::string>* near_misses) {
  for (size_t i = first; i < near_misses->size(); ++i) {
    (*near_misses)[i] = fmt::format("{}: {}", pass.name, (*near_misses)[i]);
  }
}

using Clock = std::chrono::steady_clock;

}  // namespace

std::string explain_passes(const BuildStrategy& build) {
  const auto by_flag = disabled_by_flag();
  std::string text;
  for (const Pass& pass : pipeline()) {
    const std::string why = reason_to_skip(pass, {build}, by_flag);
    const std::string outcome =
        why.empty() ? fmt::format("on ({}; {})", pass.what, pass.tolerance) : fmt::format("skipped: {}", why);
    text += fmt::format("  {:<16} {}\n", pass.name, outcome);
  }
  return text;
}

std::vector<PassReport> run_passes(Graph& graph, const PassContext& context) {
  std::string dots = context.near_misses ? "" : context.build.debug_graphviz_path;  // explain() writes no files
  if (!dots.empty() && context.block > 0) dots += fmt::format("_block_{}", context.block);
  if (!dots.empty() && !context.disable.empty()) dots += "_disabled";
  const auto by_flag = disabled_by_flag();
  std::vector<PassReport> reports;
  Verifier verifier;
  verifier.verify(graph);
  bool verified = true;
  if (!dots.empty()) write_dot(graph, dots, 0, "replicated", "");
  for (const Pass& pass : pipeline()) {
    if (const std::string why = reason_to_skip(pass, context, by_flag); !why.empty()) {
      reports.push_back({pass.name, fmt::format("skipped: {}", why)});
      continue;
    }
    const auto begin = Clock::now();
    std::vector<std::string> notes;
    PassContext with_notes = context;
    with_notes.notes = &notes;
    const size_t near_misses = context.near_misses ? context.near_misses->size() : 0;
    const int changes = pass.run(graph, with_notes);
    if (context.near_misses) name_near_misses(pass, near_misses, context.near_misses);
    const double ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    verified = changes > 0;
    if (verified) verifier.verify(graph);
    const std::string did = fmt::format("applied, {} in {:.3f} ms", counted(changes, "change"), ms);
    if (!dots.empty()) write_dot(graph, dots, reports.size() + 1, pass.name, did);
    const bool changed_ops = changes > 0 && !pass.keeps_ops;
    std::string outcome = fmt::format("{} ({}; {})", did, pass.what, pass.tolerance);
    for (const auto& note : notes) outcome += "\n      " + note;
    reports.push_back(
        {pass.name, std::move(outcome), true, ms, changed_ops, changes, changes > 0 && pass.trusts_shapes});
  }
  if (!verified) verifier.verify(graph);  // the last passes may have changed more than they have counted
  return reports;
}

}  // namespace anabranch
