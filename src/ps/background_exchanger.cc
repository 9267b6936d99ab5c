#include "ps/background_exchanger.h"

#include <algorithm>
#include <future>
#include <utility>

#include "ps/sums.h"

namespace anabranch::ps {

BackgroundExchanger::BackgroundExchanger(Client& client, const BackgroundOptions& options)
    : Exchanger(client), options_(options), messages_(client), threads_(options.threads) {
  AB_CHECK(options.queue >= 1, InvalidArgument, "send_queue_size must be at least 1, got {}", options.queue);
  thread_ = std::thread([this] { work(); });
}

BackgroundExchanger::~BackgroundExchanger() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void BackgroundExchanger::check() const {
  if (error_) std::rethrow_exception(error_);
}

BackgroundExchanger::Pending& BackgroundExchanger::place_for(const Remote& to, std::unique_lock<std::mutex>& lock) {
  Pending& p = pending_[{to.server, to.number}];
  changed_.wait(lock, [&] { return error_ || options_.threads > 0 || p.count < options_.queue; });
  check();
  p.to = to;
  ++gradients_;
  return p;
}

void BackgroundExchanger::push(const Remote& to, const Gradient& gradient, Client::Batch*) {
  {
    std::unique_lock lock(mutex_);
    place_for(to, lock).add(gradient);
  }
  changed_.notify_all();
}

void BackgroundExchanger::Pending::add(const Gradient& gradient) {
  gradient.dense ? add_dense(*gradient.dense) : add_rows(gradient);
  sparse = !gradient.dense;
  ++count;
}

void BackgroundExchanger::Pending::add_dense(const Tensor& gradient) {
  if (count == 0) return dense.copy_from(gradient);
  AB_CHECK(!sparse && dense.shape() == gradient.shape(), ShapeMismatch,
           "all gradients of a variable must have the same shape, got {} and {}", dense.shape().str(),
           gradient.shape().str());
  add_tensor(&dense, static_cast<const char*>(gradient.raw()));
}

void BackgroundExchanger::Pending::add_rows(const Gradient& gradient) {
  const auto& [_, ids, height, from, type, row_elems] = gradient;
  if (count == 0) {
    rows.rows.clear();
    values.clear();
  }
  AB_CHECK(count == 0 || (sparse && dtype == type && width == row_elems), ShapeMismatch,
           "rows of one variable must be alike, got {} of {} after {} of {}", row_elems, dtype_name(type), width,
           dtype_name(dtype));
  rows.height = height;
  dtype = type;
  width = row_elems;
  rows.rows.insert(rows.rows.end(), ids.begin(), ids.end());
  const auto* bytes = static_cast<const char*>(from);
  values.insert(values.end(), bytes, bytes + ids.size() * static_cast<size_t>(width) * dtype_size(dtype));
}

BackgroundExchanger::Taken BackgroundExchanger::take(const Remote& variable, uint64_t* seen, Tensor* out) {
  bool sent = false;
  {
    const std::lock_guard lock(mutex_);
    check();
    Take& t = takes_[{variable.server, variable.number}];
    t.variable = variable;
    ++t.count;
    sent = rounds_ > 0;
  }
  if (client_.newer(variable, seen, out)) return Taken::kNew;
  return sent && *seen == 0 ? Taken::kUnknown : Taken::kNothing;
}

// A variable that steps have taken since its last request is requested with its gradient; if that does not come, with
// those of others.
void BackgroundExchanger::choose_needed() {
  sent_.clear();
  for (const auto& [key, p] : sending_) {
    if (p.count > 0) sent_.emplace_back(key.first, p.to.parameter);
  }
  std::sort(sent_.begin(), sent_.end());
  needed_.clear();
  for (auto& [key, t] : takes_) {
    const auto sent = [&, server = key.first](int parameter) {
      return std::binary_search(sent_.begin(), sent_.end(), std::pair(server, parameter));
    };
    const int parameter = t.variable.parameter;
    const bool now = parameter == 0 || t.count > 1 || sent(parameter) || sent(0);
    const auto any = std::lower_bound(sent_.begin(), sent_.end(), std::pair(key.first, 0));
    if (t.count == 0 || !now || any == sent_.end() || any->first != key.first) continue;
    t.count = 0;
    needed_.push_back(t.variable);
  }
}

void BackgroundExchanger::end_step(Client::Done done) {
  {
    const std::lock_guard lock(mutex_);
    waiting_.push_back(std::move(done));
  }
  changed_.notify_all();
}

void BackgroundExchanger::join(int threads) {
  {
    const std::lock_guard lock(mutex_);
    threads_ += threads;
  }
  changed_.notify_all();
}

// Whether there is something to send.
bool BackgroundExchanger::ready() const {
  if (options_.threads == 0) {
    return std::any_of(pending_.begin(), pending_.end(), [](const auto& p) { return p.second.count > 0; });
  }
  return !waiting_.empty() && static_cast<int>(waiting_.size()) >= threads_;
}

void BackgroundExchanger::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [this] { return over_ || ready(); });
    const bool some = std::any_of(pending_.begin(), pending_.end(), [](const auto& p) { return p.second.count > 0; });
    if (!ready() && !(over_ && some)) return;  // over
    busy_ = true;
    send_round(lock);
    busy_ = false;
    changed_.notify_all();
    if (error_) return;
  }
}

void BackgroundExchanger::send_round(std::unique_lock<std::mutex>& lock) {
  for (auto& [key, p] : pending_) {
    if (p.count > 0) std::swap(p, sending_[key]);
  }
  choose_needed();
  const std::vector<Client::Done> met = std::exchange(waiting_, {});
  changed_.notify_all();
  lock.unlock();
  std::exception_ptr error;
  try {
    fill_messages(sending_);
    std::promise<std::exception_ptr> over;
    messages_.exchange(needed_, [&](std::exception_ptr e) { over.set_value(std::move(e)); });
    error = over.get_future().get();
  } catch (...) {
    error = std::current_exception();
  }
  lock.lock();
  ++rounds_;
  if (error && !error_) error_ = error;
  lock.unlock();
  for (const auto& done : met) done(error);
  lock.lock();
}

void BackgroundExchanger::fill_messages(std::map<Key, Pending>& round) {
  SelectedRows merged;
  for (auto& [key, p] : round) {
    if (p.count == 0) continue;
    if (p.sparse) {
      p.rows.value.view(p.values.data(), Shape{static_cast<int64_t>(p.rows.rows.size()), p.width}, p.dtype,
                        std::shared_ptr<void>(std::shared_ptr<void>(), p.values.data()));
    }
    finish(p);
    if (p.sparse) {
      const SelectedRows* rows = &p.rows;
      if (p.count > 1) {
        merge_rows(p.rows, &merged);
        rows = &merged;
      }
      const Tensor& v = rows->value;
      messages_.push(p.to, {rows->rows, rows->height, v.raw(), v.dtype(), v.row_elems()});
    } else {
      messages_.push(p.to, p.dense);
    }
    p.count = 0;
  }
}

void BackgroundExchanger::finish(Pending& p) const {
  if (!options_.average || p.count < 2) return;
  Tensor& t = p.sparse ? p.rows.value : p.dense;
  visit_dtype(t.dtype(), [&]<class T>(TypeTag<T>) {
    if constexpr (std::is_floating_point_v<T>) {
      const T by = T(1) / static_cast<T>(p.count);
      T* x = t.mutable_data<T>();
      for (int64_t i = 0; i < t.numel(); ++i) x[i] *= by;
    }
  });
}

void BackgroundExchanger::flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return error_ || (!ready() && !busy_); });
  check();
}

Exchanger::Counts BackgroundExchanger::counts() const {
  const std::lock_guard lock(mutex_);
  return {{"gradients", gradients_}, {"rounds", rounds_}};
}

}  // namespace anabranch::ps
