// Tables whose rows the processes of a machine share: one process writes images (GrowableTable::map_image) to a folder,
// and all map them. A file has a part of the rows, so new files take little space while the old ones are still in use.
// The files of the checkpoints are not mapped: their rows have no index and are stored between moments, and a tool that
// copies them may truncate them for a while, which would kill the process.
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "sparse/growable_table.h"
#include "sparse/table_chain.h"

namespace anabranch::sparse {

class SharedTables {
 public:
  // Makes the folder if there is none. Unavailable: it cannot be made or read.
  explicit SharedTables(std::string folder);

  // The table at the end of a chain, for lookups: the newest images of its links, and the changes after them. Makes
  // images if some are missing, while other processes wait. If that fails, the table has its own memory.
  std::shared_ptr<GrowableTable> open(const TableChain& chain);
  // Images that read as parts of `table`, which has the rows at a link and no layer, so that it shares more of them:
  // those that another process has made, and with `makes` a new one, where too many rows have changed since the old
  // one. Null: there are none.
  std::shared_ptr<GrowableTable> renewed(const GrowableTable& table, uint64_t link, bool makes);

  // The checkpoint has the table in one file, and not as a chain: the table has its own memory.
  void not_a_chain(const std::string& table);
  // Why a table has its own memory, or has not been renewed; empty if there is no such table. Any thread.
  std::string problem() const;

 private:
  std::string path_of(uint64_t link, size_t shard) const;
  bool map(GrowableTable* table, uint64_t link, size_t shard) const;
  void make(const GrowableTable& from, uint64_t link, size_t shard, GrowableTable* to) const;
  std::shared_ptr<GrowableTable> open_images(const TableChain& chain) const;
  void give_back(const std::string& table, int64_t own_rows);
  void remove_unused() const;
  void note(const std::string& table, const std::string& problem, uint64_t link = 0);
  bool has_failed(const std::string& table, uint64_t link) const;

  struct Problem {
    std::string text;
    uint64_t link;  // at which no image could be made; 0: none was to be made
  };

  const std::string folder_;
  mutable std::mutex lock_;
  std::map<std::string, Problem> problems_;  // of tables
  std::map<std::string, int64_t> own_rows_;  // of tables, when memory was last given back
};

}  // namespace anabranch::sparse
