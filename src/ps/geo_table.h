// The copy of a growable table that a worker of GEO training updates. The servers apply the rules: a key gets a row,
// and loses it, where differences are added. The copy has the rows of all servers, and rows of keys that were updated
// since the last exchange; a key that the servers do not know then starts again with its initial row. The first numbers
// of a row that count shows and clicks are sent in full, because servers sum them over workers.
#pragma once
#include <memory>
#include <vector>

#include "ps/client.h"
#include "ps/geo_variable.h"
#include "ps/id_set.h"
#include "sparse/growable_table.h"

namespace anabranch::ps {

// No step runs during a call.
class GeoTable {
 public:
  // Requests its rows in all following exchanges.
  GeoTable(Client& client, GeoVariable variable);
  ~GeoTable();
  GeoTable(const GeoTable&) = delete;

  const GeoVariable& variable() const { return variable_; }
  // Its rows are now those of the servers, with initial moments. Waits.
  void fetch();
  // Differences are counted from the rows of now.
  void begin();
  // Pushes the differences of the rows that were updated; returns their number.
  int64_t send(int trainers);
  // Takes the rows of the answers.
  void merge();

 private:
  using Table = sparse::GrowableTable;

  std::shared_ptr<Table> mine() const;
  void push_shards(const std::vector<int64_t>& keys, const std::vector<float>& rows);
  void merge_shard(const GeoVariable::Shard& shard);
  void forget(const std::vector<int64_t>& gone);
  std::vector<float> read(Table& table, const std::vector<int64_t>& keys);

  Client& client_;
  const GeoVariable variable_;
  std::shared_ptr<Table> old_;  // the rows of the last exchange, with what was sent since
  IdSet updated_;               // keys since the last difference
  sparse::KeyOrder scratch_;
};

}  // namespace anabranch::ps
