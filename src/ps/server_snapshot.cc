// Snapshots of a server while it handles requests. The server's data about workers is copied at the moment of the cut,
// when the store starts to save itself slice by slice. Other work runs between slices, and no slice holds the lock
// under which requests are handled.
#include "ps/server.h"

namespace anabranch::ps {
namespace {

constexpr std::chrono::seconds kQuiet{30};

}  // namespace

Server::~Server() {
  const std::lock_guard lock(writing_->mutex);
  writing_->server = nullptr;
  writing_->snapshot.reset();
}

// While nothing changes: later acknowledgements go to a new journal.
Server::Snapshot Server::cut() {
  const uint64_t number = history_->begin_snapshot();
  return {number, state(), store_.begin_save()};
}

bool Server::Snapshot::write_slice(History& history) {
  if (!file) {
    file = history.open_snapshot(number);
    for (const auto& record : state) file->put(*record);
  }
  const bool more = values->next([this](const std::string& name, const Tensor& value) {
    Message record(Verb::kExchange);
    record.add_text(name);
    record.add(0, value);
    file->put(record);
  });
  if (!more) history.close_snapshot(*file);
  return more;
}

// Of a server that starts: without it there is none.
void Server::write_first_snapshot() {
  Snapshot first = cut();
  while (first.write_slice(*history_)) {
  }
  ++stats_.snapshots;
}

// `now`: it is on disk when this returns. A snapshot in progress has an older state, and is dropped for it.
void Server::snapshot_if_due(bool now) {
  if (!now && !history_->snapshot_is_due()) return;
  std::unique_lock one(writing_->mutex, std::defer_lock);
  if (now) {
    one.lock();
    writing_->snapshot.reset();
  } else if (!one.try_lock() || writing_->snapshot) {
    return;
  }
  if (!begin_snapshot(now)) return;
  if (options_.timer && !now) return write_later(writing_->snapshot->number);
  while (write_slice()) {
  }
}

void Server::finish_snapshot() {
  const std::lock_guard lock(writing_->mutex);
  while (writing_->snapshot && write_slice()) {
  }
}

bool Server::begin_snapshot(bool now) {
  try {
    const std::lock_guard lock(mutex_);
    if (!now && !history_->snapshot_is_due()) return false;
    writing_->snapshot = std::make_unique<Snapshot>(cut());
    return true;
  } catch (const std::exception& e) {
    end_snapshot(e.what());
  }
  return false;
}

void Server::write_later(uint64_t number) {
  options_.timer->after(Milliseconds(0), [writing = writing_, number] {
    const std::lock_guard lock(writing->mutex);
    if (!writing->server || !writing->snapshot || writing->snapshot->number != number) return;
    if (writing->server->write_slice()) writing->server->write_later(number);
  });
}

bool Server::write_slice() {
  try {
    if (writing_->snapshot->write_slice(*history_)) return true;
    end_snapshot("");
  } catch (const std::exception& e) {
    end_snapshot(e.what());
  }
  return false;
}

// A failed snapshot loses nothing: the journal continues.
void Server::end_snapshot(const std::string& wrong) {
  const std::string which = writing_->snapshot ? fmt::format(" {}", writing_->snapshot->number) : "";
  writing_->snapshot.reset();
  const std::lock_guard lock(mutex_);
  ++(wrong.empty() ? stats_.snapshots : stats_.failed_snapshots);
  if (wrong.empty()) return;
  const TimePoint now = options_.clock->now();
  if (now < quiet_until_) return;  // each update may try again
  quiet_until_ = now + kQuiet;
  options_.history.tell(fmt::format("{} has no snapshot{}: {}", options_.name, which, wrong));
}

}  // namespace anabranch::ps
