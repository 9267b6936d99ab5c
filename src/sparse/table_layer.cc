// Tables that follow a chain while they are read. A version is switched to by laying its changes over the table, and
// the changes are copied to the table afterwards, when lookups no longer read what they hide.
#include <cstring>
#include <mutex>

#include "sparse/growable_table.h"
#include "sparse/table_chain.h"

namespace anabranch::sparse {

TableOptions GrowableTable::for_lookups(const TableHeader& header) {
  TableOptions o;
  o.width = header.width;
  return o;
}

std::shared_ptr<GrowableTable> GrowableTable::for_lookups(const std::string& name, const TableChain& chain) {
  auto table = std::make_shared<GrowableTable>(name, for_lookups(chain.last().table()));
  table->load(chain);
  return table;
}

std::shared_ptr<GrowableTable> GrowableTable::layer_of(const TableChain& chain) const {
  check_fits(chain.last().table(), chain.last().path());
  TableOptions options = for_lookups(chain.last().table());
  options.few = true;
  auto layer = std::make_shared<GrowableTable>(name_, options);
  int64_t rows = 0;
  for (const LinkReader& link : chain.links()) rows += link.rows() + link.gone();
  layer->reserve(rows);
  for (const LinkReader& link : chain.links()) layer->put_changes(link);
  return layer;
}

void GrowableTable::put_changes(const LinkReader& link, const std::function<bool(int64_t key)>& mine) {
  const size_t row_bytes = link.table().row_bytes();
  const auto key_at = [](const char* at) {
    int64_t key = 0;
    std::memcpy(&key, at, sizeof(key));
    return key;
  };
  std::vector<float> numbers(static_cast<size_t>(options_.width));
  link.each(
      [&](std::string_view keys) {
        for (size_t at = 0; at < keys.size(); at += sizeof(int64_t)) {
          const int64_t key = key_at(keys.data() + at);
          if (!mine || mine(key)) put_change(key, kGone, nullptr);
        }
      },
      [&](std::string_view lines) {
        for (size_t at = 0; at < lines.size(); at += row_bytes) {
          const char* const row = lines.data() + at;
          if (mine && !mine(key_at(row))) continue;
          std::memcpy(numbers.data(), row + sizeof(int64_t) + sizeof(uint32_t), numbers.size() * sizeof(float));
          put_change(key_at(row), kThere, numbers.data());
        }
      });
}

// Rows that are gone read as zeros.
void GrowableTable::put_change(int64_t key, uint32_t seen, const float* numbers) {
  Part& part = parts_[KeyOrder::shard_of(key)];
  const std::lock_guard held(part.lock);
  float* const record = part.shard->restore(key, seen);
  const auto bytes = static_cast<size_t>(options_.width) * sizeof(float);
  numbers ? std::memcpy(record, numbers, bytes) : std::memset(record, 0, bytes);
}

std::shared_ptr<GrowableTable> GrowableTable::preview(std::shared_ptr<GrowableTable> table,
                                                      std::shared_ptr<GrowableTable> changes) {
  TableOptions o;
  o.width = table->options_.width;
  auto made = std::make_shared<GrowableTable>(table->name_, o);
  made->under_ = std::move(table);
  made->layer_ = std::move(changes);
  return made;
}

// The layer's rows do not change, so that no lock is needed to read them.
void GrowableTable::fold_layer() {
  if (!layer_) return;
  if (own_) begin_own(layer_->stats().rows);
  const size_t bytes = static_cast<size_t>(options_.width) * sizeof(float);
  for (size_t s = 0; s < parts_.size(); ++s) {
    Part& part = parts_[s];
    layer_->parts_[s].shard->each_row([&](int64_t key, uint32_t seen, const float* record) {
      if (own_) return own_->put_change(key, seen, record);
      const std::lock_guard held(part.lock);
      if (seen == kGone) {
        part.shard->remove(key);
        return;
      }
      float* to = part.shard->restore(key, kThere);
      AB_CHECK(to != nullptr, ResourceExhausted, "more rows than fit into the {} bytes of table {}", options_.max_bytes,
               name_);
      std::memcpy(to, record, bytes);
    });
  }
}

}  // namespace anabranch::sparse
