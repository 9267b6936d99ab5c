// What servers are asked of their variables, and what they keep of them on disk.
#include <cstring>

#include "engine/served_program.h"

namespace anabranch {
namespace {

constexpr int64_t kRecordBytes = 16 << 20;  // of a table that grows, in one record

void add_bytes(uint32_t variable, std::string_view bytes, ps::Message* into) {
  void* to = into->add_room(variable, Shape{static_cast<int64_t>(bytes.size())}, DType::kUInt8);
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
}

// A record at least, so that it is known that there is a table.
void save_rows(sparse::GrowableTable& table, const std::string& name,
               const std::function<void(const std::string& name, const Tensor& value)>& put) {
  const auto all = table.stats().rows * static_cast<int64_t>(table.header().row_bytes());
  const int bits = sparse::GrowableTable::bits_for(all, kRecordBytes);
  std::string rows;
  for (uint64_t part = 0; part >> bits == 0; ++part) {
    rows.clear();
    table.append_rows(part, bits, &rows);
    if (rows.empty() && part > 0) continue;
    Tensor bytes(Shape{static_cast<int64_t>(rows.size())}, DType::kUInt8);
    if (!rows.empty()) std::memcpy(bytes.mutable_raw(), rows.data(), rows.size());
    put(name, bytes);
  }
}

}  // namespace

const Tensor& ServedProgram::tensor_of(uint32_t variable) const {
  AB_CHECK(variable < entries_.size(), InvalidArgument, "there is no variable number {} at this server", variable);
  const Entry& e = entries_[variable];
  const Tensor* t = e.value->get<Tensor>();
  AB_CHECK(t && t->initialized(), NotFound, "{} was never written at this server: has its startup program run?",
           e.name);
  return *t;
}

ps::Extent ServedProgram::extent(uint32_t variable) const {
  if (const auto table = table_at(variable)) {
    const sparse::TableStats s = table->stats();
    return {s.rows, s.bytes, s.hits, s.misses};
  }
  const Tensor* t = variable < entries_.size() ? entries_[variable].value->get<Tensor>() : nullptr;
  if (!t || !t->initialized()) return {};
  return {t->rows(), static_cast<int64_t>(t->bytes())};
}

void ServedProgram::read(uint32_t variable, ps::Message* into) const { into->add(variable, tensor_of(variable)); }

void ServedProgram::save(const std::function<void(const std::string& name, const Tensor& value)>& put) const {
  for (const auto& v : program_->global_block().vars()) {
    if (!v->persistable || is_gradient(v->name)) continue;
    const Value* value = scope_->find_var(v->name);
    const Tensor* t = value ? value->get<Tensor>() : nullptr;
    if (t && t->initialized()) put(v->name, *t);
    const auto table = value ? sparse::GrowableTable::of(*value) : nullptr;
    if (table) save_rows(*table, v->name, put);
  }
}

void ServedProgram::load(const std::string& name, const Tensor& value) {
  const auto declared = program_->global_block().find_var(name);
  AB_CHECK(declared && declared->persistable, NotFound, "the saved state has {}, which this server does not keep",
           name);
  Value& mine = *scope_->share(name);
  const RunGate::Change change(mine.gate().get());
  if (const auto table = sparse::GrowableTable::of(mine)) {
    AB_CHECK(value.dtype() == DType::kUInt8, ShapeMismatch,
             "{} is a table that grows at this server, {} {} in the "
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

void ServedProgram::read_rows(uint32_t variable, std::span<const int64_t> ids, ps::Message* into) const {
  if (const auto grows = table_at(variable)) return find_rows(*grows, variable, ids, /*train=*/false, into);
  const Tensor& table = tensor_of(variable);
  const int64_t height = table.rows(), width = table.row_elems();
  for (const int64_t id : ids) {
    AB_CHECK(id >= 0 && id < height, InvalidArgument, "row {} of {} is asked for, it has {} rows", id,
             entries_[variable].name, height);
  }
  const size_t bytes = static_cast<size_t>(width) * dtype_size(table.dtype());
  auto* to =
      static_cast<char*>(into->add_room(variable, Shape{static_cast<int64_t>(ids.size()), width}, table.dtype()));
  const auto* rows = static_cast<const char*>(table.raw());
  for (size_t i = 0; i < ids.size(); ++i)
    std::memcpy(to + i * bytes, rows + static_cast<size_t>(ids[i]) * bytes, bytes);
}

// ---- tables that grow

std::shared_ptr<sparse::GrowableTable> ServedProgram::table_at(uint32_t variable) const {
  return variable < entries_.size() ? sparse::GrowableTable::of(*entries_[variable].value) : nullptr;
}

void ServedProgram::find_rows(sparse::GrowableTable& table, uint32_t variable, std::span<const int64_t> ids, bool train,
                              ps::Message* into) const {
  thread_local sparse::KeyOrder scratch;  // several threads ask at once, each again and again
  const auto n = static_cast<int64_t>(ids.size());
  void* to = into->add_room(variable, Shape{n, table.options().width}, DType::kFloat32);
  table.pull(ids.data(), n, {.train = train}, static_cast<float*>(to), &scratch, nullptr);
}

void ServedProgram::train_rows(uint32_t variable, std::span<const int64_t> ids, ps::Message* into) {
  const auto table = table_at(variable);
  table ? find_rows(*table, variable, ids, /*train=*/true, into) : read_rows(variable, ids, into);
}

void ServedProgram::read_table(uint32_t variable, uint64_t part, int bits, ps::Message* into) const {
  const auto table = table_at(variable);
  AB_CHECK(table != nullptr, InvalidArgument, "variable {} at this server is no table that grows", variable);
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

}  // namespace anabranch
