// Changes of a large table on a parameter server, written as links of a chain while a worker pushes.
//
//     ps_delta ROWS FOLDER [SHARE] [LINKS]
//
// A growable table, rows of 8 floats under SGD. A link of all rows is followed by LINKS links (default 30) of the rows
// that have changed: SHARE of all rows (default 0.01), drawn for each link. While every second one is written, a worker
// pushes 500 keys a request. "name value" lines: times of the link with all rows and of those without pushes, the bytes
// of the latter compared with those of their rows, and p50 and p99 of a push without and with a link being written. In
// the end, the chain is loaded and saved: it must have the bytes of a save of the table. FOLDER is emptied first.
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/checksum.h"
#include "io/atomic_file.h"
#include "one_table.h"
#include "ps/link_copy.h"

namespace {

using namespace one_table;

constexpr size_t kPushed = 500;

// The links of a run in a folder.
class Chain {
 public:
  explicit Chain(std::string folder) : folder_(std::move(folder)) {}

  // Seconds.
  double write(const ps::Remote& table) {
    const auto begin = Steady::now();
    const bool whole = paths_.empty();
    ps::ServerCut cut({table}, whole);
    io::AtomicFile file(fmt::format("{}/link-{:06}", folder_, place_.number));
    const auto sums = cut.write("table", place_, whole ? &file : nullptr, whole ? nullptr : &file);
    file.commit();
    cut.end(whole ? sums.whole : sums.changes);
    paths_.push_back(fmt::format("{}/link-{:06}", folder_, place_.number));
    place_.previous = place_.number++;
    place_.previous_sums = sums;
    return since(begin);
  }
  // Of the last link, compared with those of its rows.
  double overhead() const {
    const sparse::LinkReader link(paths_.back());
    const auto rows = static_cast<double>(link.rows()) * static_cast<double>(link.table().row_bytes());
    return static_cast<double>(std::filesystem::file_size(paths_.back())) / rows;
  }
  const std::vector<std::string>& paths() const { return paths_; }

 private:
  const std::string folder_;
  std::vector<std::string> paths_;
  sparse::LinkPlace place_{{1, 2}, 0, -1, {}, 0};
};

// The checksum and the size of a save of a table. The file is removed.
std::pair<uint64_t, uintmax_t> saved(sparse::GrowableTable& table, const std::string& path) {
  io::FileSet files;
  table.save(path, true, &files);
  files.commit();
  Checksum sum;
  std::ifstream file(path, std::ios::binary);
  for (std::string part(1 << 20, 0); file.read(part.data(), static_cast<int64_t>(part.size())), file.gcount() > 0;) {
    sum.add({part.data(), static_cast<size_t>(file.gcount())});
  }
  const auto size = std::filesystem::file_size(path);
  std::filesystem::remove(path);
  return {sum.value(), size};
}

std::vector<int64_t> some(Keys& keys, size_t count) {
  std::vector<int64_t> out(keys.any());
  out.resize(count);
  return out;
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 5) return fmt::print(stderr, "ps_delta ROWS FOLDER [SHARE] [LINKS]\n"), 2;
  const int64_t rows = std::atoll(argv[1]);
  const std::string folder = argv[2];
  const double share = argc > 3 ? std::atof(argv[3]) : 0.01;
  const int links = argc > 4 ? std::atoi(argv[4]) : 30;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  const auto timer = std::make_shared<rpc::ThreadTimer>();
  Server server("", ps::Durability::kNone, 0, 1, 2);
  Worker worker(timer), saver(timer, 1);
  Keys keys(rows);
  for (int64_t done = 0; done < rows; done += kRequest) worker.push(keys.next());
  Chain chain(folder);
  fmt::print("whole_s {:.3f}\n", chain.write(saver.table()));
  fmt::print("whole_bytes {}\n", std::filesystem::file_size(chain.paths().back()));

  std::vector<double> quiet, meanwhile, seconds;
  double overhead = 0;
  for (int link = 0; link < links; ++link) {
    for (double left = share * static_cast<double>(rows); left >= 1; left -= static_cast<double>(kRequest)) {
      worker.push(keys.any());
    }
    for (int i = 0; i < 200; ++i) quiet.push_back(worker.push(some(keys, kPushed)));
    if (link % 2 == 0) {
      seconds.push_back(chain.write(saver.table()));
      overhead = std::max(overhead, chain.overhead());
      continue;
    }
    std::atomic<bool> over{false};
    std::thread writer([&] {
      chain.write(saver.table());
      over = true;
    });
    while (!over) meanwhile.push_back(worker.push(some(keys, kPushed)));
    writer.join();
    chain.write(saver.table());  // the rows of these pushes, which the next link that is timed does not have
  }
  fmt::print("link_s {:.4f}\nlink_bytes_per_byte_of_rows {:.4f}\n", median(seconds), overhead);
  print_times("quiet", quiet);
  print_times("meanwhile", meanwhile);
  chain.write(saver.table());
  const auto loaded = sparse::GrowableTable::open("table", sparse::TableChain(chain.paths()));
  const bool same = saved(*loaded, folder + "/loaded") == saved(server.table(), folder + "/saved");
  fmt::print("links {}\nsame {}\n", chain.paths().size(), same);
  return same ? 0 : 1;
}
