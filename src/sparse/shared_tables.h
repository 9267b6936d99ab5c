// Tables of which the processes of one machine have the rows in memory once: images (GrowableTable::of_image) in a
// folder, which one process makes and all map. The files of the checkpoints are not mapped: their rows have no index
// and stand between moments, and a tool that copies them may cut them short for a while, which would kill the process.
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

  // The table at the end of a chain, for lookups: the newest image of one of its links, and the changes after it. Makes
  // an image if there is none, while other processes wait. If that fails, the table has its own memory.
  std::shared_ptr<GrowableTable> open(const TableChain& chain);
  // A table that reads as `table`, which has the rows at a link and no layer, but shares more of them: an image that
  // another process has made, or with `makes` a new one, once too many rows have changed since the old one. Null: there
  // is none.
  std::shared_ptr<GrowableTable> renewed(const GrowableTable& table, uint64_t link, bool makes);

  // The checkpoint has the table in one file, and not as a chain: the table has its own memory.
  void not_a_chain(const std::string& table);
  // Why a table has its own memory, or has not been renewed; empty if there is no such table. Any thread.
  std::string problem() const;

 private:
  std::string path_of(uint64_t link) const;
  std::shared_ptr<GrowableTable> find(const std::string& name, uint64_t link) const;
  std::shared_ptr<GrowableTable> find_in(const TableChain& chain) const;
  void make(const GrowableTable& table, uint64_t link) const;
  void remove_unused() const;
  void note(const std::string& table, const std::string& problem);

  const std::string folder_;
  mutable std::mutex lock_;
  std::map<std::string, std::string> problems_;  // of tables
};

}  // namespace anabranch::sparse
