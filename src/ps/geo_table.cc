#include "ps/geo_table.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "ps/table_copy.h"
#include "sparse/hash.h"

namespace anabranch::ps {
namespace {

constexpr size_t kCopied = 1 << 16;  // keys at a time

}  // namespace

GeoTable::GeoTable(Client& client, GeoVariable variable) : client_(client), variable_(std::move(variable)) {
  for (const auto& shard : variable_.shards) client_.subscribe(shard.value);
}

GeoTable::~GeoTable() {
  for (const auto& shard : variable_.shards) client_.cancel(shard.value);
}

std::shared_ptr<sparse::GrowableTable> GeoTable::mine() const {
  auto table = Table::of(*variable_.value);
  AB_CHECK(table != nullptr, NotFound, "GEO: {} holds no growable table: run the trainer's startup program first",
           variable_.name);
  AB_CHECK(!old_ || old_->options().width == table->options().width, ShapeMismatch,
           "GEO: table {} had rows of {} numbers when training started, and has changed since", variable_.name,
           old_->options().width);
  return table;
}

// A key without a row reads as its initial row.
std::vector<float> GeoTable::read(Table& table, const std::vector<int64_t>& keys) {
  std::vector<float> rows(keys.size() * static_cast<size_t>(table.options().width));
  table.pull(keys.data(), static_cast<int64_t>(keys.size()), {.train = true}, rows.data(), &scratch_, nullptr);
  return rows;
}

void GeoTable::fetch() {
  const sparse::TableOptions options = mine()->options();
  const auto fresh = std::make_shared<Table>(variable_.name, options);
  const auto bytes = static_cast<size_t>(options.width) * sizeof(float);
  std::vector<int64_t> keys;
  std::vector<float> values;
  for (const auto& shard : variable_.shards) {
    each_part(shard.value, [&](const sparse::TableHeader& head, std::string_view rows) {
      AB_CHECK(head.width == options.width, ShapeMismatch, "GEO: table {} has rows of {} numbers, {} at the server {}",
               variable_.name, options.width, head.width, shard.value.link->endpoint());
      const size_t n = rows.size() / head.row_bytes();
      keys.resize(n);
      values.resize(n * static_cast<size_t>(options.width));
      for (size_t i = 0; i < n; ++i) {
        const char* row = rows.data() + i * head.row_bytes();
        std::memcpy(&keys[i], row, sizeof(int64_t));
        std::memcpy(values.data() + i * static_cast<size_t>(options.width), row + sizeof(int64_t) + sizeof(uint32_t),
                    bytes);
      }
      fresh->set_rows(keys.data(), static_cast<int64_t>(n), values.data());
    });
  }
  Table::put(variable_.value.get(), fresh);
}

void GeoTable::begin() {
  old_ = nullptr;
  const auto table = mine();
  sparse::TableOptions options = table->options();
  AB_CHECK(options.by_updates && options.max_bytes == 0 && options.expire_after == 0, InvalidArgument,
           "GEO: the copy of table {} has rules: transpile its startup program", variable_.name);
  options.rule = sparse::RowRule::kSgd;
  old_ = std::make_shared<Table>(variable_.name, options);
  const std::vector<int64_t> all = table->keys();
  for (size_t i = 0; i < all.size(); i += kCopied) {
    const auto from = all.begin() + static_cast<std::ptrdiff_t>(i);
    const std::vector<int64_t> keys(from, from + static_cast<std::ptrdiff_t>(std::min(kCopied, all.size() - i)));
    old_->set_rows(keys.data(), static_cast<int64_t>(keys.size()), read(*table, keys).data());
  }
  updated_.clear();
  table->record_since(1);
}

int64_t GeoTable::send(int trainers) {
  const auto table = mine();
  updated_.add(table->take_changed());
  const std::vector<int64_t> keys = table->with_rows(updated_.ids());
  updated_.clear();
  std::vector<float> rows = read(*table, keys), before = read(*old_, keys);
  const auto width = static_cast<size_t>(table->options().width);
  const auto added = static_cast<size_t>(table->options().added());
  for (size_t i = 0; i < rows.size(); ++i) {
    rows[i] = (rows[i] - before[i]) / (i % width < added ? 1.0F : static_cast<float>(trainers));
    before[i] += rows[i];
  }
  old_->set_rows(keys.data(), static_cast<int64_t>(keys.size()), before.data());
  push_shards(keys, rows);
  return static_cast<int64_t>(keys.size());
}

// A server is sent its shard even if no row of it was updated, because it has changes of others.
void GeoTable::push_shards(const std::vector<int64_t>& keys, const std::vector<float>& rows) {
  const size_t servers = variable_.shards.size(), width = static_cast<size_t>(old_->options().width);
  std::vector<std::vector<int64_t>> ids(servers);
  std::vector<std::vector<float>> differences(servers);
  for (size_t i = 0; i < keys.size(); ++i) {
    const size_t s = sparse::server_of(keys[i], servers);
    ids[s].push_back(keys[i]);
    differences[s].insert(differences[s].end(), &rows[i * width], &rows[i * width] + width);
  }
  for (size_t s = 0; s < servers; ++s) {
    client_.push(variable_.shards[s].difference,
                 {ids[s], kUnknown, differences[s].data(), DType::kFloat32, static_cast<int64_t>(width)});
  }
}

// Updates since the difference was taken stay in the next one. The rows that come here do not count as updates.
void GeoTable::merge() {
  const auto table = Table::of(*variable_.value);
  if (!table || table->options().width != old_->options().width) return;  // the next exchange reports it
  updated_.add(table->take_changed());
  for (const auto& shard : variable_.shards) merge_shard(shard);
  table->take_changed();
}

void GeoTable::merge_shard(const GeoVariable::Shard& shard) {
  const auto table = mine();
  std::vector<int64_t> keys, gone;
  Tensor come;
  AB_CHECK(client_.take_rows(shard.value, &keys, &come, &gone) && come.dtype() == DType::kFloat32 &&
               come.numel() == static_cast<int64_t>(keys.size()) * table->options().width,
           ShapeMismatch, "GEO: the server at {} does not answer with rows of {}", shard.value.link->endpoint(),
           variable_.name);
  std::vector<float> rows = read(*table, keys);
  const std::vector<float> before = read(*old_, keys);
  const float* p = come.data<float>();
  // A number that has not changed here is that of the server, without rounding.
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = rows[i] == before[i] ? p[i] : rows[i] + (p[i] - before[i]);
  table->set_rows(keys.data(), static_cast<int64_t>(keys.size()), rows.data());
  old_->set_rows(keys.data(), static_cast<int64_t>(keys.size()), p);
  forget(gone);
}

// Keys that were not admitted, and rows that rules have removed. An update of such a key since then is still to be
// counted by the server.
void GeoTable::forget(const std::vector<int64_t>& gone) {
  const auto table = mine();
  const auto n = static_cast<int64_t>(gone.size());
  table->remove(gone.data(), n);
  old_->remove(gone.data(), n);
  std::vector<int64_t> again;
  const auto& updated = updated_.ids();
  std::set_intersection(gone.begin(), gone.end(), updated.begin(), updated.end(), std::back_inserter(again));
  table->set_rows(again.data(), static_cast<int64_t>(again.size()), read(*old_, again).data());
}

}  // namespace anabranch::ps
