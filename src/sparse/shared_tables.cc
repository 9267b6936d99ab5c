#include "sparse/shared_tables.h"

#include <malloc.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "io/atomic_file.h"
#include "io/mapped_file.h"

namespace anabranch::sparse {
namespace {

namespace fs = std::filesystem;

constexpr const char *kSuffix = ".table", *kLock = "/.lock";
constexpr int64_t kMostOwn = 32;  // one row in 32 may have changed since the image

}  // namespace

SharedTables::SharedTables(std::string folder) : folder_(std::move(folder)) {
  AB_CHECK(folder_.find('\0') == std::string::npos, InvalidArgument, "the name of a folder must not have a zero byte");
  AB_CHECK(mkdir(folder_.c_str(), 0700) == 0 || errno == EEXIST, Unavailable, "cannot make the folder {}: {}", folder_,
           std::strerror(errno));
  const io::FileLock usable(folder_ + kLock, /*waits=*/false);
}

std::string SharedTables::path_of(uint64_t link, size_t shard) const {
  return fmt::format("{}/{:016x}-{:02}{}", folder_, link, shard, kSuffix);
}

std::shared_ptr<GrowableTable> SharedTables::open(const TableChain& chain) {
  const LinkReader& last = chain.last();
  try {
    auto table = open_images(chain);
    note(last.name(), "");
    return table;
  } catch (const Error& e) {
    note(last.name(), e.what());
  }
  return GrowableTable::for_lookups(last.name(), chain);
}

std::shared_ptr<GrowableTable> SharedTables::open_images(const TableChain& chain) const {
  const io::FileLock held(folder_ + kLock, /*waits=*/true);
  const auto& links = chain.links();
  const LinkReader& last = chain.last();
  auto table = GrowableTable::for_images(last.name(), last.table().width);
  std::array<size_t, size_t{GrowableTable::kShards}> at{};  // the link of each image
  std::shared_ptr<GrowableTable> rows;
  for (size_t s = 0; s < at.size(); ++s) {
    at[s] = links.size();
    while (at[s] > 0 && !map(table.get(), links[at[s] - 1].checksum(), s)) --at[s];
    if (at[s]-- > 0) continue;
    if (!rows) {
      remove_unused();
      rows = GrowableTable::for_lookups(last.name(), chain);
    }
    make(*rows, last.checksum(), s, table.get());
    at[s] = links.size() - 1;
  }
  rows.reset();
  malloc_trim(0);
  for (size_t i = 1; i < links.size(); ++i) {
    if (*std::min_element(at.begin(), at.end()) >= i) continue;
    table->apply(links[i], [&](int64_t key) { return at[KeyOrder::shard_of(key)] < i; });
  }
  return table;
}

// A damaged image, of a disk or of a process of old code, is made again.
bool SharedTables::map(GrowableTable* table, uint64_t link, size_t shard) const {
  const std::string path = path_of(link, shard);
  if (!fs::exists(path)) return false;
  try {
    table->map_image(shard, link, path);
    return true;
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::kInvalidArgument) throw;
    std::error_code failed;
    fs::remove(path, failed);
    return false;
  }
}

void SharedTables::make(const GrowableTable& from, uint64_t link, size_t shard, GrowableTable* to) const {
  const std::string path = path_of(link, shard);
  io::AtomicFile file(path);
  from.write_image(shard, link, &file);
  file.commit();
  to->map_image(shard, link, path);
}

std::shared_ptr<GrowableTable> SharedTables::renewed(const GrowableTable& table, uint64_t link, bool makes) {
  if (!table.is_image()) return nullptr;
  makes = makes && !has_failed(table.name(), link);
  std::vector<size_t> there, due;
  int64_t all_own = 0;
  for (size_t s = 0; s < size_t{GrowableTable::kShards}; ++s) {
    const int64_t own = table.own_rows(s);
    all_own += own;
    if (own > 0 && fs::exists(path_of(link, s))) there.push_back(s);
    if (makes && own * kMostOwn > table.held_rows(s)) due.push_back(s);
  }
  if (there.empty() && due.empty()) {
    give_back(table.name(), all_own);
    return nullptr;
  }
  try {
    const io::FileLock held(folder_ + kLock, /*waits=*/false);
    if (!held.taken()) return nullptr;
    auto images = GrowableTable::for_images(table.name(), table.options().width);
    bool any = false;
    for (const size_t s : there) any |= map(images.get(), link, s);
    if (!any && !due.empty()) {
      remove_unused();
      make(table, link, due.front(), images.get());
      any = true;
    }
    if (!any) return nullptr;
    note(table.name(), "");
    return images;
  } catch (const Error& e) {
    note(table.name(), e.what(), link);
    return nullptr;
  }
}

// The memory of a layer whose rows are own rows now, or of own rows that are in an image, goes back to the system.
void SharedTables::give_back(const std::string& table, int64_t own_rows) {
  {
    const std::lock_guard held(lock_);
    if (std::exchange(own_rows_[table], own_rows) == own_rows) return;
  }
  malloc_trim(0);
}

void SharedTables::remove_unused() const {
  io::remove_stale(folder_);
  for (const auto& entry : fs::directory_iterator(folder_)) {
    if (entry.path().extension() == kSuffix) io::remove_unless_mapped(entry.path());
  }
}

void SharedTables::note(const std::string& table, const std::string& problem, uint64_t link) {
  const std::lock_guard held(lock_);
  if (problem.empty()) {
    problems_.erase(table);
    return;
  }
  problems_[table] = {fmt::format("table {} is not shared: {}", table, problem.substr(0, problem.find('\n'))), link};
}

void SharedTables::not_a_chain(const std::string& table) {
  note(table, "the checkpoint has all rows in one file; Checkpoints(delta=...) writes tables that can be shared");
}

bool SharedTables::has_failed(const std::string& table, uint64_t link) const {
  const std::lock_guard held(lock_);
  const auto found = problems_.find(table);
  return found != problems_.end() && found->second.link == link;
}

std::string SharedTables::problem() const {
  const std::lock_guard held(lock_);
  return problems_.empty() ? std::string() : problems_.begin()->second.text;
}

}  // namespace anabranch::sparse
