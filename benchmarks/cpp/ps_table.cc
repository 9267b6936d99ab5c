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
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "one_table.h"

namespace {

using namespace one_table;

constexpr int kQuiet = 400;  // pushes without a snapshot

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
