// Lookups of rows, and statistics: traffic of each table, and faults of callers.
#include "ps/link_copy.h"
#include "ps/server.h"

namespace anabranch::ps {

// A link, which is of one moment.
MessageRef Server::link(const Message& request) {
  auto out = std::make_shared<Message>(Verb::kTable);
  const auto numbers = request.ids(0);
  if (numbers[0] == static_cast<int64_t>(LinkRequest::kBegin)) {
    const std::unique_lock alone(updating_);
    store_.read_link(request.part(0).variable, numbers, out.get());
  } else {
    store_.read_link(request.part(0).variable, numbers, out.get());
  }
  return out;
}

MessageRef Server::rows(const Message& request, uint64_t round) {
  const Header& h = request.header();
  if (h.verb == Verb::kTable && request.parts() == 1 && request.part(0).kind == PartKind::kIds &&
      request.ids(0).size() > 2) {
    return link(request);
  }
  auto out = std::make_shared<Message>(h.verb);
  out->header().round = round;
  const std::shared_lock reading(updating_);
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind != PartKind::kIds) continue;
    const uint32_t variable = request.part(i).variable;
    const auto ids = request.ids(i);
    if (h.verb == Verb::kTable) {
      AB_CHECK(ids.size() == 2 && ids[0] >= 0 && ids[1] >= 0 && ids[1] < 64, InvalidArgument,
               "a part of a table has a number and bits, trainer {} sends {} numbers", h.client, ids.size());
      store_.read_table(variable, static_cast<uint64_t>(ids[0]), static_cast<int>(ids[1]), out.get());
    } else if (h.flags & Header::kTrains) {
      store_.train_rows(variable, ids, out.get());
    } else {
      store_.read_rows(variable, ids, out.get());
    }
  }
  return out;
}

// From any thread, concurrently. Parts of a table are for any caller, whose number need not be that of a worker.
MessageRef Server::give_rows(const Message& request) {
  const uint32_t sender = request.header().client;
  uint64_t round = 0;
  const auto begun = options_.clock->now();
  Traffic* table = nullptr;  // the last one of the request, which usually has one
  {
    const std::lock_guard lock(mutex_);
    ++stats_.requests;
    if (sender < trainers_.size()) {
      trainers_[sender].heard = begun;
      trainers_[sender].seen = stats_.updates;
    }
    for (int i = 0; i < request.parts(); ++i) {
      if (request.part(i).kind != PartKind::kIds || request.header().verb != Verb::kRows) continue;
      const auto rows = static_cast<int64_t>(request.ids(i).size());
      stats_.rows += rows;
      if (request.part(i).variable >= store_.variables()) continue;
      table = &traffic_[request.part(i).variable];
      ++table->pulls;
      table->rows_pulled += rows;
    }
    round = round_;
  }
  try {
    AB_CHECK(sender < trainers_.size() || request.header().verb == Verb::kTable, InvalidArgument,
             "{} has trainers 0 to {}, got a message of trainer {}", options_.name, trainers_.size() - 1, sender);
    MessageRef found = with_memory(request, [&] { return rows(request, round); });
    const auto took = std::chrono::duration_cast<std::chrono::microseconds>(options_.clock->now() - begun);
    if (table) table->pull_us += took.count();
    return found;
  } catch (const Error& e) {
    const std::lock_guard lock(mutex_);
    ++stats_.refused;
    return refusal(request.header().verb, e);
  }
}

// With the tables of the request and their sizes.
Error Server::no_memory(const Message& request) const {
  std::set<uint32_t> tables;
  for (int i = 0; i < request.parts(); ++i) {
    const Part& p = request.part(i);
    if (p.kind == PartKind::kIds || p.kind == PartKind::kTensor) tables.insert(p.variable);
    if (p.kind != PartKind::kNeeded) continue;
    for (const uint32_t v : request.needed(i)) tables.insert(v);
  }
  std::string held;
  for (const uint32_t v : tables) {
    if (v >= store_.variables()) continue;
    const uint32_t table = store_.table_of(v);
    held += fmt::format("{}{} with {} bytes", held.empty() ? ": it holds " : ", ", store_.name(table),
                        store_.extent(table).bytes);
  }
  return {
      ErrorKind::kResourceExhausted,
      fmt::format("the server at {} has no memory left for a request ({}) of {} bytes of trainer {}{}", options_.name,
                  verb_name(request.header().verb), request.bytes().size(), request.header().client, held)};
}

// An update takes equally long for each of its tables.
void Server::count_pushed(const Message& message, int64_t micros) {
  const Trainer& t = trainers_[message.header().client];
  for (int i = 0; i < message.parts(); ++i) {
    const Part& p = message.part(i);
    if (p.kind != PartKind::kTensor || p.height < 0) continue;
    Traffic& table = traffic_[store_.table_of(p.variable)];
    table.pushed(p.dims[0], stats_.updates - t.seen);
    table.push_us += micros;
  }
}

// The first ones have waited for the last one.
void Server::count_awaited(const Meeting& meeting, uint32_t trainer) {
  const auto waited = options_.clock->now() - meeting.since;
  trainers_[trainer].awaited_us += std::chrono::duration_cast<std::chrono::microseconds>(waited).count();
}

void Server::watch(std::shared_ptr<const rpc::PeerCounts> peers) {
  const std::lock_guard lock(mutex_);
  peers_ = std::move(peers);
}

ServerStats Server::stats_now() const {
  ServerStats s = stats_;
  if (peers_) {
    s.malformed = peers_->malformed.load();
    s.unread = peers_->unread.load();
  }
  return s;
}

ServerStats Server::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_now();
}

MessageRef Server::tell_stats() const {
  const std::lock_guard lock(mutex_);
  auto out = std::make_shared<Message>(Verb::kStats);
  out->header().round = round_;
  std::string tables;
  for (const auto& [number, traffic] : traffic_)
    tables += traffic.line(number, store_.name(number), store_.extent(number));
  std::string trainers;
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (trainers_[t].awaited_us) trainers += fmt::format("trainer {} {}\n", t, trainers_[t].awaited_us);
  }
  const ServerStats s = stats_now();
  out->add_text(tables + trainers + tell_files() +
                fmt::format("requests {}\nrepeated {}\nrefused {}\nmalformed {}\nunread {}\nupdates {}\nrows {}\n"
                            "resumed {}\nlost {}\nsnapshots {}\nfailed_snapshots {}\n",
                            s.requests, s.repeated, s.refused, s.malformed, s.unread, s.updates, s.rows, s.resumed,
                            s.lost, s.snapshots, s.failed_snapshots));
  return out;
}

}  // namespace anabranch::ps
