#include "sparse/shared_tables.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace anabranch::sparse {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSuffix = ".table", *kLock = "/.lock";
constexpr int64_t kMostOwn = 16;  // one row in 16 may have changed since the image

}  // namespace

SharedTables::SharedTables(std::string folder) : folder_(std::move(folder)) {
  AB_CHECK(folder_.find('\0') == std::string::npos, InvalidArgument, "the name of a folder must not have a zero byte");
  AB_CHECK(mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST, Unavailable, "cannot make the folder {}: {}", folder_,
           std::strerror(errno));
  const io::FileLock usable(folder_ + kLock, /*waits=*/false);
}

std::string SharedTables::path_of(uint64_t link) const { return fmt::format("{}/{:016x}{}", folder_, link, kSuffix); }

std::shared_ptr<GrowableTable> SharedTables::open(const TableChain& chain) {
  const LinkReader& last = chain.last();
  try {
    const io::FileLock held(folder_ + kLock, /*waits=*/true);
    auto table = find_in(chain);
    if (!table) {
      remove_unused();
      make(*GrowableTable::for_lookups(last.name(), chain), last.checksum());
      table = GrowableTable::of_image(last.name(), path_of(last.checksum()), last.checksum());
    }
    note(last.name(), "");
    return table;
  } catch (const Error& e) {
    note(last.name(), e.what());
  }
  return GrowableTable::for_lookups(last.name(), chain);
}

std::shared_ptr<GrowableTable> SharedTables::find_in(const TableChain& chain) const {
  const auto& links = chain.links();
  for (size_t i = links.size(); i-- > 0;) {
    auto table = find(chain.last().name(), links[i].checksum());
    if (!table) continue;
    while (++i < links.size()) table->apply(links[i]);
    return table;
  }
  return nullptr;
}

// A damaged one, of a disk or of a process of old code, is made again.
std::shared_ptr<GrowableTable> SharedTables::find(const std::string& name, uint64_t link) const {
  const std::string path = path_of(link);
  if (!fs::exists(path)) return nullptr;
  try {
    return GrowableTable::of_image(name, path, link);
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidArgument) throw;
    std::error_code failed;
    fs::remove(path, failed);
    return nullptr;
  }
}

std::shared_ptr<GrowableTable> SharedTables::renewed(const GrowableTable& table, uint64_t link, bool makes) {
  const int64_t own = table.own_rows();
  if (own == 0 || !table.is_image()) return nullptr;
  makes = makes && own * kMostOwn > table.held_rows();
  if (!makes && !fs::exists(path_of(link))) return nullptr;
  try {
    const io::FileLock held(folder_ + kLock, /*waits=*/false);
    if (!held.taken()) return nullptr;
    auto found = find(table.name(), link);
    if (!found && makes) {
      remove_unused();
      make(table, link);
      found = GrowableTable::of_image(table.name(), path_of(link), link);
    }
    if (found) note(table.name(), "");
    return found;
  } catch (const Error& e) {
    note(table.name(), e.what());
    return nullptr;
  }
}

void SharedTables::make(const GrowableTable& table, uint64_t link) const {
  io::AtomicFile file(path_of(link));
  table.write_image(link, &file);
  file.commit();
}

void SharedTables::remove_unused() const {
  io::remove_stale(folder_);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == kSuffix) io::remove_unless_mapped(entry.path());
  }
}

void SharedTables::note(const std::string& table, const std::string& problem) {
  const std::lock_guard held(lock_);
  if (problem.empty()) {
    problems_.erase(table);
    return;
  }
  problems_[table] = fmt::format("table {} is not shared: {}", table, problem.substr(0, problem.find('\n')));
}

void SharedTables::not_a_chain(const std::string& table) {
  note(table, "the checkpoint has all rows in one file; Checkpoints(delta=...) writes tables that can be shared");
}

std::string SharedTables::problem() const {
  const std::lock_guard held(lock_);
  return problems_.empty() ? std::string() : problems_.begin()->second;
}

}  // namespace anabranch::sparse
