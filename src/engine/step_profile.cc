#include "engine/step_profile.h"

#include <algorithm>
#include <map>

namespace anabranch {
namespace {

// A node is one event, or two if it is asynchronous or runs on a device; the engine adds some around them.
TraceRoom room_for(size_t nodes, size_t inner) {
  constexpr int kForIterations = 1 << 14;  // maximum number of events of ops of sub-blocks per run
  const int chunks = static_cast<int>(std::min<size_t>(nodes * 16 + 1024, 1 << 20));
  return {static_cast<int>(2 * nodes + 64), chunks, inner ? kForIterations : 0, nodes, inner};
}

std::vector<Value*> values_of(const std::vector<int>& vars, const Lowered& lowered) {
  std::vector<Value*> values;
  for (int v : vars) values.push_back(v < 0 ? nullptr : lowered.values[v]);
  return values;
}

}  // namespace

StepProfile::StepProfile(const Graph& graph, Lowered& lowered)
    : graph_(graph),
      lowered_(lowered),
      trace_(room_for(graph.nodes.size(), lowered.inner_nodes.size())),
      works_(graph.nodes.size() + lowered.inner_nodes.size()) {
  std::map<Parallel*, Parallel*> traced;
  for (int i = 0; i < lowered_.plan->size(); ++i) {
    Parallel* own = own_loops_.emplace_back(lowered_.plan->node(i).context.parallel);
    if (own && !traced.count(own)) {
      loops_.push_back(std::make_unique<TracedLoops>(own, &trace_));
      traced[own] = loops_.back().get();
    }
  }
}

ProfiledPlan StepProfile::describe() const {
  ProfiledPlan p;
  for (int i = 0; i < lowered_.plan->size(); ++i) {
    p.nodes.push_back({lowered_.types[i], lowered_.describe[i], lowered_.replicas[i], false, {}, {}, {}});
    p.first_successor.push_back(static_cast<int>(p.successors.size()));
    for (int next : lowered_.plan->successors(i)) p.successors.push_back(next);
  }
  p.first_successor.push_back(static_cast<int>(p.successors.size()));
  for (const InnerNode& inner : lowered_.inner_nodes) {
    p.nodes.push_back({inner.type, inner.text, inner.replica, true, {}, {}, {}});
    p.first_successor.push_back(static_cast<int>(p.successors.size()));
  }
  return p;
}

void StepProfile::begin() {
  Profiler& profiler = Profiler::instance();
  if (const uint64_t current = profiler.generation(); generation_ != current) {
    generation_ = current;
    plan_ = profiler.add_plan(describe());
  }
  trace_.clear();
  for (int i = 0; i < lowered_.plan->size(); ++i) {
    if (!own_loops_[i]) continue;
    for (const auto& loops : loops_) {
      if (loops->around() == own_loops_[i]) lowered_.plan->node(i).context.parallel = loops.get();
    }
  }
}

// After the run, so that shapes which depend on values are known, too.
void StepProfile::measure_work() {
  for (size_t i = 0; i < graph_.nodes.size(); ++i) {
    const GraphNode& node = graph_.nodes[i];
    works_[i] = work_of(*node.op, values_of(node.ins, lowered_), values_of(node.outs, lowered_));
  }
}

void StepProfile::end(int64_t begin_ns) {
  trace_.add(-1, TraceEvent::kRun, begin_ns, Trace::now_ns());
  for (int i = 0; i < lowered_.plan->size(); ++i) lowered_.plan->node(i).context.parallel = own_loops_[i];
  measure_work();
  Profiler::instance().add_run(generation_, plan_, trace_, works_);
}

StepProfile::Run::Run(std::unique_ptr<StepProfile>& slot, const Graph& graph, Lowered& lowered) {
  if (!Profiler::on()) [[likely]]
    return;
  if (!slot) slot = std::make_unique<StepProfile>(graph, lowered);
  profile_ = slot.get();
  profile_->begin();
  begin_ns_ = Trace::now_ns();
}

StepProfile::Run::~Run() {
  if (profile_) profile_->end(begin_ns_);
}

StepProfile::Fetching::Fetching(const StepProfile* profile) : profile_(Profiler::on() ? profile : nullptr) {
  if (profile_) begin_ns_ = Trace::now_ns();
}

StepProfile::Fetching::~Fetching() {
  if (!profile_) return;
  const int32_t track = Trace::track();
  Profiler::instance().add_fetch(profile_->generation_, profile_->plan_,
                                 {-1, track, TraceEvent::kFetch, begin_ns_, Trace::now_ns()});
}

}  // namespace anabranch
