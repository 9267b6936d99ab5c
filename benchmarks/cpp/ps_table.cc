// A large table on a parameter server: filled by pushes, written to disk while a worker pushes, and read again.
//
//     ps_table ROWS FOLDER [LEVEL]
//
// A growable table, rows of 8 floats under SGD, one worker in this process that pushes 5,000 keys a request; the
// server keeps its state in FOLDER, which is emptied first. LEVEL is that of FLAGS_ps_durability: 1, with a journal, by
// default; with 0 pushes write nothing, and what holds them up is not the disk. "name value" lines: how long each part
// took, the longest and the 99th of 100 times that a push took without and with a snapshot under way, and that of the
// push at which it began; of each part the most memory of the process. What is restored is compared with what there
// was.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <future>
#include <random>
#include <string>
#include <vector>

#include "engine/served_program.h"
#include "opdef/append_op.h"
#include "ps/client.h"

namespace {

using namespace anabranch;
using Steady = std::chrono::steady_clock;

constexpr int64_t kWidth = 8, kRequest = 5000;
constexpr int kQuiet = 400;  // pushes without a snapshot
constexpr const char* kEndpoint = "local:table";

double since(Steady::time_point begin) { return std::chrono::duration<double>(Steady::now() - begin).count(); }

// The program that a transpiler makes of a growable table under SGD.
ir::ProgramRef server_program() {
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
                    {"Fanin", 1},
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

  Server(const std::string& folder, ps::Durability durability, int64_t snapshot_every, uint64_t incarnation) {
    sparse::TableOptions options;
    options.width = kWidth;
    options.low = -0.1F;
    options.high = 0.1F;
    sparse::GrowableTable::put(scope->var("table"), std::make_shared<sparse::GrowableTable>("table", options));
    Tensor& rate = scope->var("rate")->as<Tensor>();
    rate.resize(Shape{1}, DType::kFloat32);
    *rate.mutable_data<float>() = 0.01F;
    program = std::make_unique<ServedProgram>(server_program(), scope);
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
  explicit Worker(const std::shared_ptr<rpc::Timer>& timer) : client_({.trainer = 0}, rpc::connect_to, timer) {
    gradient_ = client_.remote(kEndpoint, "table@GRAD");
  }
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

void print_times(const char* name, std::vector<double> took) {
  std::sort(took.begin(), took.end());
  fmt::print("{0}_pushes {1}\n{0}_p50_ms {2:.3f}\n{0}_p99_ms {3:.3f}\n{0}_longest_ms {4:.3f}\n", name, took.size(),
             took[took.size() / 2], took[took.size() * 99 / 100], took.back());
}

// The most memory since this was last asked, where the system forgets it (Linux), else since the process began.
void print_memory(const char* name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) fmt::print("{}_most_gb {:.2f}\n", name, std::stod(line.substr(6)) / 1e6);
  }
  std::ofstream("/proc/self/clear_refs") << 5;
  std::fflush(stdout);
}

// Numbers of rows here and there.
std::vector<float> sample(sparse::GrowableTable& table, int64_t rows) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < 100000; ++i) keys.push_back(i * 7919 % rows);
  std::vector<float> out(keys.size() * kWidth);
  sparse::KeyOrder scratch;
  table.pull(keys.data(), static_cast<int64_t>(keys.size()), {}, out.data(), &scratch, nullptr);
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return fmt::print(stderr, "ps_table ROWS FOLDER [LEVEL]\n"), 2;
  const int64_t rows = std::atoll(argv[1]), fill = (rows + kRequest - 1) / kRequest;
  const std::string folder = argv[2];
  const bool journal = argc < 4 || std::atoi(argv[3]) > 0;
  const auto durability = journal ? ps::Durability::kJournal : ps::Durability::kSnapshot;
  std::filesystem::remove_all(folder);
  const auto timer = std::make_shared<rpc::ThreadTimer>();
  auto server = std::make_unique<Server>(folder, durability, fill + kQuiet, 1);
  auto worker = std::make_unique<Worker>(timer);
  Keys keys(rows);

  auto begin = Steady::now();
  for (int64_t i = 0; i < fill; ++i) worker->push(keys.next());
  fmt::print("fill_m_rows_s {:.3f}\n", static_cast<double>(fill * kRequest) / since(begin) / 1e6);
  print_memory("fill");

  ::sync();  // what the system has still to write of that belongs to no part
  std::vector<double> took;
  for (int i = 1; i < kQuiet; ++i) took.push_back(worker->push(keys.any()));
  print_times("quiet", took);

  begin = Steady::now();
  fmt::print("begin_ms {:.3f}\n", worker->push(keys.any()));  // it finds a snapshot due
  std::vector<float> before = sample(server->table(), rows);
  took = {worker->push(keys.any())};
  while (server->server->stats().snapshots < 2) took.push_back(worker->push(keys.any()));
  const double seconds = since(begin);
  fmt::print("snapshot_s {:.2f}\nsnapshot_gb {:.2f}\n", seconds,
             static_cast<double>(rows * static_cast<int64_t>(server->table().header().row_bytes())) / 1e9);
  print_times("meanwhile", took);
  print_memory("snapshot");

  if (journal) before = sample(server->table(), rows);
  const int64_t had = server->table().stats().rows;
  worker = nullptr;
  server = nullptr;
  print_memory("end");
  begin = Steady::now();
  server = std::make_unique<Server>(folder, durability, fill + kQuiet, 2);
  fmt::print("restore_s {:.2f}\n", since(begin));
  print_memory("restore");
  const bool same = server->table().stats().rows == had && sample(server->table(), rows) == before;
  fmt::print("updates_of_the_journal {}\nsame {}\n", server->server->stats().resumed, same);
  return same ? 0 : 1;
}
