// Traces and profiles: every node once, in an order that the edges allow, under ThreadSanitizer too; what ops cost by
// their shapes; the files.
#include "engine/profiler.h"

#include <gtest/gtest.h>

#include <chrono>
#include <deque>
#include <random>
#include <thread>

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
        if (sum != 64) AB_THROW(Internal, "a chunk is missing");
      };
    }
    plan = std::make_unique<Plan>(std::move(specs));
  }
};

TEST(Trace, EveryNodeOnceAndNeverBeforeItsPredecessors) {
  ThreadPool& pool = ThreadPool::of_size(3);
  for (uint32_t seed = 0; seed < 50; ++seed) {
    Random g(seed);
    Trace trace(4096);
    TracedLoops loops(&pool, &trace);
    for (int i = 0; i < g.plan->size(); ++i) g.plan->node(i).context.parallel = &loops;
    RunState state(*g.plan);
    RunOptions options;
    options.trace = &trace;
    for (const bool threaded : {false, true}) {
      trace.clear();
      threaded ? run_threaded(*g.plan, state, pool, options) : run_sequential(*g.plan, state, options);
      EXPECT_EQ(trace.dropped(), 0);
      std::vector<TraceEvent> of_node(g.plan->size());
      for (const TraceEvent& e : trace.events()) {
        EXPECT_LE(e.begin_ns, e.end_ns);
        if (e.kind == TraceEvent::kChunk) continue;
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

TEST(Trace, ChunksLeaveRoomForNodes) {
  Trace trace(TraceRoom{.nodes = 2, .chunks = 3, .iterations = 0, .plan_nodes = 2, .inner = 0});
  for (int i = 0; i < 10; ++i) trace.add(1, TraceEvent::kChunk, 100, 107);
  trace.add(1, TraceEvent::kNode, 90, 200);
  trace.add(-1, TraceEvent::kRun, 80, 210);
  ASSERT_EQ(trace.events().size(), 5u);
  EXPECT_EQ(trace.events()[4].kind, TraceEvent::kRun);
  EXPECT_EQ(trace.dropped(), 7);
  EXPECT_EQ(trace.missed_help()[1].load(), 49);
  trace.clear();
  EXPECT_EQ(trace.missed_help()[1].load() + trace.dropped(), 0);
}

// A process may have started more threads than 16 bits can count.
TEST(Trace, TracksOfManyThreadsStayApart) {
  for (int i = 0; i < 33000; ++i) std::thread([] { Trace::track(); }).join();
  Trace trace(2);
  int track = 0;
  std::thread([&] {
    track = Trace::track();
    trace.add(0, TraceEvent::kNode, 0, 1);
  }).join();
  EXPECT_GE(track, 33000);
  EXPECT_EQ(trace.events()[0].track, track);
}

TEST(Trace, LoopsWithoutAPoolHaveTheSameChunks) {
  Trace trace(8);
  TracedLoops loops(nullptr, &trace);
  std::vector<std::pair<int64_t, int64_t>> chunks;
  const auto note = [](void* to, int64_t begin, int64_t end) {
    static_cast<decltype(chunks)*>(to)->emplace_back(begin, end);
  };
  loops.run(7, 3, note, &chunks);
  EXPECT_EQ(chunks, (decltype(chunks){{0, 3}, {3, 6}, {6, 7}}));
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

TEST(Profiler, CriticalPathGoesByMeansAndByTheLatestPredecessor) {
  ProfiledPlan p;  // 0, 1, 2 -> 3; of those the second one ends last, though the third one ran more often
  const std::vector<std::vector<int64_t>> ns = {{7, 9}, {20, 40, 30}, {10, 10, 10, 10, 10}, {4}, {}};
  for (const auto& of_node : ns) {
    ProfiledNode node;
    for (const int64_t each : of_node) node.measured.add(each, 1, {});
    p.nodes.push_back(node);
  }
  p.successors = {3, 3, 3};
  p.first_successor = {0, 1, 2, 3, 3, 3};
  const std::vector<std::pair<int, int64_t>> expected = {{1, 30}, {3, 4}};
  EXPECT_EQ(p.critical_path(), expected);
  EXPECT_TRUE(ProfiledPlan().critical_path().empty());
}

TEST(Profiler, MeasuredNumbersAddUp) {
  Measured a, b, none;
  a.add(5, 100, {3, 4});
  a.add(2, 90, {30, 40});
  EXPECT_EQ(a.calls, 2);
  EXPECT_EQ(a.total_ns, 7);
  EXPECT_EQ(a.min_ns, 2);
  EXPECT_EQ(a.max_ns, 5);
  EXPECT_EQ(a.first_end_ns, 100) << "of the first call, whenever it ended";
  EXPECT_EQ(a.flops, 33);
  EXPECT_EQ(a.bytes, 44);
  b.add(9, 80, {100, 200});
  b.helped_ns = 6;
  a.helped_ns = 1;
  Measured sum;
  sum.add(none);
  EXPECT_EQ(sum.calls, 0);
  sum.add(a);
  EXPECT_EQ(sum.min_ns, 2);
  EXPECT_EQ(sum.first_end_ns, 100);
  sum.add(b);
  sum.add(none);
  EXPECT_EQ(sum.calls, 3);
  EXPECT_EQ(sum.total_ns, 16);
  EXPECT_EQ(sum.min_ns, 2);
  EXPECT_EQ(sum.max_ns, 9);
  EXPECT_EQ(sum.first_end_ns, 80);
  EXPECT_EQ(sum.helped_ns, 7);
  EXPECT_EQ(sum.flops, 133);
  EXPECT_EQ(sum.bytes, 244);
}

TEST(Profiler, RunsOfSeveralThreadsAreTakenApart) {
  Profiler& profiler = Profiler::instance();
  const auto since_1970 = [] {
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
  };
  const int64_t earlier = since_1970();
  profiler.start();
  ProfiledPlan plan;
  plan.nodes.resize(3);
  plan.first_successor = {0, 0, 0, 0};
  profiler.add_plan(plan);
  const int id = profiler.add_plan(plan);
  Trace trace(16);
  trace.add(-1, TraceEvent::kFeed, 900, 1000);
  trace.add(-1, TraceEvent::kShapes, 1000, 1050);
  trace.add(0, TraceEvent::kNode, 1100, 1500);  // two threads: nodes 0 and 1 overlap, 2 comes after a pause
  trace.add(1, TraceEvent::kNode, 1300, 1700);
  trace.add(0, TraceEvent::kChunk, 1310, 1330);
  trace.add(-1, TraceEvent::kChunk, 1310, 1330);  // of no known loop
  trace.add(2, TraceEvent::kNode, 1800, 1900);
  trace.add(-1, TraceEvent::kRun, 1100, 2000);
  for (int i = 0; i < 2; ++i) {
    profiler.add_run(profiler.generation(), id, trace, {{1, 2}, {10, 20}, {100, 200}});
    profiler.add_fetch(profiler.generation(), id, {});
  }
  TraceEvent fetch;
  fetch.begin_ns = 2000;
  fetch.end_ns = 2070;
  profiler.add_fetch(profiler.generation(), id, fetch);
  profiler.add_fetch(profiler.generation() - 1, id, fetch);
  profiler.stop();
  const Profile all = profiler.snapshot();
  constexpr int64_t kSecond = 1000000000;  // clocks are set now and then
  EXPECT_GE(all.begin_ns + all.wall_clock_offset_ns, earlier - kSecond);
  EXPECT_LE(all.end_ns + all.wall_clock_offset_ns, since_1970() + kSecond);
  ASSERT_EQ(all.plans.size(), 2u);
  EXPECT_EQ(all.plans[0].runs, 0);
  const ProfiledPlan& p = all.plans[1];
  EXPECT_EQ(p.runs, 2);
  EXPECT_EQ(p.run_ns, 2 * 900);
  EXPECT_EQ(p.computing_ns, 2 * (600 + 100));
  EXPECT_EQ(p.feed.total_ns, 2 * 100);
  EXPECT_EQ(p.shapes.total_ns, 2 * 50);
  EXPECT_EQ(p.fetch.total_ns, 70);
  EXPECT_EQ(p.fetch.calls, 3);
  EXPECT_EQ(p.nodes[0].measured.total_ns, 2 * 400);
  EXPECT_EQ(p.nodes[0].measured.helped_ns, 2 * 20);
  EXPECT_EQ(p.nodes[1].measured.helped_ns, 0);
  EXPECT_EQ(p.nodes[1].measured.flops, 2 * 10);
  EXPECT_EQ(p.nodes[2].work.bytes, 200);
  EXPECT_EQ(all.events.size(), 2 * trace.events().size() + 3);
  EXPECT_EQ(all.dropped_events, 0);
  profiler.reset();
}

TEST(Profiler, FilesHoldEveryEventAndEscapeNames) {
  Profiler& profiler = Profiler::instance();
  profiler.start();
  ProfiledPlan plan;
  plan.nodes.push_back({"mul", "made \"here\"\n\\", 0, {}, {}, {}, {}});
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
  EXPECT_EQ(work("conv2d", {{"Input", {2, 4, 8, 5}}, {"Filter", {6, 4, 3, 1}}}, {{"Output", {2, 6, 8, 7}}}).flops,
            2.0 * 2 * 6 * 8 * 7 * 4 * 3 * 1);
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
