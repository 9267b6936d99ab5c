// Traces and profiles: every node once, in an order that the edges allow, under ThreadSanitizer too; what ops cost by
// their shapes; the files.
#include "engine/profiler.h"

#include <gtest/gtest.h>

#include <deque>
#include <random>

#include "base/ceiling.h"
#include "engine/profile_files.h"
#include "exec/run.h"

namespace anabranch {
namespace {

// Nodes that read and write a few buffers at random and split a loop over the pool.
struct Random {
  std::deque<Value> values;
  std::unique_ptr<Plan> plan;

  explicit Random(uint32_t seed) {
    std::mt19937 rng(seed);
    for (int i = 0; i < 6; ++i) values.emplace_back();
    std::vector<NodeSpec> specs(60);
    for (NodeSpec& spec : specs) {
      spec.reads = {static_cast<int>(rng() % 6)};
      spec.writes = {static_cast<int>(rng() % 6)};
      spec.kernel = [](KernelContext& c) {
        std::atomic<int64_t> sum{0};
        c.parallel_for(64, 8, [&](int64_t begin, int64_t end) { sum += end - begin; });
        if (sum != 64) AB_THROW(Internal, "a piece is missing");
      };
    }
    plan = std::make_unique<Plan>(std::move(specs));
  }
};

TEST(Trace, EveryNodeOnceAndNeverBeforeItsPredecessors) {
  Team& team = Team::of_size(3);
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Random g(seed);
    Trace trace(4096);
    TracedLoops loops(&team, &trace);
    for (int i = 0; i < g.plan->size(); ++i) g.plan->node(i).context.parallel = &loops;
    RunState state(*g.plan);
    RunOptions options;
    options.trace = &trace;
    for (const bool threaded : {false, true}) {
      trace.clear();
      threaded ? run_threaded(*g.plan, state, team, options) : run_sequential(*g.plan, state, options);
      EXPECT_EQ(trace.dropped(), 0);
      std::vector<TraceEvent> of_node(g.plan->size());
      for (const TraceEvent& e : trace.events()) {
        EXPECT_LE(e.begin_ns, e.end_ns);
        if (e.kind == TraceEvent::kPiece) continue;
        EXPECT_EQ(of_node[e.node].node, -1) << "node " << e.node << " twice";
        of_node[e.node] = e;
      }
      for (int i = 0; i < g.plan->size(); ++i) {
        ASSERT_EQ(of_node[i].node, i) << "never ran";
        for (int next : g.plan->successors(i)) EXPECT_LE(of_node[i].end_ns, of_node[next].begin_ns);
      }
    }
  }
}

TEST(Trace, WhatDoesNotFitIsCounted) {
  Trace trace(2);
  for (int i = 0; i < 5; ++i) trace.add(i, TraceEvent::kNode, 0, 1);
  EXPECT_EQ(trace.events().size(), 2u);
  EXPECT_EQ(trace.dropped(), 3);
  trace.clear();
  EXPECT_EQ(trace.dropped(), 0);
}

TEST(Profiler, CriticalPathIsTheLongestChain) {
  ProfiledPlan p;  // 0 -> 1 -> 3, 0 -> 2 -> 3, 4 alone
  const int64_t ns[] = {10, 5, 20, 1, 30};
  for (const int64_t each : ns) {
    ProfiledNode node;
    node.measured.add(each, 1, {});
    p.nodes.push_back(node);
  }
  p.successors = {1, 2, 3, 3};
  p.first_successor = {0, 2, 3, 4, 4, 4};
  const std::vector<std::pair<int, int64_t>> expected = {{0, 10}, {2, 20}, {3, 1}};
  EXPECT_EQ(p.critical_path(), expected);
}

TEST(Profiler, FilesHoldEveryEventAndEscapeNames) {
  Profiler& profiler = Profiler::instance();
  profiler.start();
  ProfiledPlan plan;
  plan.nodes.push_back({"mul", "made \"here\"\n\\", 0, {}, {}});
  plan.first_successor = {0, 0};
  const int id = profiler.add_plan(plan);
  Trace trace(8);
  trace.add(0, TraceEvent::kNode, 2000, 5000);
  trace.add(-1, TraceEvent::kRun, 1000, 6000);
  profiler.add_run(profiler.generation(), id, trace, {{6000, 12000}});
  profiler.add_run(profiler.generation() - 1, id, trace, {{6000, 12000}});  // of a profile that was reset: ignored
  profiler.stop();
  const Profile p = profiler.snapshot();
  ASSERT_EQ(p.events.size(), 2u);
  EXPECT_EQ(p.plans[0].runs, 1);
  EXPECT_EQ(p.plans[0].computing_ns, 3000);
  const std::string json = chrome_trace(p);
  EXPECT_NE(json.find(R"("op":"made \"here\"\u000a\\")"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("dur":3.000)"), std::string::npos) << json;
  EXPECT_NE(json.find(R"("GFLOP/s":2)"), std::string::npos) << json;
  EXPECT_NE(fluid_profile(p).find("mul"), std::string::npos);
  profiler.reset();
  EXPECT_TRUE(profiler.snapshot().plans.empty());
}

// The op `type` with these shapes as its arguments.
OpWork work(const std::string& type, const std::vector<std::pair<std::string, Shape>>& in,
            const std::vector<std::pair<std::string, Shape>>& out) {
  ir::Op op;
  op.type = type;
  std::deque<Value> values;
  std::vector<Value*> ins, outs;
  for (const auto& [slot, shape] : in) {
    op.inputs.push_back({slot, {slot}});
    values.emplace_back().as<Tensor>().resize(shape, DType::kFloat32);
    ins.push_back(&values.back());
  }
  for (const auto& [slot, shape] : out) {
    op.outputs.push_back({slot, {slot}});
    values.emplace_back().as<Tensor>().resize(shape, DType::kFloat32);
    outs.push_back(&values.back());
  }
  return work_of(op, ins, outs);
}

TEST(OpWork, ProductsAndConvolutions) {
  EXPECT_EQ(work("mul", {{"X", {3, 5}}, {"Y", {5, 7}}}, {{"Out", {3, 7}}}).flops, 2.0 * 3 * 5 * 7);
  EXPECT_EQ(work("matmul", {{"X", {4, 3, 5}}, {"Y", {4, 5, 7}}}, {{"Out", {4, 3, 7}}}).flops, 2.0 * 4 * 3 * 5 * 7);
  EXPECT_EQ(work("matmul", {{"X", {4, 3, 5}}, {"Y", {5, 7}}}, {{"Out", {4, 3, 7}}}).flops, 2.0 * 4 * 3 * 5 * 7);
  EXPECT_EQ(work("mul_grad", {{"X", {3, 5}}, {"Y", {5, 7}}, {"Out@GRAD", {3, 7}}}, {{"Y@GRAD", {5, 7}}}).flops,
            2.0 * 3 * 5 * 7);
  EXPECT_EQ(work("conv2d", {{"Input", {2, 4, 8, 8}}, {"Filter", {6, 4, 3, 3}}}, {{"Output", {2, 6, 8, 8}}}).flops,
            2.0 * 2 * 6 * 8 * 8 * 4 * 3 * 3);
  EXPECT_EQ(work("relu", {{"X", {3, 5}}}, {{"Out", {3, 5}}}).flops, 0);
  EXPECT_EQ(work("relu", {{"X", {3, 5}}}, {{"Out", {3, 5}}}).bytes, 2.0 * 15 * 4);
  // Of a table only the rows that the ids ask for.
  EXPECT_EQ(work("lookup_table", {{"Ids", {8, 1}}, {"W", {1000, 16}}}, {{"Out", {8, 16}}}).bytes,
            4.0 * (8 + 8 * 16 + 8 * 16));
  EXPECT_EQ(work("fused_embedding_concat", {{"W", {1000, 16}}, {"Ids", {8, 1}}}, {{"Out", {4, 32}}}).bytes,
            4.0 * (8 * 16 + 8 + 4 * 32));
  EXPECT_EQ(work("fused_embedding_update", {{"Param", {500, 16}}, {"Ids", {8, 1}}}, {{"ParamOut", {500, 16}}}).bytes,
            4.0 * (8 * 16 + 8 + 8 * 16));
}

TEST(Ceiling, IsPlausible) {
  const Ceiling& c = core_ceiling();
  EXPECT_GT(c.flops_per_s, 1e8);
  EXPECT_LT(c.flops_per_s, 1e13);
  EXPECT_GT(c.bytes_per_s, 1e7);
  EXPECT_EQ(&c, &core_ceiling());
}

}  // namespace
}  // namespace anabranch
