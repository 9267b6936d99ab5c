#include "ps/geo.h"

#include <future>

#include "base/run_gate.h"

namespace anabranch::ps {

Geo::Geo(Client& client, const GeoOptions& options, std::vector<GeoVariable> variables)
    : AsyncExchanger(client), options_(options) {
  AB_CHECK(options.trainers >= 1, InvalidArgument, "GEO: trainers must be at least 1, got {}", options.trainers);
  AB_CHECK(options.every >= 1, InvalidArgument, "GEO: push_nums must be at least 1, got {}", options.every);
  for (auto& v : variables) {
    AB_CHECK(v.value && !v.shards.empty(), InvalidArgument, "GEO: the parameter {} has no shards on servers", v.name);
    if (v.grows()) {
      tables_.emplace_back(client, std::move(v));
      continue;
    }
    for (const auto& shard : v.shards) client_.subscribe(shard.value);
    const std::string name = v.name;
    kept_[name].variable = std::move(v);
  }
  if (options.thread) thread_ = std::thread([this] { work(); });
}

Geo::~Geo() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
  for (const auto& [name, k] : kept_) {
    for (const auto& shard : k.variable.shards) client_.cancel(shard.value);
  }
}

int64_t Geo::rows_of(const Kept& k) const {
  int64_t rows = 0;
  for (const auto& shard : k.variable.shards) rows += shard.rows;
  return rows;
}

// All variables are of one scope.
RunGate* Geo::gate() const {
  if (!kept_.empty()) return kept_.begin()->second.variable.value->gate().get();
  return tables_.empty() ? nullptr : tables_.front().variable().value->gate().get();
}

void Geo::begin_kept(Kept& k) {
  const Tensor* w = k.variable.value->get<Tensor>();
  AB_CHECK(w && w->initialized(), NotFound, "GEO: {} was never written: run the trainer's startup program first",
           k.variable.name);
  AB_CHECK(w->rows() == rows_of(k), ShapeMismatch, "GEO: {} has {} rows here, its shards on servers have {}",
           k.variable.name, w->rows(), rows_of(k));
  AB_CHECK(w->dtype() == DType::kFloat32 || w->dtype() == DType::kFloat64, Unsupported,
           "GEO training of {}, which holds {}, not float32 or float64", k.variable.name, dtype_name(w->dtype()));
  k.old.copy_from(*w);
  k.noted.clear();
}

void Geo::begin() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || !busy_; });
    check();
    busy_ = true;  // the thread uses nothing
  }
  std::exception_ptr failed;
  try {
    const RunGate::Change change(gate());
    for (auto& [name, k] : kept_) begin_kept(k);
    for (GeoTable& table : tables_) table.begin();
  } catch (...) {
    failed = std::current_exception();
  }
  {
    const std::lock_guard lock(mutex_);
    begun_ = !failed;
    busy_ = due_ = false;
    since_ = 0;
  }
  changed_.notify_all();
  if (failed) std::rethrow_exception(failed);
}

void Geo::started() {
  fetch_tables();
  begin();
}

bool Geo::begun() const {
  const std::lock_guard lock(mutex_);
  return begun_;
}

void Geo::check() const {
  if (error_) std::rethrow_exception(error_);
}

void Geo::note(const std::string& table, std::span<const int64_t> ids) {
  const auto it = kept_.find(table);
  AB_CHECK(it != kept_.end() && it->second.variable.sparse, InvalidArgument,
           "send: {} is not a table whose rows are exchanged", table);
  const int64_t rows = rows_of(it->second);
  for (const int64_t id : ids) {
    AB_CHECK(id >= 0 && id < rows, InvalidArgument, "send: row {} of {}, which has {} rows", id, table, rows);
  }
  const std::lock_guard lock(mutex_);
  it->second.noted.add(ids);
}

void Geo::end_local_step() {
  {
    const std::lock_guard lock(mutex_);
    check();
    AB_CHECK(begun_, NotFound, "send: a step of GEO training before the trainer's startup program has run");
    ++steps_;
    if (++since_ < options_.every) return;
    due_ = true;
  }
  changed_.notify_all();
}

void Geo::flush() {
  std::unique_lock lock(mutex_);
  if (begun_) {
    changed_.wait(lock, [this] { return error_ || (!due_ && !busy_); });
    due_ = since_ > 0;
    changed_.notify_all();
    changed_.wait(lock, [this] { return error_ || (!due_ && !busy_); });
  }
  check();
}

Exchanger::Counts Geo::counts() const {
  const std::lock_guard lock(mutex_);
  return {{"steps", steps_}, {"exchanges", exchanges_}, {"rows", rows_}};
}

void Geo::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || (due_ && !busy_); });
    if (over_) return;
    busy_ = true;
    due_ = false;
    lock.unlock();
    std::exception_ptr error;
    try {
      exchange();
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    ++exchanges_;
    if (error) error_ = error;
    lock.unlock();
    changed_.notify_all();
    lock.lock();
    if (error_) return;
  }
}

void Geo::exchange() {
  send_all();
  std::promise<std::exception_ptr> over;
  client_.exchange([&](std::exception_ptr e) { over.set_value(std::move(e)); });
  if (const auto error = over.get_future().get()) std::rethrow_exception(error);
  merge_all();
}

bool Geo::due() const {
  const std::lock_guard lock(mutex_);
  return due_;
}

void Geo::begin_exchange(Client::Done done) {
  {
    const std::lock_guard lock(mutex_);
    AB_CHECK(begun_ && !busy_, InvalidArgument,
             "GEO: an exchange cannot start before training or during another exchange");
    due_ = false;
    busy_ = true;
  }
  send_all();
  client_.exchange(std::move(done));
}

void Geo::end_exchange() {
  merge_all();
  const std::lock_guard lock(mutex_);
  busy_ = false;
  ++exchanges_;
}

}  // namespace anabranch::ps
