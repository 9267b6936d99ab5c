#include "sim/counting_table.h"

#include <algorithm>
#include <optional>

#include "sparse/hash.h"

namespace anabranch::ps::sim {
namespace {

using sparse::GrowableTable;
using sparse::KeyOrder;

constexpr size_t kRowBytes = 8 + 4 + 4;
constexpr int64_t kSliceRows = 6;
constexpr int kIterations = 6;  // of a slice of the table to one of the store

constexpr uint64_t kShard = 5;

// The n-th key of the shard.
int64_t key(size_t n) {
  static const std::vector<int64_t> keys = [] {
    std::vector<int64_t> out;
    for (int64_t k = 0; out.size() < 4096; ++k) {
      if (sparse::hash_id(k) >> (64 - KeyOrder::kBits) == kShard) out.push_back(k);
    }
    return out;
  }();
  return keys.at(n);
}

void put_rows(const Saving::Put& put, const std::string& rows) {
  Tensor bytes(Shape{static_cast<int64_t>(rows.size())}, DType::kUInt8);
  if (!rows.empty()) std::memcpy(bytes.mutable_raw(), rows.data(), rows.size());
  put("t", bytes);
}

class CutSaving final : public Saving {
 public:
  explicit CutSaving(std::shared_ptr<GrowableTable> table) : cut_(std::move(table), kSliceRows * kRowBytes) {}
  bool next(const Put& put) override {
    std::string rows;
    bool more = true;
    for (int iteration = 0; more && iteration < kIterations; ++iteration) more = cut_.next(&rows);
    put_rows(put, rows);
    return more;
  }

 private:
  GrowableTable::Cut cut_;
};

// The rows as they are when a slice reaches them: by the bits of their hashes, or counted by those not yet written.
class DefectiveSaving final : public Saving {
 public:
  DefectiveSaving(std::shared_ptr<GrowableTable> table, Planted planted)
      : table_(std::move(table)), planted_(planted), before_(all()) {}
  bool next(const Put& put) override {
    std::string rows;
    const std::string now = all();
    if (planted_ == Planted::kRowsAreCountedOff) {
      rows = now.substr(std::min(at_, now.size()), 20 * kRowBytes);
      at_ += rows.size();
      put_rows(put, rows);
      return at_ < now.size();
    }
    table_->append_rows(kFirst + at_, kBits, &rows);
    if (planted_ == Planted::kChangedRowsAreLeft) rows = unchanged(rows);
    put_rows(put, rows);
    return ++at_ < kParts;
  }

 private:
  static constexpr int kBits = 8;
  static constexpr uint64_t kParts = 1 << (kBits - KeyOrder::kBits), kFirst = kShard * kParts;  // others are empty

  std::string all() const {
    std::string rows;
    for (uint64_t part = 0; part >> KeyOrder::kBits == 0; ++part) table_->append_rows(part, KeyOrder::kBits, &rows);
    return rows;
  }
  std::string unchanged(const std::string& rows) const {
    std::string out;
    for (size_t at = 0; at < rows.size(); at += kRowBytes) {
      const std::string row = rows.substr(at, kRowBytes);
      for (size_t b = 0; b < before_.size(); b += kRowBytes) {
        if (before_.compare(b, kRowBytes, row) == 0) out += row;
      }
    }
    return out;
  }

  const std::shared_ptr<GrowableTable> table_;
  const Planted planted_;
  const std::string before_;
  size_t at_ = 0;  // part, or byte
};

class LateSaving final : public Saving {
 public:
  explicit LateSaving(std::shared_ptr<GrowableTable> table) : table_(std::move(table)) {}
  bool next(const Put& put) override {
    if (!saving_) saving_.emplace(table_);
    return saving_->next(put);
  }

 private:
  const std::shared_ptr<GrowableTable> table_;
  std::optional<CutSaving> saving_;
};

}  // namespace

CountingTable::CountingTable() {
  sparse::TableOptions o;
  o.width = 1;
  table_ = std::make_shared<GrowableTable>("t", o);
}

std::vector<int64_t> CountingTable::keys_of(int worker, int step) {
  std::vector<int64_t> keys;
  for (size_t n = 0; n < kShared; ++n) keys.push_back(key(n));
  const auto first = static_cast<size_t>(kShared + (worker * 100 + step) * kMine);
  for (size_t n = 0; n < kMine; ++n) keys.push_back(key(first + n));
  return keys;
}

void CountingTable::add(const Change& change) {
  sparse::RecordUpdate how;
  how.rule = sparse::RowRule::kSgd;
  how.rate = 1;
  how.makes_rows = true;
  GrowableTable::Scratch scratch;
  const auto& ids = change.rows->rows;
  table_->update(ids.data(), static_cast<int64_t>(ids.size()), change.rows->value.data<float>(), how, &scratch,
                 nullptr);
}

void CountingTable::load(const Tensor& rows) { table_->add_rows(static_cast<const char*>(rows.raw()), rows.bytes()); }

std::unique_ptr<Saving> CountingTable::begin_save(Planted planted) const {
  switch (planted) {
    case Planted::kRowsAreNotOfTheCut:
    case Planted::kRowsAreCountedOff:
    case Planted::kChangedRowsAreLeft: return std::make_unique<DefectiveSaving>(table_, planted);
    case Planted::kTheCutComesLate: return std::make_unique<LateSaving>(table_);
    default: return std::make_unique<CutSaving>(table_);
  }
}

std::string CountingTable::check(int64_t pushes) const {
  const std::vector<int64_t> keys = table_->keys();
  const auto expected = pushes == 0 ? 0 : kShared + kMine * pushes;
  if (static_cast<int64_t>(keys.size()) != expected) {
    return fmt::format("the table has {} rows after {} pushes, not {}", keys.size(), pushes, expected);
  }
  std::vector<float> values(keys.size());
  KeyOrder scratch;
  table_->pull(keys.data(), static_cast<int64_t>(keys.size()), {}, values.data(), &scratch, nullptr);
  for (size_t i = 0; i < keys.size(); ++i) {
    const float count = keys[i] <= key(kShared - 1) ? static_cast<float>(pushes) : 1.0F;
    if (values[i] != count) return fmt::format("row {} of the table is {}, not {}", keys[i], values[i], count);
  }
  return "";
}

}  // namespace anabranch::ps::sim
