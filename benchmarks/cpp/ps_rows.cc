// Rows a second of a parameter server in this process, without a network: pulls, and pushes with Adagrad.
//
//     ps_rows [ROUNDS [CLIENTS]]
//
// One table of 1,000,000 rows of 16 floats, uniform ids, 5,000 a request; each client is a thread. The server works in
// the threads that ask. Each round measures both one after the other: "name value" lines say the millions of rows a
// second of each round, over all clients.
#include <fmt/format.h>

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

// What a transpiler makes of a sparse table under Adagrad.
ir::ProgramRef server_program(int trainers) {
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
                   {{"endpoint", std::string("local:rows")},
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
  std::unique_ptr<ps::Listener> listener;

  explicit Server(int trainers) {
    for (const char* name : {"table", "moment"}) {
      Tensor& t = scope->var(name)->as<Tensor>();
      t.resize(Shape{kRows, kWidth}, DType::kFloat32);
      std::fill_n(t.mutable_data<float>(), t.numel(), 0.5F);
    }
    Tensor& rate = scope->var("rate")->as<Tensor>();
    rate.resize(Shape{1}, DType::kFloat32);
    *rate.mutable_data<float>() = 0.01F;
    program = std::make_unique<ServedProgram>(server_program(trainers), scope);
    server = std::make_unique<ps::Server>(program->options(), *program);
    listener = ps::local_transport().listen(
        "local:rows", [this](ps::MessageRef m, ps::Answer a) { server->handle(std::move(m), std::move(a)); });
  }
};

struct Worker {
  std::unique_ptr<ps::Client> client;
  ps::Remote table, gradient;
  std::vector<std::vector<int64_t>> ids;
  std::vector<float> values = std::vector<float>(kRequest * kWidth, 1e-3F);

  Worker(uint32_t number, const std::shared_ptr<ps::Timer>& timer) {
    ps::LinkOptions o;
    o.trainer = number;
    client = std::make_unique<ps::Client>(o, ps::connect_to, timer);
    table = client->remote("local:rows", "table");
    gradient = client->remote("local:rows", "table@GRAD");
    std::mt19937_64 random(number + 1);
    ids.resize(kRequests);
    for (auto& request : ids) {
      for (int64_t i = 0; i < kRequest; ++i) request.push_back(static_cast<int64_t>(random() % kRows));
    }
  }
  void pull() {
    for (const auto& request : ids) {
      client->rows(table, request, [](const ps::MessageRef& m) { m->throw_if_error(); });
    }
  }
  void push() {
    for (const auto& request : ids) {
      client->push(gradient, request, kRows, values.data(), DType::kFloat32, kWidth);
      client->exchange([](const std::exception_ptr& e) {
        if (e) std::rethrow_exception(e);
      });
    }
  }
};

void measure(const char* name, std::vector<std::unique_ptr<Worker>>& workers, void (Worker::*what)()) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (auto& w : workers) threads.emplace_back([&w, what] { (w.get()->*what)(); });
  for (auto& t : threads) t.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  const double rows = static_cast<double>(kRequest) * kRequests * static_cast<double>(workers.size());
  fmt::print("{} {:.3f}\n", name, rows / took.count() / 1e6);
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 5, clients = argc > 2 ? std::atoi(argv[2]) : 1;
  const Server server(clients);
  const auto timer = std::make_shared<ps::ThreadTimer>();
  std::vector<std::unique_ptr<Worker>> workers;
  for (int w = 0; w < clients; ++w) workers.push_back(std::make_unique<Worker>(static_cast<uint32_t>(w), timer));
  for (int r = 0; r < rounds; ++r) {
    measure("pull", workers, &Worker::pull);
    measure("push_adagrad", workers, &Worker::push);
  }
  return 0;
}
