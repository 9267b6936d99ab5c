// A growable table of rows of 8 floats under SGD on a server in this process, and workers that push to it.
#pragma once
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "engine/served_program.h"
#include "opdef/append_op.h"
#include "ps/client.h"

namespace one_table {

using namespace anabranch;
using Steady = std::chrono::steady_clock;

constexpr int64_t kWidth = 8, kRequest = 5000;
constexpr const char* kEndpoint = "local:table";

inline double since(Steady::time_point begin) { return std::chrono::duration<double>(Steady::now() - begin).count(); }

// The program that a transpiler makes of a growable table under SGD.
inline ir::ProgramRef server_program(int workers) {
  auto program = ir::Program::make();
  ir::Block& main = program->global_block();
  ir::Var table{.name = "table", .shape = {-1, kWidth}, .persistable = true};
  table.kind = VarKind::kSelectedRows;
  main.create_var(table);
  main.create_var({.name = "rate", .shape = {1}, .persistable = true});
  ir::Var grad{.name = "table@GRAD", .shape = {-1, kWidth}};
  grad.kind = VarKind::kSelectedRows;
  main.create_var(grad);
  append_op(program->create_block(0), {"growable_update",
                                       {{"Param", {"table"}}, {"Grad", {"table@GRAD"}}, {"LearningRate", {"rate"}}},
                                       {{"ParamOut", {"table"}}},
                                       {{"rule", "sgd"}, {"makes_rows", true}, {"op_role", ir::role::kOptimize}}});
  append_op(main, {"listen_and_serv",
                   {},
                   {},
                   {{"endpoint", kEndpoint},
                    {"Fanin", workers},
                    {"distributed_mode", 1},
                    {"grad_to_block_id", std::vector<std::string>{"table@GRAD:1"}},
                    {"sparse_grad_to_param", std::vector<std::string>{"table@GRAD:table"}},
                    {"optimize_blocks", std::vector<BlockRef>{BlockRef{1}}}}});
  return program;
}

struct Server {
  rpc::ThreadTimer writer;
  std::shared_ptr<Scope> scope = Scope::make();
  std::unique_ptr<ServedProgram> program;
  std::unique_ptr<ps::Server> server;
  std::unique_ptr<rpc::Listener> listener;

  Server(const std::string& folder, ps::Durability durability, int64_t snapshot_every, uint64_t incarnation,
         int workers = 1) {
    sparse::TableOptions options;
    options.width = kWidth;
    options.low = -0.1F;
    options.high = 0.1F;
    sparse::GrowableTable::put(scope->var("table"), std::make_shared<sparse::GrowableTable>("table", options));
    Tensor& rate = scope->var("rate")->as<Tensor>();
    rate.resize(Shape{1}, DType::kFloat32);
    *rate.mutable_data<float>() = 0.01F;
    program = std::make_unique<ServedProgram>(server_program(workers), scope);
    ps::ServerOptions o = program->options();
    o.incarnation = incarnation;
    o.timer = &writer;
    o.history.durability = durability;
    o.history.folder = folder;
    o.history.snapshot_every = snapshot_every;
    server = std::make_unique<ps::Server>(o, *program);
    listener = rpc::local_transport().listen(
        kEndpoint, [this](rpc::MessageRef m, rpc::Answer a) { server->handle(std::move(m), std::move(a)); });
  }
  sparse::GrowableTable& table() const { return *sparse::GrowableTable::of(*scope->find_var("table")); }
};

class Worker {
 public:
  explicit Worker(const std::shared_ptr<rpc::Timer>& timer, uint32_t trainer = 0)
      : client_({.trainer = trainer}, rpc::connect_to, timer) {
    gradient_ = client_.remote(kEndpoint, "table@GRAD");
  }
  ps::Remote table() { return client_.remote(kEndpoint, "table"); }
  // Milliseconds.
  double push(const std::vector<int64_t>& keys) {
    const auto begin = Steady::now();
    std::promise<std::exception_ptr> over;
    client_.push(gradient_, {keys, rpc::Part::kAnyHeight, values_.data(), DType::kFloat32, kWidth});
    client_.exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
    if (const auto error = over.get_future().get()) std::rethrow_exception(error);
    return 1e3 * since(begin);
  }

 private:
  ps::Client client_;
  ps::Remote gradient_;
  std::vector<float> values_ = std::vector<float>(kRequest * kWidth, 1e-3F);
};

class Keys {
 public:
  explicit Keys(int64_t rows) : rows_(rows) {}
  // The next ones in order, to fill the table; uniform ones, which it has.
  const std::vector<int64_t>& next() {
    for (int64_t& k : keys_) k = next_++ % rows_;
    return keys_;
  }
  const std::vector<int64_t>& any() {
    for (int64_t& k : keys_) k = static_cast<int64_t>(random_() % static_cast<uint64_t>(rows_));
    return keys_;
  }

 private:
  const int64_t rows_;
  int64_t next_ = 0;
  std::mt19937_64 random_{7};
  std::vector<int64_t> keys_ = std::vector<int64_t>(kRequest);
};

inline void print_times(const char* name, std::vector<double> took) {
  std::sort(took.begin(), took.end());
  fmt::print("{0}_pushes {1}\n{0}_p50_ms {2:.3f}\n{0}_p99_ms {3:.3f}\n{0}_longest_ms {4:.3f}\n", name, took.size(),
             took[took.size() / 2], took[took.size() * 99 / 100], took.back());
}

}  // namespace one_table
