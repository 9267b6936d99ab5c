#include "ps/geo.h"

#include <cstring>
#include <future>

#include "base/run_gate.h"
#include "core/row_locks.h"

namespace anabranch::ps {
namespace {

template <class Fn> void with_floats(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat32) return fn(float{});
  if (dtype == DType::kFloat64) return fn(double{});
  AB_THROW(Unsupported, "GEO training of a parameter of {}", dtype_name(dtype));
}

// What is sent of n numbers, which is then no longer new.
template <class T> void take_difference(const T* w, T* old, T* out, int64_t n, T trainers) {
  for (int64_t i = 0; i < n; ++i) {
    out[i] = (w[i] - old[i]) / trainers;
    old[i] += out[i];
  }
}

template <class T> void take_over(T* w, T* old, const T* p, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    w[i] += p[i] - old[i];
    old[i] = p[i];
  }
}

}  // namespace

Geo::Geo(Client& client, const GeoOptions& options, std::vector<GeoVariable> variables)
    : client_(client), options_(options) {
  AB_CHECK(options.trainers >= 1, InvalidArgument, "GEO: trainers must be at least 1, got {}", options.trainers);
  AB_CHECK(options.every >= 1, InvalidArgument, "GEO: push_nums must be at least 1, got {}", options.every);
  for (auto& v : variables) {
    AB_CHECK(v.value && !v.pieces.empty(), InvalidArgument, "GEO: the parameter {} has no pieces at servers", v.name);
    for (const auto& piece : v.pieces) client_.want(piece.value);
    const std::string name = v.name;
    kept_[name].variable = std::move(v);
  }
  thread_ = std::thread([this] { work(); });
}

Geo::~Geo() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
  for (const auto& [name, k] : kept_) {
    for (const auto& piece : k.variable.pieces) client_.want_no_more(piece.value);
  }
}

int64_t Geo::rows_of(const Kept& k) const {
  int64_t rows = 0;
  for (const auto& piece : k.variable.pieces) rows += piece.rows;
  return rows;
}

void Geo::begin() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return error_ || !busy_; });
    check();
    busy_ = true;  // the thread touches nothing
  }
  std::exception_ptr failed;
  try {
    for (auto& [name, k] : kept_) {
      const RunGate::Change change(k.variable.value->gate().get());
      const Tensor* w = k.variable.value->get<Tensor>();
      AB_CHECK(w && w->initialized(), NotFound, "GEO: {} was never written: has the trainer's startup program run?",
               name);
      AB_CHECK(w->rows() == rows_of(k), ShapeMismatch, "GEO: {} has {} rows here, its pieces at servers have {}", name,
               w->rows(), rows_of(k));
      with_floats(w->dtype(), [](auto) {});
      k.old.copy_from(*w);
      k.noted.clear();
    }
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
           "send: {} is no table whose rows are exchanged", table);
  const int64_t rows = rows_of(it->second);
  for (const int64_t id : ids) {
    AB_CHECK(id >= 0 && id < rows, InvalidArgument, "send: row {} of {}, which has {} rows", id, table, rows);
  }
  const std::lock_guard lock(mutex_);
  it->second.noted.add(ids);
}

void Geo::step() {
  {
    const std::lock_guard lock(mutex_);
    check();
    AB_CHECK(begun_, NotFound, "send: a step of GEO training before the trainer's startup program has run");
    ++stats_.steps;
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

GeoStats Geo::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
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
    ++stats_.exchanges;
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

// Steps that are counted here are those whose changes the parameters hold: nobody is in the middle of one.
void Geo::take_noted() {
  const std::lock_guard lock(mutex_);
  since_ = 0;
  for (auto& [name, k] : kept_) {
    k.sending.clear();
    k.sending.swap(k.noted);
    stats_.rows += static_cast<int64_t>(k.sending.ids().size());
  }
}

void Geo::send_all() {
  const RunGate::Change change(kept_.empty() ? nullptr : kept_.begin()->second.variable.value->gate().get());
  take_noted();
  for (auto& [name, k] : kept_) {
    const Tensor* w = k.variable.value->get<Tensor>();
    AB_CHECK(w && w->shape() == k.old.shape() && w->dtype() == k.old.dtype(), ShapeMismatch,
             "GEO: {} was {} {} when training began, and is otherwise now", name, dtype_name(k.old.dtype()),
             k.old.shape().str());
    k.variable.sparse ? send_rows(k) : send_dense(k);
  }
}

void Geo::send_dense(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    buffer_.resize(k.old.bytes());
    T* out = reinterpret_cast<T*>(buffer_.data());
    take_difference(k.variable.value->tensor().data<T>(), k.old.mutable_data<T>(), out, k.old.numel(),
                    static_cast<T>(options_.trainers));
    const int64_t width = k.old.row_elems();
    for (const auto& piece : k.variable.pieces) {
      Shape shape = k.old.shape();
      if (shape.rank() > 0) shape.set(0, piece.rows);
      Tensor part;
      part.view(out, shape, k.old.dtype(), std::shared_ptr<void>(std::shared_ptr<void>(), out));
      client_.push(piece.difference, part);
      out += piece.rows * width;
    }
  });
}

// A server hears of its piece even when none of its rows was looked up: it has changes of others to tell.
void Geo::send_rows(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = k.old.row_elems();
    const T* w = k.variable.value->tensor().data<T>();
    T* old = k.old.mutable_data<T>();
    const auto& all = k.sending.ids();
    const bool shared = RowLocks::shared();
    size_t next = 0;
    int64_t begin = 0;
    for (const auto& piece : k.variable.pieces) {
      ids_.clear();
      for (; next < all.size() && all[next] < begin + piece.rows; ++next) ids_.push_back(all[next] - begin);
      buffer_.resize(ids_.size() * static_cast<size_t>(width) * sizeof(T));
      T* out = reinterpret_cast<T*>(buffer_.data());
      for (size_t i = 0; i < ids_.size(); ++i) {
        const int64_t row = begin + ids_[i], at = row * width;
        const RowLocks::Hold hold(w, row, shared);
        take_difference(w + at, old + at, out + static_cast<int64_t>(i) * width, width,
                        static_cast<T>(options_.trainers));
      }
      client_.push(piece.difference, ids_, piece.rows, out, k.old.dtype(), width);
      begin += piece.rows;
    }
  });
}

void Geo::merge_all() {
  const RunGate::Change change(kept_.empty() ? nullptr : kept_.begin()->second.variable.value->gate().get());
  for (auto& [name, k] : kept_) {
    const Tensor* w = k.variable.value->get<Tensor>();
    if (!w || !(w->shape() == k.old.shape()) || w->dtype() != k.old.dtype()) continue;  // the next exchange says so
    k.variable.sparse ? merge_rows(k) : merge_dense(k);
    k.variable.value->touch();
  }
}

void Geo::merge_dense(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    int64_t at = 0;
    for (const auto& piece : k.variable.pieces) {
      const int64_t n = piece.rows * k.old.row_elems();
      AB_CHECK(client_.take(piece.value, &arrived_) && arrived_.dtype() == k.old.dtype() && arrived_.numel() == n,
               ShapeMismatch, "GEO: the server at {} does not answer with {} numbers of {}",
               piece.value.link->endpoint(), n, k.variable.name);
      take_over(k.variable.value->as<Tensor>().template mutable_data<T>() + at, k.old.mutable_data<T>() + at,
                arrived_.data<T>(), n);
      at += n;
    }
  });
}

void Geo::merge_rows(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = k.old.row_elems();
    T* w = k.variable.value->as<Tensor>().template mutable_data<T>();
    T* old = k.old.mutable_data<T>();
    const bool shared = RowLocks::shared();
    int64_t begin = 0;
    for (const auto& piece : k.variable.pieces) {
      AB_CHECK(client_.take_rows(piece.value, &ids_, &arrived_) && arrived_.dtype() == k.old.dtype() &&
                   arrived_.numel() == static_cast<int64_t>(ids_.size()) * width,
               ShapeMismatch, "GEO: the server at {} does not answer with rows of {}", piece.value.link->endpoint(),
               k.variable.name);
      for (size_t i = 0; i < ids_.size(); ++i) {
        AB_CHECK(ids_[i] >= 0 && ids_[i] < piece.rows, InvalidArgument, "GEO: row {} of a piece of {}, which has {}",
                 ids_[i], k.variable.name, piece.rows);
        const int64_t row = begin + ids_[i], at = row * width;
        const RowLocks::Hold hold(w, row, shared);
        take_over(w + at, old + at, arrived_.data<T>() + static_cast<int64_t>(i) * width, width);
      }
      begin += piece.rows;
    }
  });
}

}  // namespace anabranch::ps
