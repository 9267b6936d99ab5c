// Takes differences from parameters for an exchange, and applies the answers.
#include <algorithm>
#include <cstring>
#include <future>
#include <numeric>

#include "base/run_gate.h"
#include "core/host_copy.h"
#include "core/row_locks.h"
#include "ps/geo.h"

namespace anabranch::ps {
namespace {

constexpr size_t kFetchBytes = 1 << 20;

template <class Fn> void with_floats(DType dtype, Fn&& fn) {
  if (dtype == DType::kFloat32) return fn(float{});
  if (dtype == DType::kFloat64) return fn(double{});
  AB_THROW(Unsupported, "GEO training of a parameter of {}", dtype_name(dtype));
}

// Takes the share of n numbers to send, which is then no longer new.
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

void Geo::fetch_tables() {
  for (auto& [name, k] : kept_) {
    if (!k.variable.sparse) continue;
    const RunGate::Change change(k.variable.value->gate().get());
    const Tensor* w = k.variable.value->get<Tensor>();
    AB_CHECK(w && w->initialized(), NotFound, "GEO: {} was never written: run the trainer's startup program first",
             name);
    AB_CHECK(w->rows() == rows_of(k), ShapeMismatch, "GEO: {} has {} rows here, its shards on servers have {}", name,
             w->rows(), rows_of(k));
    Tensor& table = k.variable.value->as<Tensor>();
    bring_to_host(table);
    int64_t first = 0;
    for (size_t shard = 0; shard < k.variable.shards.size(); ++shard) {
      fetch_shard(k.variable, shard, &table, first);
      first += k.variable.shards[shard].rows;
    }
    k.variable.value->touch();
  }
  if (tables_.empty()) return;
  const RunGate::Change change(gate());
  for (GeoTable& table : tables_) table.fetch();
}

// In parts: a table may be larger than the largest message.
void Geo::fetch_shard(const GeoVariable& variable, size_t shard, Tensor* table, int64_t first) {
  const GeoVariable::Shard& from = variable.shards[shard];
  const size_t row_bytes = static_cast<size_t>(table->row_elems()) * dtype_size(table->dtype());
  const int64_t most = static_cast<int64_t>(kFetchBytes / std::max<size_t>(row_bytes, 1)) + 1;
  auto* to = static_cast<char*>(table->mutable_raw()) + static_cast<size_t>(first) * row_bytes;
  for (int64_t row = 0; row < from.rows; row += most) {
    ids_.resize(static_cast<size_t>(std::min(most, from.rows - row)));
    std::iota(ids_.begin(), ids_.end(), row);
    std::promise<MessageRef> come;
    client_.rows(from.value, ids_, [&](MessageRef answer) { come.set_value(std::move(answer)); });
    const MessageRef answer = come.get_future().get();  // requests have deadlines
    answer->throw_if_error();
    const size_t bytes = ids_.size() * row_bytes;
    AB_CHECK(answer->parts() == 1 && answer->part(0).kind == PartKind::kTensor && answer->part(0).bytes == bytes &&
                 answer->part(0).dtype == static_cast<uint8_t>(table->dtype()),
             ShapeMismatch, "GEO: the server at {} does not answer with {} rows of {}", from.value.link->endpoint(),
             ids_.size(), variable.name);
    std::memcpy(to + static_cast<size_t>(row) * row_bytes, answer->payload(0), bytes);
  }
}

// Counts only steps whose changes are complete: no thread is inside a step.
void Geo::take_noted() {
  const std::lock_guard lock(mutex_);
  since_ = 0;
  for (auto& [name, k] : kept_) {
    k.sending.clear();
    k.sending.swap(k.noted);
    rows_ += static_cast<int64_t>(k.sending.ids().size());
  }
}

void Geo::check_shape(const Kept& k) const {
  const Tensor* w = k.variable.value->get<Tensor>();
  AB_CHECK(w && w->shape() == k.old.shape() && w->dtype() == k.old.dtype(), ShapeMismatch,
           "GEO: {} was {} {} when training started, and has changed since", k.variable.name, dtype_name(k.old.dtype()),
           k.old.shape().str());
}

// Visits all rows, at the cost of reading them; exchanges are rare.
void Geo::note_moved(Kept& k) {
  const size_t bytes = static_cast<size_t>(k.old.row_elems()) * dtype_size(k.old.dtype());
  const auto* now = static_cast<const char*>(k.variable.value->tensor().raw());
  const auto* old = static_cast<const char*>(k.old.raw());
  ids_.clear();
  for (int64_t row = 0; row < k.old.rows(); ++row, now += bytes, old += bytes) {
    if (std::memcmp(now, old, bytes) != 0) ids_.push_back(row);
  }
  const std::lock_guard lock(mutex_);
  k.noted.add(ids_);
}

void Geo::send_all() {
  const RunGate::Change change(gate());
  for (auto& [name, k] : kept_) {
    check_shape(k);
    bring_to_host(k.variable.value->as<Tensor>());
    if (k.variable.sparse && k.variable.moves_all) note_moved(k);
  }
  take_noted();
  for (auto& [name, k] : kept_) {
    k.variable.sparse ? send_rows(k) : send_dense(k);
  }
  for (GeoTable& table : tables_) {
    const int64_t rows = table.send(options_.trainers);
    const std::lock_guard lock(mutex_);
    rows_ += rows;
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
    for (const auto& shard : k.variable.shards) {
      Shape shape = k.old.shape();
      if (shape.rank() > 0) shape.set(0, shard.rows);
      Tensor part;
      part.view(out, shape, k.old.dtype(), std::shared_ptr<void>(std::shared_ptr<void>(), out));
      client_.push(shard.difference, part);
      out += shard.rows * width;
    }
  });
}

// A server is sent its shard even if none of its rows was looked up, because it has changes of others.
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
    for (const auto& shard : k.variable.shards) {
      ids_.clear();
      for (; next < all.size() && all[next] < begin + shard.rows; ++next) ids_.push_back(all[next] - begin);
      buffer_.resize(ids_.size() * static_cast<size_t>(width) * sizeof(T));
      T* out = reinterpret_cast<T*>(buffer_.data());
      for (size_t i = 0; i < ids_.size(); ++i) {
        const int64_t row = begin + ids_[i], at = row * width;
        const RowLocks::Hold hold(w, row, shared);
        take_difference(w + at, old + at, out + static_cast<int64_t>(i) * width, width,
                        static_cast<T>(options_.trainers));
      }
      client_.push(shard.difference, {ids_, shard.rows, out, k.old.dtype(), width});
      begin += shard.rows;
    }
  });
}

void Geo::merge_all() {
  const RunGate::Change change(gate());
  for (GeoTable& table : tables_) table.merge();
  for (auto& [name, k] : kept_) {
    const Tensor* w = k.variable.value->get<Tensor>();
    if (!w || !(w->shape() == k.old.shape()) || w->dtype() != k.old.dtype()) continue;  // the next exchange reports it
    bring_to_host(k.variable.value->as<Tensor>());
    k.variable.sparse ? merge_rows(k) : merge_dense(k);
    k.variable.value->touch();
  }
}

void Geo::merge_dense(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    int64_t at = 0;
    for (const auto& shard : k.variable.shards) {
      const int64_t n = shard.rows * k.old.row_elems();
      AB_CHECK(client_.take(shard.value, &arrived_) && arrived_.dtype() == k.old.dtype() && arrived_.numel() == n,
               ShapeMismatch, "GEO: the server at {} does not answer with {} numbers of {}",
               shard.value.link->endpoint(), n, k.variable.name);
      take_over(k.variable.value->as<Tensor>().mutable_data<T>() + at, k.old.mutable_data<T>() + at, arrived_.data<T>(),
                n);
      at += n;
    }
  });
}

void Geo::merge_rows(Kept& k) {
  with_floats(k.old.dtype(), [&](auto zero) {
    using T = decltype(zero);
    const int64_t width = k.old.row_elems();
    T* w = k.variable.value->as<Tensor>().mutable_data<T>();
    T* old = k.old.mutable_data<T>();
    const bool shared = RowLocks::shared();
    int64_t begin = 0;
    for (const auto& shard : k.variable.shards) {
      AB_CHECK(client_.take_rows(shard.value, &ids_, &arrived_) && arrived_.dtype() == k.old.dtype() &&
                   arrived_.numel() == static_cast<int64_t>(ids_.size()) * width,
               ShapeMismatch, "GEO: the server at {} does not answer with rows of {}", shard.value.link->endpoint(),
               k.variable.name);
      for (size_t i = 0; i < ids_.size(); ++i) {
        AB_CHECK(ids_[i] >= 0 && ids_[i] < shard.rows, InvalidArgument, "GEO: row {} of a shard of {}, which has {}",
                 ids_[i], k.variable.name, shard.rows);
        const int64_t row = begin + ids_[i], at = row * width;
        const RowLocks::Hold hold(w, row, shared);
        take_over(w + at, old + at, arrived_.data<T>() + static_cast<int64_t>(i) * width, width);
      }
      begin += shard.rows;
    }
  });
}

}  // namespace anabranch::ps
