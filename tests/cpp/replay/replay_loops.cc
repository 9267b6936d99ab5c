// Runs programs that tests/trials/loop_pack.py has packed: each on one thread, then on two or on seven, and compares
// the bits of everything that is fetched. For sanitizers, which look into the run from below Python.
//
//   replay_loops FILE [FIRST [COUNT]]      status 1 when a program differs; what sanitizers say ends it, too
#include <atomic>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/flags.h"
#include "engine/compiled_program.h"
#include "io/files.h"
#include "io/tensor_stream.h"
#include "ir/serialize.h"
#include "packed.h"

using namespace anabranch;
using replay::Reader;

namespace {

constexpr int kSteps = 2;

struct Packed {
  uint32_t number;
  std::string_view program;
  std::string loss;
  FeedMap parameters;
  std::vector<FeedMap> feeds;  // one a replica
  std::vector<std::string> fetch;
};

FeedMap read_tensors(Reader* in) {
  FeedMap found;
  for (uint32_t left = in->number(); left > 0; --left) {
    const std::string name(in->text());
    std::string_view stream = in->text();
    found.emplace_back(name, io::read_tensor(&stream, name));
  }
  return found;
}

Packed read_program(Reader* in) {
  Packed p;
  p.number = in->number();
  p.program = in->text();
  p.loss = in->text();
  p.parameters = read_tensors(in);
  for (uint32_t left = in->number(); left > 0; --left) p.feeds.push_back(read_tensors(in));
  for (uint32_t left = in->number(); left > 0; --left) p.fetch.emplace_back(in->text());
  return p;
}

// The threads that have run nodes. Relaxed: the probe must order nothing that the executor does not order.
std::atomic<uint32_t> next_thread{0}, threads_seen{0};

void note_thread(const std::string&, int, int) {
  thread_local const uint32_t number = next_thread.fetch_add(1, std::memory_order_relaxed);
  threads_seen.fetch_or(1u << (number % 32), std::memory_order_relaxed);
}

std::string bytes_of(const std::vector<Fetched>& values) {
  std::string bytes;
  for (const Fetched& slices : values) {
    for (const FetchedValue& slice : slices) io::write_tensor(std::get<Tensor>(slice), &bytes);
  }
  return bytes;
}

std::string run(const Packed& packed, int threads) {
  const auto scope = Scope::make();
  for (const auto& [name, value] : packed.parameters) scope->var(name)->as<Tensor>().copy_from(value);
  CompileOptions options;
  options.replicas = static_cast<int>(packed.feeds.size());
  options.data_parallel = true;
  options.loss_name = packed.loss;
  options.build.gradient_scale_strategy = GradientScale::kCustomized;
  options.execution.num_threads = threads;
  CompiledProgram program(ir::parse_program(std::string(packed.program)), scope, options);
  program.set_probe(note_thread);
  std::string bytes;
  for (int step = 0; step < kSteps; ++step) {
    bytes += bytes_of(program.run({.feeds = packed.feeds, .fetch = packed.fetch}));
  }
  return bytes;
}

int replay_all(std::string_view file, uint32_t first, uint32_t count) {
  Reader in(file);
  int programs = 0, threaded = 0, wrong = 0;
  for (uint32_t at = 0; !in.done() && at < first + count; ++at) {
    const Packed packed = read_program(&in);
    if (at < first) continue;
    ++programs;
    const std::string one = run(packed, 1);
    const int threads = programs % 2 ? 2 : 7;
    threads_seen = 0;
    const std::string many = run(packed, threads);
    const uint32_t seen = threads_seen;
    threaded += (seen & (seen - 1)) != 0;
    if (many == one) continue;
    ++wrong;
    std::printf("program %u differs on %d threads\n", packed.number, threads);
  }
  std::printf("%d programs, %d threaded runs in which several threads ran nodes, %d differ\n", programs, threaded,
              wrong);
  return wrong != 0 || programs == 0 || threaded == 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: replay_loops FILE [FIRST [COUNT]]\n");
    return 2;
  }
  try {
    set_flag("FLAGS_measure_threads", false);
    const std::string file = io::read_file(argv[1]);
    const auto number = [&](int at, uint32_t otherwise) {
      return argc > at ? static_cast<uint32_t>(std::stoul(argv[at])) : otherwise;
    };
    return replay_all(file, number(2, 0), number(3, 1u << 30));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
