// Random programs of several queues: with the waits they need, every order gives the same result; without one of them,
// every order finds the race.
#include <random>

#include "harness.h"

namespace anabranch::device {
namespace {

// A random program: node i, in one of the queues, writes buffer `to` from buffer `from`. `waits`: pairs (before, after)
// of nodes in different queues between which there is an event.
struct Node {
  size_t queue, from, to;
};
struct Program {
  std::vector<Node> nodes;
  std::vector<std::pair<size_t, size_t>> waits;
};
constexpr size_t kQueues = 3, kBuffers = 4;

bool conflict(const Node& a, const Node& b) { return a.to == b.to || a.to == b.from || a.from == b.to; }

Program random_program(uint64_t seed, size_t count) {
  std::mt19937_64 random(seed);
  Program program;
  for (size_t i = 0; i < count; ++i) {
    program.nodes.push_back({random() % kQueues, random() % kBuffers, random() % kBuffers});
    for (size_t before = 0; before < i; ++before) {
      const Node &a = program.nodes[before], &b = program.nodes[i];
      if (a.queue != b.queue && conflict(a, b)) program.waits.emplace_back(before, i);
    }
  }
  return program;
}

// By brute force: whether each two nodes that conflict are connected by queues and waits.
bool ordered(const Program& program) {
  const size_t n = program.nodes.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  for (size_t j = 0; j < n; ++j) {
    const auto add = [&](size_t i) {
      before[i][j] = true;
      for (size_t k = 0; k < i; ++k) before[k][j] = before[k][j] || before[k][i];
    };
    for (size_t i = 0; i < j; ++i) {
      if (program.nodes[i].queue == program.nodes[j].queue) add(i);
    }
    for (const auto& [i, after] : program.waits) {
      if (after == j) add(i);
    }
  }
  for (size_t j = 0; j < n; ++j) {
    for (size_t i = 0; i < j; ++i) {
      if (conflict(program.nodes[i], program.nodes[j]) && !before[i][j]) return false;
    }
  }
  return true;
}

// AB_OK and what the buffers hold, or AB_FAULT.
int run(const Program& program, const Flags& flags, std::vector<float>* held) {
  Sim sim(flags);
  std::vector<ab_queue*> queues;
  std::vector<float*> buffers;
  std::vector<ab_event*> events;
  for (size_t i = 0; i < kQueues; ++i) queues.push_back(sim.queue("q"));
  for (size_t i = 0; i < kBuffers; ++i) {
    buffers.push_back(sim.floats(2));
    EXPECT_EQ(scale(queues[0], nullptr, buffers[i], 2, 1, static_cast<double>(i)), AB_OK);
  }
  EXPECT_EQ(sim.finish(queues[0]), AB_OK);
  for (size_t i = 0; i < program.nodes.size(); ++i) {
    const Node& node = program.nodes[i];
    for (const auto& [before, after] : program.waits) {
      if (after == i) {
        EXPECT_EQ(api.queue_wait(queues[node.queue], events[before]), AB_OK);
      }
    }
    const double add = static_cast<double>(i) + 1;
    EXPECT_EQ(scale(queues[node.queue], buffers[node.from], buffers[node.to], 2, 0.5, add), AB_OK);
    events.push_back(sim.recorded(queues[node.queue]));
  }
  for (ab_queue* q : queues) {
    if (const int status = sim.finish(q)) return status;
  }
  for (float* buffer : buffers) {
    const std::vector<float> values = sim.read(buffer, 2);
    held->insert(held->end(), values.begin(), values.end());
  }
  return AB_OK;
}

TEST(SimdevicePrograms, EveryOrderOfAGoodProgramGivesTheSame) {
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Program program = random_program(seed, 14);
    ASSERT_TRUE(ordered(program));
    std::vector<float> serial;
    ASSERT_EQ(run(program, seeded(0, "earliest"), &serial), AB_OK) << last_error();
    for (const Flags& flags : all_orders()) {
      std::vector<float> held;
      ASSERT_EQ(run(program, flags, &held), AB_OK) << last_error();
      EXPECT_EQ(held, serial);
    }
  }
}

TEST(SimdevicePrograms, AWaitTakenAwayIsFoundWhereItWasNeeded) {
  int needed = 0, spare = 0;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const Program whole = random_program(seed, 10);
    for (size_t gone = 0; gone < whole.waits.size(); ++gone) {
      Program program = whole;
      program.waits.erase(program.waits.begin() + static_cast<std::ptrdiff_t>(gone));
      const bool good = ordered(program);
      ++(good ? spare : needed);
      for (const Flags& flags : all_orders(3)) {
        std::vector<float> held;
        ASSERT_EQ(run(program, flags, &held), good ? AB_OK : AB_FAULT) << "seed " << seed << " without wait " << gone;
      }
    }
  }
  EXPECT_GT(needed, 20);
  EXPECT_GT(spare, 20);
}

}  // namespace
}  // namespace anabranch::device
