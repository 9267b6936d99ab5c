// A disk in memory. When power is lost, files keep what was flushed and some of what was written after that, the end of
// it torn; of the changes of names that were not flushed the first ones are kept, as a journalling file system does.
#pragma once
#include <map>
#include <set>

#include "base/error.h"
#include "ps/disk.h"
#include "sim/world.h"

namespace anabranch::ps::sim {

class SimDisk final : public Disk {
 public:
  explicit SimDisk(World& world) : world_(world) {}

  bool ignores_sync = false, ignores_sync_folder = false;  // defects that tests plant
  bool full = false;
  int written = 0, flushed = 0;  // operations

  std::unique_ptr<DiskLock> lock(const std::string&, const std::string&) override {
    return std::make_unique<DiskLock>();  // one node has this disk
  }
  std::unique_ptr<DiskFile> create(const std::string& path) override {
    check("create", path);
    auto node = std::make_shared<Node>();
    change([path, node](Names& names) { names[path] = node; });
    return std::make_unique<File>(*this, node, path);
  }
  bool exists(const std::string& path) const override { return now_.count(path) != 0; }
  std::unique_ptr<DiskSource> open(const std::string& path) const override {
    const auto it = now_.find(path);
    AB_CHECK(it != now_.end(), NotFound, "no file {}", path);
    return std::make_unique<Source>(it->second->bytes);
  }
  std::vector<std::string> list(const std::string& folder) const override {
    std::set<std::string> out;
    for (const auto& [path, node] : now_) {
      if (path.starts_with(folder + "/"))
        out.insert(path.substr(folder.size() + 1, path.find('/', folder.size() + 1) - folder.size() - 1));
    }
    return {out.begin(), out.end()};
  }
  void make_folder(const std::string& path) override { check("make the folder", path); }
  void rename(const std::string& from, const std::string& to) override {
    check("rename", from);
    change([from, to](Names& names) {
      Names moved;
      for (auto it = names.begin(); it != names.end();) {
        const bool mine = it->first == from || it->first.starts_with(from + "/");
        if (mine) moved[to + it->first.substr(from.size())] = it->second;
        it = mine ? names.erase(it) : std::next(it);
      }
      names.merge(moved);
    });
  }
  void remove(const std::string& path) override {
    change([path](Names& names) {
      std::erase_if(names, [&](const auto& n) { return n.first == path || n.first.starts_with(path + "/"); });
    });
  }
  void sync_folder(const std::string& path) override {
    check("flush", path);
    if (ignores_sync_folder) return;
    durable_ = now_;
    changes_.clear();
  }

  void lose_power() {
    now_ = durable_;
    const int kept = world_.pick(0, static_cast<int>(changes_.size()));
    for (int i = 0; i < kept; ++i) changes_[static_cast<size_t>(i)](now_);
    changes_.clear();
    for (auto& [path, node] : now_) {
      const size_t more = node->bytes.size() - node->flushed;
      if (more == 0) continue;
      const size_t left = world_.draw() % (more + 1);
      node->bytes.resize(node->flushed + left);
      if (left > 0 && world_.chance(50)) node->bytes.back() = static_cast<char>(world_.draw());
      node->flushed = node->bytes.size();
    }
    durable_ = now_;
  }
  // A byte of a file that is there.
  void damage(const std::string& path) {
    std::string& bytes = now_.at(path)->bytes;
    if (bytes.empty()) return;
    bytes[world_.draw() % bytes.size()] ^= static_cast<char>(1 + world_.draw() % 255);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& [path, node] : now_) out.push_back(path);
    return out;
  }

 private:
  struct Node {
    std::string bytes;
    size_t flushed = 0;
  };
  using Names = std::map<std::string, std::shared_ptr<Node>>;

  class File final : public DiskFile {
   public:
    File(SimDisk& disk, std::shared_ptr<Node> node, std::string path)
        : disk_(disk), node_(std::move(node)), path_(std::move(path)) {}
    void write(std::string_view data) override {
      disk_.check("write", path_);
      node_->bytes += data;
    }
    void sync() override {
      disk_.check("flush", path_);
      ++disk_.flushed;
      if (!disk_.ignores_sync) node_->flushed = node_->bytes.size();
    }

   private:
    SimDisk& disk_;
    const std::shared_ptr<Node> node_;
    const std::string path_;
  };

  class Source final : public DiskSource {
   public:
    explicit Source(std::string bytes) : bytes_(std::move(bytes)) {}
    uint64_t size() const override { return bytes_.size(); }
    size_t read(void* to, size_t bytes) override {
      const size_t got = bytes_.copy(static_cast<char*>(to), bytes, at_);
      at_ += got;
      return got;
    }

   private:
    const std::string bytes_;
    size_t at_ = 0;
  };

  void check(const char* doing, const std::string& path) {
    ++written;
    AB_CHECK(!full, ResourceExhausted, "cannot {} {}: no space left", doing, path);
  }
  void change(const std::function<void(Names&)>& how) {
    how(now_);
    changes_.push_back(how);
  }

  World& world_;
  Names now_, durable_;
  std::vector<std::function<void(Names&)>> changes_;
};

}  // namespace anabranch::ps::sim
