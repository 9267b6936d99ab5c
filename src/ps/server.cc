#include "ps/server.h"

#include <algorithm>

namespace anabranch::ps {

Server::Server(const ServerOptions& options, Store& store) : options_(options), store_(store) {
  AB_CHECK(options.trainers >= 1 && options.trainers <= 100000, InvalidArgument,
           "a server needs from 1 to 100000 trainers, got {}", options.trainers);
  trainers_.resize(static_cast<size_t>(options.trainers));
  step_.came.resize(trainers_.size());
}

void Server::handle(MessageRef request, Answer answer) {
  Due due;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.requests;
    const uint32_t who = request->header().client;
    MessageRef now;
    try {
      AB_CHECK(who < trainers_.size(), InvalidArgument, "{} has trainers 0 to {}, got a message of trainer {}",
               options_.name, trainers_.size() - 1, who);
      Trainer& trainer = trainers_[who];
      trainer.heard = options_.clock->now();
      if (request->header().sequence > 0) {
        if (!repeated(trainer, request, &answer, &due)) {
          if ((now = dispatch(trainer, request, &due))) end(static_cast<int>(who), now, &due);
        }
        now = nullptr;
      } else {
        now = dispatch(trainer, request, &due);
      }
    } catch (const Error& e) {
      ++stats_.refused;
      now = refusal(request->header().verb, e);
      if (who < trainers_.size() && request->header().sequence > 0 &&
          trainers_[who].sequence == request->header().sequence && trainers_[who].waiting) {
        end(static_cast<int>(who), std::exchange(now, nullptr), &due);
      }
    }
    if (now) due.emplace_back(std::move(answer), std::move(now));
  }
  changed_.notify_all();
  give(due);
}

// An answer of a server names its incarnation, which tells it from a failure of the transport.
MessageRef Server::refusal(Verb verb, const Error& error) const {
  auto out = Message::error(verb, error);
  out->header().incarnation = options_.incarnation;
  return out;
}

void Server::give(Due& due) {
  for (auto& [answer, message] : due) answer(std::move(message));
}

// True when the request came before: it is answered as it was, or will be.
bool Server::repeated(Trainer& trainer, const MessageRef& request, Answer* answer, Due* due) {
  const Header& h = request->header();
  AB_CHECK(h.incarnation == trainer.incarnation, Unavailable,
           "trainer {} has not said hello to {} since it was started", h.client, options_.name);
  AB_CHECK(h.peer == 0 || h.peer == options_.incarnation, Unavailable,
           "{} was started again: trainer {} has to say hello", options_.name, h.client);
  if (h.sequence == trainer.sequence) {
    ++stats_.repeated;
    if (trainer.last_answer) {
      due->emplace_back(std::move(*answer), trainer.last_answer);
    } else {
      trainer.waiting = std::move(*answer);  // whoever waited before has given up
    }
    return true;
  }
  AB_CHECK(h.sequence == trainer.sequence + 1, InvalidArgument,
           "trainer {} sends request {} to {}, whose last one was {}", h.client, h.sequence, options_.name,
           trainer.sequence);
  AB_CHECK(trainer.last_answer || trainer.sequence == 0, InvalidArgument,
           "trainer {} sends request {} to {} while {} is under way", h.client, h.sequence, options_.name,
           trainer.sequence);
  trainer.sequence = h.sequence;
  trainer.last_answer = nullptr;
  trainer.waiting = std::move(*answer);
  return false;
}

void Server::end(int who, MessageRef answer, Due* due) {
  Trainer& trainer = trainers_[static_cast<size_t>(who)];
  trainer.last_answer = answer;
  if (trainer.waiting) due->emplace_back(std::exchange(trainer.waiting, nullptr), std::move(answer));
}

// The answer, or null when it comes later.
MessageRef Server::dispatch(Trainer& trainer, const MessageRef& request, Due* due) {
  switch (request->header().verb) {
    case Verb::kHello: return hello(trainer, *request);
    case Verb::kExchange: return exchange(request, due);
    case Verb::kRows: return rows(*request);
    case Verb::kReduce: return reduce(request, due);
    case Verb::kBeat: return std::make_shared<Message>(Verb::kBeat);
    case Verb::kComplete: return complete(trainer, due);
    case Verb::kStats: return tell_stats();
    case Verb::kVerbs: break;
  }
  AB_THROW(Internal, "no handler for the verb {}", verb_name(request->header().verb));
}

// Answered with the numbers of the names that are asked for, and with where the server stands.
MessageRef Server::hello(Trainer& trainer, const Message& request) {
  std::vector<uint32_t> numbers;
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind == PartKind::kText) numbers.push_back(store_.number(request.text(i)));
  }
  if (request.header().incarnation != trainer.incarnation) {
    trainer = Trainer{};
    trainer.incarnation = request.header().incarnation;
    trainer.heard = options_.clock->now();
  }
  auto out = std::make_shared<Message>(Verb::kHello);
  out->header().incarnation = options_.incarnation;
  out->header().sequence = trainer.sequence;
  out->header().round = round_;
  out->header().client = static_cast<uint32_t>(options_.mode);
  const auto trainers = static_cast<uint32_t>(trainers_.size());
  out->add_wanted(std::span(&trainers, 1));
  out->add_wanted(numbers);
  return out;
}

bool Server::all_came(const Meeting& meeting) const {
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (!meeting.came[t] && !trainers_[t].complete) return false;
  }
  return std::any_of(meeting.came.begin(), meeting.came.end(), [](const auto& m) { return m != nullptr; });
}

MessageRef Server::exchange(const MessageRef& request, Due* due) {
  const Header& h = request->header();
  const bool pushes = request->parts() > 0 && request->part(0).kind != PartKind::kWanted;
  if (!pushes || options_.mode != Mode::kSync) {
    if (pushes) apply({request});
    if (pushes && options_.mode == Mode::kGeo) note_rows(*request);
    return answer_to(*request);
  }
  AB_CHECK(h.round == round_, InvalidArgument, "trainer {} sends gradients of step {}, {} is at step {}", h.client,
           h.round, options_.name, round_);
  if (std::none_of(step_.came.begin(), step_.came.end(), [](const auto& m) { return m != nullptr; })) {
    step_.since = options_.clock->now();
  }
  step_.came[h.client] = request;
  step_if_all_came(due);
  return nullptr;
}

void Server::step_if_all_came(Due* due) {
  if (!all_came(step_)) return;
  std::vector<MessageRef> messages;
  for (auto& m : step_.came) {
    if (m) messages.push_back(std::exchange(m, nullptr));
  }
  MessageRef failed;
  try {
    apply(messages);
    ++round_;
  } catch (const Error& e) {
    failed = refusal(Verb::kExchange, Error(e.kind(), fmt::format("at the server {}: {}", options_.name, e.what())));
  }
  for (const auto& m : messages) end(static_cast<int>(m->header().client), failed ? failed : answer_to(*m), due);
}

void Server::apply(const std::vector<MessageRef>& messages) {
  std::map<uint32_t, std::vector<Contribution>> by_variable;
  for (const auto& m : messages) {
    for (int i = 0; i < m->parts(); ++i) {
      const Part& p = m->part(i);
      if (p.kind != PartKind::kTensor) continue;
      const bool sparse = p.height >= 0;
      AB_CHECK(!sparse || (i > 0 && m->part(i - 1).kind == PartKind::kIds && p.rank > 0 &&
                           static_cast<int64_t>(m->ids(i - 1).size()) == p.dims[0]),
               InvalidArgument, "part {} of a message of trainer {} has rows without an id for each", i,
               m->header().client);
      by_variable[p.variable].push_back({m, i, sparse});
    }
  }
  std::vector<Change> changes;
  for (auto& [variable, contributions] : by_variable) {
    changes.push_back(sums_[variable].of(variable, contributions));
  }
  if (changes.empty()) return;
  store_.apply(changes);
  ++stats_.updates;
}

// The tables of which a message brings rows.
std::vector<uint32_t> Server::tables_of(const Message& request) const {
  std::vector<uint32_t> out;
  for (int i = 0; options_.mode == Mode::kGeo && i < request.parts(); ++i) {
    const Part& p = request.part(i);
    if (p.kind == PartKind::kTensor && p.height >= 0) out.push_back(store_.table_of(p.variable));
  }
  return out;
}

// GEO: each trainer hears of the rows that have changed since it last asked.
void Server::note_rows(const Message& request) {
  for (int i = 1; i < request.parts(); ++i) {
    const Part& p = request.part(i);
    if (p.kind != PartKind::kTensor || p.height < 0) continue;
    for (Trainer& t : trainers_) t.changed[store_.table_of(p.variable)].add(request.ids(i - 1));
  }
}

// The variables that a request wants; in GEO of tables of which it brings rows those that have changed.
MessageRef Server::answer_to(const Message& request) {
  auto out = std::make_shared<Message>(Verb::kExchange);
  out->header().round = round_;
  const std::vector<uint32_t> tables = tables_of(request);
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind != PartKind::kWanted) continue;
    for (const uint32_t v : request.wanted(i)) {
      if (std::find(tables.begin(), tables.end(), v) == tables.end()) {
        store_.read(v, out.get());
        continue;
      }
      IdSet& changed = trainers_[request.header().client].changed[v];
      out->add_ids(v, changed.ids());
      store_.read_rows(v, changed.ids(), out.get());
      changed.clear();
    }
  }
  return out;
}

MessageRef Server::rows(const Message& request) {
  auto out = std::make_shared<Message>(Verb::kRows);
  out->header().round = round_;
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind != PartKind::kIds) continue;
    store_.read_rows(request.part(i).variable, request.ids(i), out.get());
    stats_.rows += static_cast<int64_t>(request.ids(i).size());
  }
  return out;
}

MessageRef Server::reduce(const MessageRef& request, Due* due) {
  AB_CHECK(request->parts() >= 1 && request->part(0).kind == PartKind::kText, InvalidArgument,
           "a reduction has a name, this one of trainer {} has none", request->header().client);
  const std::string name(request->text(0));
  Meeting& meeting = reductions_[name];
  if (meeting.came.empty()) {
    meeting.came.resize(trainers_.size());
    meeting.since = options_.clock->now();
  }
  meeting.came[request->header().client] = request;
  reduce_if_all_came(name, due);
  return nullptr;
}

void Server::reduce_if_all_came(const std::string& name, Due* due) {
  const auto it = reductions_.find(name);
  if (it == reductions_.end() || !all_came(it->second)) return;
  const Meeting meeting = std::move(it->second);
  reductions_.erase(it);
  MessageRef answer;
  try {
    answer = sum_of(meeting);
  } catch (const Error& e) {
    answer = refusal(Verb::kReduce, e);
  }
  for (size_t t = 0; t < meeting.came.size(); ++t) {
    if (meeting.came[t]) end(static_cast<int>(t), answer, due);
  }
}

MessageRef Server::sum_of(const Meeting& meeting) const {
  std::vector<Contribution> all;
  for (const auto& m : meeting.came) {
    if (!m || m->parts() < 2) continue;
    AB_CHECK(m->part(1).kind == PartKind::kTensor, InvalidArgument, "trainer {} gives no array to a reduction",
             m->header().client);
    all.push_back({m, 1, false});
  }
  auto out = std::make_shared<Message>(Verb::kReduce);
  if (!all.empty()) {
    Sum sum;
    out->add(0, sum.of(0, all).dense);
  }
  return out;
}

MessageRef Server::complete(Trainer& trainer, Due* due) {
  trainer.complete = true;
  step_if_all_came(due);
  std::vector<std::string> names;
  for (const auto& [name, meeting] : reductions_) names.push_back(name);
  for (const auto& name : names) reduce_if_all_came(name, due);
  return std::make_shared<Message>(Verb::kComplete);
}

MessageRef Server::tell_stats() const {
  auto out = std::make_shared<Message>(Verb::kStats);
  out->header().round = round_;
  out->add_text(fmt::format("requests {}\nrepeated {}\nrefused {}\nupdates {}\nrows {}\n", stats_.requests,
                            stats_.repeated, stats_.refused, stats_.updates, stats_.rows));
  return out;
}

void Server::tick() {
  Due due;
  {
    const std::lock_guard lock(mutex_);
    give_up(step_, fmt::format("step {} of sync training", round_), &due);
    for (auto it = reductions_.begin(); it != reductions_.end();) {
      give_up(it->second, fmt::format("the sum {} over trainers", it->first), &due);
      const bool empty =
          std::none_of(it->second.came.begin(), it->second.came.end(), [](auto& m) { return m != nullptr; });
      it = empty ? reductions_.erase(it) : std::next(it);
    }
  }
  give(due);
}

// Who waits too long for other trainers hears for whom, and the meeting begins anew.
void Server::give_up(Meeting& meeting, const std::string& what, Due* due) {
  const TimePoint now = options_.clock->now();
  if (std::none_of(meeting.came.begin(), meeting.came.end(), [](const auto& m) { return m != nullptr; })) return;
  if (now - meeting.since < options_.patience) return;
  std::string missing;
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (meeting.came[t] || trainers_[t].complete) continue;
    const bool known = trainers_[t].heard != TimePoint{};
    const auto silent = std::chrono::duration_cast<std::chrono::seconds>(now - trainers_[t].heard).count();
    missing += fmt::format("{}trainer {} ({})", missing.empty() ? "" : ", ", t,
                           known ? fmt::format("last heard {} s ago", silent) : "never heard");
  }
  const double waited = std::chrono::duration<double>(now - meeting.since).count();
  const Error error(ErrorKind::kUnavailable,
                    fmt::format("{} at {} has waited {:.0f} s for {}", what, options_.name, waited, missing));
  for (size_t t = 0; t < meeting.came.size(); ++t) {
    if (const MessageRef m = std::exchange(meeting.came[t], nullptr)) {
      end(static_cast<int>(t), refusal(m->header().verb, error), due);
    }
  }
}

bool Server::finished() const {
  const std::lock_guard lock(mutex_);
  return std::all_of(trainers_.begin(), trainers_.end(), [](const Trainer& t) { return t.complete; });
}

void Server::wait_finished(const std::function<bool()>& stop, Milliseconds look) {
  while (!finished() && !stop()) {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, look);
    }
    tick();
  }
}

ServerStats Server::stats() const {
  const std::lock_guard lock(mutex_);
  return stats_;
}

}  // namespace anabranch::ps
