// Rows a second of a parameter server and its trainers in this process: pulls, and pushes with Adagrad.
//
//     ps_rows [ROUNDS [CLIENTS [ENDPOINT]]]
//
// One table of 1,000,000 rows of 16 floats, uniform ids, 5,000 a request, one request of a client at a time; each
// client is a thread. ENDPOINT is local:rows by default: the server works in the threads that ask. unix:/tmp/NAME and
// 127.0.0.1:0 go over gRPC. Each round measures all one after the other. "name value" lines: millions of rows a second
// of the clock, millions of rows a second of processor time of all threads, and of pulls at half the rate of that round
// the 99th of 100 times that a request took, in milliseconds.
#include <fmt/format.h>

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <future>
#include <random>
#include <thread>

#include "engine/served_program.h"
#include "opdef/append_op.h"
#include "ps/client.h"

namespace {

using namespace anabranch;

constexpr int64_t kRows = 1000000, kWidth = 16, kRequest = 5000;
constexpr int kRequests = 100;

// The program that a transpiler makes of a sparse table under Adagrad.
ir::ProgramRef server_program(int trainers, const std::string& endpoint) {
  auto program = ir::Program::make();
  ir::Block& main = program->global_block();
  for (const char* name : {"table", "moment"}) {
    main.create_var({.name = name, .shape = {kRows, kWidth}, .persistable = true});
  }
  main.create_var({.name = "rate", .shape = {1}, .persistable = true});
  ir::Var grad{.name = "table@GRAD", .shape = {kRows, kWidth}};
  grad.kind = VarKind::kSelectedRows;
  main.create_var(grad);
  ir::Block& update = program->create_block(0);
  append_op(update,
            {"adagrad",
             {{"Param", {"table"}}, {"Grad", {"table@GRAD"}}, {"Moment", {"moment"}}, {"LearningRate", {"rate"}}},
             {{"ParamOut", {"table"}}, {"MomentOut", {"moment"}}},
             {{"op_role", ir::role::kOptimize}}});
  append_op(main, {"listen_and_serv",
                   {},
                   {},
                   {{"endpoint", endpoint},
                    {"Fanin", trainers},
                    {"distributed_mode", 1},
                    {"grad_to_block_id", std::vector<std::string>{"table@GRAD:1"}},
                    {"optimize_blocks", std::vector<BlockRef>{BlockRef{1}}}}});
  return program;
}

struct Server {
  std::shared_ptr<Scope> scope = Scope::make();
  std::unique_ptr<ServedProgram> program;
  std::unique_ptr<ps::Server> server;
  std::unique_ptr<rpc::Listener> listener;

  Server(int trainers, const std::string& endpoint) {
    for (const char* name : {"table", "moment"}) {
      Tensor& t = scope->var(name)->as<Tensor>();
      t.resize(Shape{kRows, kWidth}, DType::kFloat32);
      std::fill_n(t.mutable_data<float>(), t.numel(), 0.5F);
    }
    Tensor& rate = scope->var("rate")->as<Tensor>();
    rate.resize(Shape{1}, DType::kFloat32);
    *rate.mutable_data<float>() = 0.01F;
    program = std::make_unique<ServedProgram>(server_program(trainers, endpoint), scope);
    server = std::make_unique<ps::Server>(program->options(), *program);
    const bool local = endpoint.starts_with("local:");
    listener =
        (local ? rpc::local_transport() : rpc::network_transport())
            .listen(endpoint, [this](rpc::MessageRef m, rpc::Answer a) { server->handle(std::move(m), std::move(a)); });
  }
};

struct Worker {
  std::unique_ptr<ps::Client> client;
  ps::Remote table, gradient;
  std::vector<std::vector<int64_t>> ids;
  std::vector<float> values = std::vector<float>(kRequest * kWidth, 1e-3F);

  Worker(uint32_t number, const std::shared_ptr<rpc::Timer>& timer, const std::string& endpoint) {
    rpc::LinkOptions o;
    o.trainer = number;
    client = std::make_unique<ps::Client>(o, rpc::connect_to, timer);
    table = client->remote(endpoint, "table");
    gradient = client->remote(endpoint, "table@GRAD");
    std::mt19937_64 random(number + 1);
    ids.resize(kRequests);
    for (auto& request : ids) {
      for (int64_t i = 0; i < kRequest; ++i) request.push_back(static_cast<int64_t>(random() % kRows));
    }
  }
  void pull_one(const std::vector<int64_t>& request) {
    std::promise<rpc::MessageRef> over;
    client->rows(table, request, [&](rpc::MessageRef m) { over.set_value(std::move(m)); });
    over.get_future().get()->throw_if_error();
  }
  void pull() {
    for (const auto& request : ids) pull_one(request);
  }
  void push() {
    for (const auto& request : ids) {
      std::promise<std::exception_ptr> over;
      client->push(gradient, {request, kRows, values.data(), DType::kFloat32, kWidth});
      client->exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
      if (const auto error = over.get_future().get()) std::rethrow_exception(error);
    }
  }
  // One request every `pace`; the times from when each was due, so that one that is late counts for those after it it.
  void pull_paced(std::chrono::nanoseconds pace) {
    auto due = std::chrono::steady_clock::now();
    for (const auto& request : ids) {
      std::this_thread::sleep_until(due);
      pull_one(request);
      took.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - due).count());
      due += pace;
    }
  }
  std::vector<double> took;
};

double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto of = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return of(used.ru_utime) + of(used.ru_stime);
}

using Workers = std::vector<std::unique_ptr<Worker>>;

template <class Fn> double seconds(Workers& workers, Fn&& what) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (auto& w : workers) threads.emplace_back([&w, &what] { what(*w); });
  for (auto& t : threads) t.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Seconds of one request, by the clock.
double measure(const char* name, Workers& workers, void (Worker::*what)()) {
  const double before = processor_seconds();
  const double took = seconds(workers, [what](Worker& w) { (w.*what)(); });
  const double rows = static_cast<double>(kRequest) * kRequests * static_cast<double>(workers.size());
  fmt::print("{} {:.3f}\n{}_of_processor {:.3f}\n", name, rows / took / 1e6, name,
             rows / (processor_seconds() - before) / 1e6);
  return took / kRequests;
}

void measure_latency(Workers& workers, double pace_s) {
  const std::chrono::nanoseconds pace(static_cast<int64_t>(pace_s * 1e9));
  seconds(workers, [pace](Worker& w) { w.pull_paced(pace); });
  std::vector<double> all;
  for (auto& w : workers) {
    all.insert(all.end(), w->took.begin(), w->took.end());
    w->took.clear();
  }
  std::sort(all.begin(), all.end());
  fmt::print("pull_p50_ms {:.3f}\npull_p99_ms {:.3f}\n", all[all.size() / 2], all[all.size() * 99 / 100]);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5, clients = argc > 2 ? std::atoi(argv[2]) : 1;
  const Server server(clients, argc > 3 ? argv[3] : "local:rows");
  const auto timer = std::make_shared<rpc::ThreadTimer>();
  Workers workers;
  for (int w = 0; w < clients; ++w) {
    workers.push_back(std::make_unique<Worker>(static_cast<uint32_t>(w), timer, server.listener->endpoint()));
  }
  for (int r = 0; r < rounds; ++r) {
    const double one = measure("pull", workers, &Worker::pull);
    measure("push_adagrad", workers, &Worker::push);
    measure_latency(workers, 2 * one);
  }
  return 0;
}
