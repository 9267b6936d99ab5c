#include "sim/grown_table.h"

#include <cstring>
#include <iterator>

#include "engine/served_bytes.h"

namespace anabranch::ps::sim {
namespace {

using sparse::GrowableTable;

sparse::TableOptions options_of(const GrownRules& rules) {
  sparse::TableOptions o = GrownTable::copy_options();
  o.admit_count = rules.admit_count;
  o.expire_after = rules.expire_after;
  o.score = {.show = 1, .click = 1, .decay = 0.5F, .delete_below = 0.75F, .shrink_every = rules.shrink_every};
  o.tells = true;
  o.max_bytes = 1 << 16;  // no row is evicted, and snapshots have few counts of keys
  return o;
}

template <class T> Tensor tensor_of(const std::vector<T>& values, DType dtype) {
  Tensor out(Shape{static_cast<int64_t>(values.size())}, dtype);
  if (!values.empty()) std::memcpy(out.mutable_raw(), values.data(), out.bytes());
  return out;
}

void update(GrowableTable& table, const std::vector<int64_t>& ids, const float* differences) {
  sparse::RecordUpdate how;
  how.rule = sparse::RowRule::kSgd;
  how.rate = -1;
  how.makes_rows = true;
  GrowableTable::Scratch scratch;
  table.update(ids.data(), static_cast<int64_t>(ids.size()), differences, how, &scratch, nullptr);
}

}  // namespace

GrownTable::GrownTable(const GrownRules& rules)
    : options_(options_of(rules)), table_(std::make_shared<GrowableTable>("g", options_)) {}

sparse::TableOptions GrownTable::copy_options() {
  sparse::TableOptions o;
  o.width = kWidth;
  o.seed = 7;
  o.policy = sparse::Policy::kLowestScore;
  o.by_updates = true;
  return o;
}

void GrownTable::add(const std::vector<int64_t>& ids, const float* differences) {
  log_.push_back(static_cast<double>(ids.size()));
  for (size_t i = 0; i < ids.size(); ++i) {
    log_.push_back(static_cast<double>(ids[i]));
    for (size_t k = 0; k < kWidth; ++k) log_.push_back(differences[i * kWidth + k]);
  }
  update(*table_, ids, differences);
}

void GrownTable::add(const Change& change) { add(change.rows->rows, change.rows->value.data<float>()); }

void GrownTable::read_changed(uint32_t variable, std::span<const int64_t> ids, Message* into) const {
  const std::vector<int64_t> present = table_->with_rows(ids);
  std::vector<int64_t> gone;
  std::set_difference(ids.begin(), ids.end(), present.begin(), present.end(), std::back_inserter(gone));
  into->add_ids(variable, gone);
  const std::vector<float> rows = rows_of(*table_, present);
  into->add_ids(variable, present);
  void* to = into->add_room(variable, Shape{static_cast<int64_t>(present.size()), kWidth}, DType::kFloat32);
  if (!rows.empty()) std::memcpy(to, rows.data(), rows.size() * sizeof(float));
}

void GrownTable::read_table(uint32_t variable, uint64_t part, int bits, Message* into) const {
  sparse::TableHeader head = table_->header();
  std::string rows;
  bits > 0 ? table_->append_rows(part, bits, &rows) : void(head.rows = table_->stats().rows);
  add_bytes(variable, {reinterpret_cast<const char*>(&head), sizeof(head)}, into);
  add_bytes(variable, rows, into);
}

void GrownTable::save(SavedCopies* copies, const std::string& name) const {
  std::vector<int64_t> head{table_->header().clock};
  const auto counts = table_->key_counts();
  head.insert(head.end(), counts.begin(), counts.end());
  copies->add(name, tensor_of(head, DType::kInt64));
  std::string rows;
  for (uint64_t part = 0; part >> sparse::KeyOrder::kBits == 0; ++part) {
    table_->append_rows(part, sparse::KeyOrder::kBits, &rows);
  }
  copies->add(name, tensor_of(std::vector<char>(rows.begin(), rows.end()), DType::kUInt8));
  copies->add(name, tensor_of(log_, DType::kFloat64));
}

void GrownTable::load(const Tensor& value) {
  if (value.dtype() == DType::kUInt8) {
    table_->add_rows(static_cast<const char*>(value.raw()), value.bytes());
  } else if (value.dtype() == DType::kInt64) {
    table_->set_clock(value.data<int64_t>()[0]);
    table_->set_key_counts({value.data<int64_t>() + 1, static_cast<size_t>(value.numel() - 1)});
  } else {
    log_.assign(value.data<double>(), value.data<double>() + value.numel());
  }
}

double GrownTable::shows_added() const {
  double sum = 0;
  for (size_t at = 0; at < log_.size();) {
    const auto n = static_cast<size_t>(log_[at++]);
    for (size_t i = 0; i < n; ++i) sum += log_[at + i * (1 + kWidth) + 1];
    at += n * (1 + kWidth);
  }
  return sum;
}

std::string GrownTable::check() const {
  GrowableTable again("g", options_);
  for (size_t at = 0; at < log_.size();) {
    std::vector<int64_t> ids(static_cast<size_t>(log_[at++]));
    std::vector<float> differences;
    for (auto& id : ids) {
      id = static_cast<int64_t>(log_[at++]);
      for (size_t k = 0; k < kWidth; ++k) differences.push_back(static_cast<float>(log_[at++]));
    }
    update(again, ids, differences.data());
  }
  const std::vector<int64_t> keys = table_->keys(), expected = again.keys();
  if (keys != expected) return fmt::format("the growable table has {} rows, not {}", keys.size(), expected.size());
  if (rows_of(*table_, keys) != rows_of(again, keys)) return "rows of the growable table differ from what was added";
  return "";
}

std::vector<float> rows_of(GrowableTable& table, const std::vector<int64_t>& keys) {
  std::vector<float> rows(keys.size() * static_cast<size_t>(table.options().width));
  sparse::KeyOrder scratch;
  table.pull(keys.data(), static_cast<int64_t>(keys.size()), {}, rows.data(), &scratch, nullptr);
  return rows;
}

}  // namespace anabranch::ps::sim
