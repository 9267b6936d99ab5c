// Queries of a server's variables, and their storage on disk.
#include <algorithm>
#include <cstring>
#include <deque>
#include <iterator>

#include "engine/served_bytes.h"
#include "engine/served_program.h"

namespace anabranch {
namespace {

constexpr size_t kRecordBytes = 1 << 20;  // of a growable table, in one record of a snapshot

// Tensors are copied, growable tables are cut: a record with the approximate number of rows, the clock of their ages
// and the counts of keys that wait for admission, then rows.
class SavedValues final : public ps::Saving {
 public:
  void add(const std::string& name, const Tensor& value) { copies_.add(name, value); }
  void add(const std::string& name, std::shared_ptr<sparse::GrowableTable> table) {
    const std::vector<int64_t> counts = table->key_counts();
    Tensor head(Shape{2 + static_cast<int64_t>(counts.size())}, DType::kInt64);
    head.mutable_data<int64_t>()[0] = table->stats().rows;
    head.mutable_data<int64_t>()[1] = table->header().clock;
    std::copy(counts.begin(), counts.end(), head.mutable_data<int64_t>() + 2);
    copies_.add(name, head);
    tables_.push_back({name, std::make_unique<sparse::GrowableTable::Cut>(std::move(table), kSliceBytes)});
  }
  bool next(const Put& put) override {
    if (copies_.next(put)) return true;
    if (tables_.empty()) return false;
    Table& t = tables_.front();
    std::string rows;
    bool more = true;
    while (more && rows.size() < kRecordBytes) more = t.cut->next(&rows);
    if (!rows.empty()) put(t.name, tensor_of(rows));
    if (!more) tables_.pop_front();
    return !tables_.empty();
  }

 private:
  struct Table {
    std::string name;
    std::unique_ptr<sparse::GrowableTable::Cut> cut;
  };
  static Tensor tensor_of(const std::string& rows) {
    Tensor bytes(Shape{static_cast<int64_t>(rows.size())}, DType::kUInt8);
    if (!rows.empty()) std::memcpy(bytes.mutable_raw(), rows.data(), rows.size());
    return bytes;
  }

  ps::SavedCopies copies_;
  std::deque<Table> tables_;
};

}  // namespace

const Tensor& ServedProgram::tensor_of(uint32_t variable) const {
  AB_CHECK(variable < entries_.size(), InvalidArgument, "there is no variable number {} at this server", variable);
  const Entry& e = entries_[variable];
  const Tensor* t = e.value->get<Tensor>();
  AB_CHECK(t && t->initialized(), NotFound, "{} was never written on this server: run its startup program first",
           e.name);
  AB_CHECK(t->place().on_host(), Unavailable, "{} has gone to {} while this server serves it: servers run on the CPU",
           e.name, t->place().str());
  return *t;
}

ps::Extent ServedProgram::extent(uint32_t variable) const {
  if (const auto table = table_at(variable)) {
    const sparse::TableStats s = table->stats();
    return {s.rows, s.bytes, s.hits, s.misses, s.created, s.waiting, s.refused, s.evicted, s.expired, s.shrunk};
  }
  const Tensor* t = variable < entries_.size() ? entries_[variable].value->get<Tensor>() : nullptr;
  if (!t || !t->initialized()) return {};
  return {t->rows(), static_cast<int64_t>(t->bytes())};
}

void ServedProgram::read(uint32_t variable, rpc::Message* into) const { into->add(variable, tensor_of(variable)); }

// fn(name, tensor, table) for the program's persistent variables; tensor or table is null.
template <class Fn> void ServedProgram::each_kept(Fn&& fn) const {
  for (const auto& v : program_->global_block().vars()) {
    if (!v->persistable || is_gradient(v->name)) continue;
    const Value* value = scope_->find_var(v->name);
    if (!value) continue;
    const Tensor* t = value->get<Tensor>();
    if (t && t->initialized()) fn(v->name, t, std::shared_ptr<sparse::GrowableTable>());
    if (const auto table = sparse::GrowableTable::of(*value)) fn(v->name, nullptr, table);
  }
}

std::vector<std::string> ServedProgram::kept() const {
  std::vector<std::string> names;
  each_kept([&](const std::string& name, const Tensor*, const auto&) { names.push_back(name); });
  return names;
}

std::unique_ptr<ps::Saving> ServedProgram::begin_save() const {
  links_.drop_silent();
  auto saving = std::make_unique<SavedValues>();
  each_kept([&](const std::string& name, const Tensor* tensor, const auto& table) {
    if (tensor) {
      saving->add(name, *tensor);
    } else {
      saving->add(name, table);
    }
  });
  return saving;
}

namespace {

// Without a clock in states of earlier versions.
void load_head(sparse::GrowableTable& table, const Tensor& head) {
  AB_CHECK(head.numel() >= 1, ShapeMismatch, "the saved state of table {} starts with no number", table.name());
  const int64_t* numbers = head.data<int64_t>();
  table.reserve(numbers[0]);
  if (head.numel() == 1) return;
  table.set_clock(numbers[1]);
  table.set_key_counts({numbers + 2, static_cast<size_t>(head.numel() - 2)});
}

}  // namespace

void ServedProgram::load(const std::string& name, const Tensor& value) {
  const auto declared = program_->global_block().find_var(name);
  AB_CHECK(declared && declared->persistable, NotFound, "the saved state has {}, which this server does not keep",
           name);
  Value& mine = *scope_->share(name);
  const RunGate::Change change(mine.gate().get());
  if (const auto table = sparse::GrowableTable::of(mine)) {
    if (value.dtype() == DType::kInt64) return load_head(*table, value);
    AB_CHECK(value.dtype() == DType::kUInt8, ShapeMismatch,
             "{} is a growable table at this server, {} {} in the "
             "saved state",
             name, dtype_name(value.dtype()), value.shape().str());
    return table->add_rows(static_cast<const char*>(value.raw()), value.bytes());
  }
  const Tensor* now = mine.get<Tensor>();
  AB_CHECK(!now || !now->initialized() || (now->shape() == value.shape() && now->dtype() == value.dtype()),
           ShapeMismatch, "{} is {} {} at this server, {} {} in the saved state", name, dtype_name(now->dtype()),
           now->shape().str(), dtype_name(value.dtype()), value.shape().str());
  mine.as<Tensor>().copy_from(value);
  mine.touch();
}

void ServedProgram::read_rows(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) const {
  if (const auto grows = table_at(variable)) return find_rows(*grows, variable, ids, /*train=*/false, into);
  const Tensor& table = tensor_of(variable);
  const int64_t height = table.rows(), width = table.row_elems();
  for (const int64_t id : ids) {
    AB_CHECK(id >= 0 && id < height, InvalidArgument, "row {} of {} is requested, which has {} rows", id,
             entries_[variable].name, height);
  }
  const size_t bytes = static_cast<size_t>(width) * dtype_size(table.dtype());
  auto* to =
      static_cast<char*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), width}, table.dtype()));
  const auto* rows = static_cast<const char*>(table.raw());
  for (size_t i = 0; i < ids.size(); ++i)
    std::memcpy(to + i * bytes, rows + static_cast<size_t>(ids[i]) * bytes, bytes);
}

// ---- growable tables

std::shared_ptr<sparse::GrowableTable> ServedProgram::table_at(uint32_t variable) const {
  return variable < entries_.size() ? sparse::GrowableTable::of(*entries_[variable].value) : nullptr;
}

void ServedProgram::find_rows(sparse::GrowableTable& table, uint32_t variable, std::span<const int64_t> ids, bool train,
                              rpc::Message* into) const {
  thread_local sparse::KeyOrder scratch;  // several threads query concurrently and repeatedly
  const auto n = static_cast<int64_t>(ids.size());
  void* to = into->add_room(variable, Shape{n, table.options().width}, DType::kFloat32);
  table.pull(ids.data(), n, {.train = train}, static_cast<float*>(to), &scratch, nullptr);
}

void ServedProgram::read_changed(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) const {
  const auto table = table_at(variable);
  if (!table) return Store::read_changed(variable, ids, into);
  const std::vector<int64_t> present = table->with_rows(ids);
  std::vector<int64_t> gone;
  std::set_difference(ids.begin(), ids.end(), present.begin(), present.end(), std::back_inserter(gone));
  into->add_ids(variable, gone);
  into->add_ids(variable, present);
  find_rows(*table, variable, present, /*train=*/false, into);
}

std::vector<int64_t> ServedProgram::take_told(uint32_t variable) {
  const auto table = table_at(variable);
  return table ? table->take_told() : std::vector<int64_t>();
}

void ServedProgram::train_rows(uint32_t variable, std::span<const int64_t> ids, rpc::Message* into) {
  const auto table = table_at(variable);
  table ? find_rows(*table, variable, ids, /*train=*/true, into) : read_rows(variable, ids, into);
}

void ServedProgram::read_table(uint32_t variable, uint64_t part, int bits, rpc::Message* into) const {
  const auto table = table_at(variable);
  AB_CHECK(table != nullptr, InvalidArgument, "variable {} at this server is not a growable table", variable);
  sparse::TableHeader head = table->header();
  std::string rows;
  if (bits > 0) {
    table->append_rows(part, bits, &rows);
  } else {
    head.rows = table->stats().rows;
  }
  add_bytes(variable, {reinterpret_cast<const char*>(&head), sizeof(head)}, into);
  add_bytes(variable, rows, into);
}

void ServedProgram::read_link(uint32_t variable, std::span<const int64_t> request, rpc::Message* into) {
  const auto table = table_at(variable);
  AB_CHECK(table != nullptr, InvalidArgument, "variable {} at this server is not a growable table", variable);
  links_.handle(variable, table, request, into);
}

}  // namespace anabranch
