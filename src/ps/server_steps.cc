// Requests that combine messages of several workers, and their answers.
#include <algorithm>
#include <iterator>

#include "ps/server.h"

namespace anabranch::ps {
namespace {

constexpr Milliseconds kMostMargin{5000};

}  // namespace

bool Server::all_came(const Meeting& meeting) const {
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (!meeting.came[t] && !trainers_[t].complete) return false;
  }
  return std::any_of(meeting.came.begin(), meeting.came.end(), [](const auto& m) { return m != nullptr; });
}

MessageRef Server::exchange(const MessageRef& request, Due* due) {
  const Header& h = request->header();
  const bool changes = pushes(*request);
  if (!changes || options_.mode != Mode::kSync) {
    if (changes) {
      keep(std::span(&request, 1));
      apply({request});
      count_updates(std::span(&request, 1));
      if (options_.mode == Mode::kGeo) note_rows(*request);
    }
    return answer_to(*request);
  }
  AB_CHECK(h.round == round_, InvalidArgument, "trainer {} sends gradients of step {}, {} is at step {}", h.client,
           h.round, options_.name, round_);
  if (std::none_of(step_.came.begin(), step_.came.end(), [](const auto& m) { return m != nullptr; })) {
    step_.since = options_.clock->now();
  }
  step_.came[h.client] = request;
  step_if_all_came(h.client, due);
  return nullptr;
}

void Server::step_if_all_came(uint32_t last, Due* due) {
  if (!all_came(step_)) return;
  count_awaited(step_, last);
  std::vector<MessageRef> messages;
  for (auto& m : step_.came) {
    if (m) messages.push_back(std::exchange(m, nullptr));
  }
  MessageRef failed;
  try {
    keep(messages);
    apply(messages);
    count_updates(messages);
    next_step();
  } catch (const Error& e) {
    failed = refusal(Verb::kExchange, Error(e.kind(), fmt::format("at the server {}: {}", options_.name, e.what())));
  }
  for (const auto& m : messages) end(static_cast<int>(m->header().client), failed ? failed : answer_to(*m), due);
}

void Server::next_step() {
  ++round_;
  sums_of_step_.clear();
}

// Nothing waits for messages of a worker that was restarted.
void Server::forget_requests(uint32_t trainer) {
  step_.came[trainer] = nullptr;  // the step now belongs to the new one, and waits for it
  for (auto& [name, meeting] : reductions_) meeting.came[trainer] = nullptr;
}

void Server::apply(const std::vector<MessageRef>& messages) {
  with_memory(*messages[0], [&] { apply_now(messages); });
}

void Server::apply_now(const std::vector<MessageRef>& messages) {
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
  const auto begun = options_.clock->now();
  std::vector<Change> changes;
  for (auto& [variable, contributions] : by_variable) {
    changes.push_back(sums_[variable].of(variable, contributions));
  }
  if (changes.empty()) return;
  {
    const std::unique_lock alone(updating_);
    store_.apply(changes);
  }
  const auto took = std::chrono::duration_cast<std::chrono::microseconds>(options_.clock->now() - begun);
  for (const auto& m : messages) count_pushed(*m, took.count());
  ++stats_.updates;
}

// The tables of which a message has rows.
std::vector<uint32_t> Server::tables_of(const Message& request) const {
  std::vector<uint32_t> out;
  for (int i = 0; options_.mode == Mode::kGeo && i < request.parts(); ++i) {
    const Part& p = request.part(i);
    if (p.kind == PartKind::kTensor && p.height >= 0) out.push_back(store_.table_of(p.variable));
  }
  return out;
}

// GEO: each worker gets the rows that have changed since its last request.
void Server::note_rows(const Message& request) {
  for (int i = 1; i < request.parts(); ++i) {
    const Part& p = request.part(i);
    if (p.kind != PartKind::kTensor || p.height < 0) continue;
    const uint32_t table = store_.table_of(p.variable);
    const std::vector<int64_t> told = store_.take_told(table);
    for (Trainer& t : trainers_) {
      if (t.complete) continue;  // it does not come back
      t.changed[table].add(request.ids(i - 1));
      t.changed[table].add(told);
    }
  }
}

// The variables that a request asks for; in GEO, of tables of which it has rows, the changed ones.
MessageRef Server::answer_to(const Message& request) {
  try {
    return with_memory(request, [&] { return variables_for(request); });
  } catch (const Error& e) {
    return refusal(Verb::kExchange, e);
  }
}

MessageRef Server::variables_for(const Message& request) {
  auto out = std::make_shared<Message>(Verb::kExchange);
  out->header().round = round_;
  trainers_[request.header().client].seen = stats_.updates;
  const std::vector<uint32_t> tables = tables_of(request);
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind != PartKind::kNeeded) continue;
    for (const uint32_t v : request.needed(i)) {
      if (std::find(tables.begin(), tables.end(), v) == tables.end()) {
        store_.read(v, out.get());
        continue;
      }
      Trainer& t = trainers_[request.header().client];
      IdSet& told = t.told[v];
      told.add(t.changed[v].ids());
      t.changed[v].clear();
      store_.read_changed(v, told.ids(), out.get());
    }
  }
  return out;
}

Server::SumName::SumName(const Message& request) {
  AB_CHECK(request.parts() >= 1 && request.part(0).kind == PartKind::kText, InvalidArgument,
           "a reduction has a name, this one of trainer {} has none", request.header().client);
  name = request.text(0);
  if (request.header().flags & Header::kOfStep) step = request.header().round;
}

MessageRef Server::reduce(const MessageRef& request, Due* due) {
  const SumName name(*request);
  // The contribution of the worker before its restart is in the sum that the others have.
  if (const auto known = sums_of_step_.find(name); known != sums_of_step_.end()) return known->second;
  Meeting& meeting = reductions_[name];
  if (meeting.came.empty()) {
    meeting.came.resize(trainers_.size());
    meeting.since = options_.clock->now();
  }
  meeting.came[request->header().client] = request;
  reduce_if_all_came(name, request->header().client, due);
  return nullptr;
}

void Server::reduce_if_all_came(const SumName& name, uint32_t last, Due* due) {
  const auto it = reductions_.find(name);
  if (it == reductions_.end() || !all_came(it->second)) return;
  count_awaited(it->second, last);
  const Meeting meeting = std::move(it->second);
  reductions_.erase(it);
  MessageRef answer;
  try {
    std::vector<MessageRef> came;
    std::copy_if(meeting.came.begin(), meeting.came.end(), std::back_inserter(came),
                 [](const auto& m) { return m != nullptr; });
    keep(came);
    answer = with_memory(*came[0], [&] { return sum_of(meeting); });
    if (name.step) sums_of_step_[name] = answer;
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

MessageRef Server::complete(Trainer& trainer, const MessageRef& request, Due* due) {
  keep(std::span(&request, 1));
  trainer.complete = true;
  const uint32_t sender = request->header().client;
  files_.give_up(sender);
  step_if_all_came(sender, due);
  std::vector<SumName> names;
  for (const auto& [name, meeting] : reductions_) names.push_back(name);
  for (const auto& name : names) reduce_if_all_came(name, sender, due);
  return std::make_shared<Message>(Verb::kComplete);
}

void Server::tick() {
  Due due;
  {
    const std::lock_guard lock(mutex_);
    give_up(step_, fmt::format("step {} of sync training", round_), &due);
    for (auto it = reductions_.begin(); it != reductions_.end();) {
      const auto& [name, step] = it->first;
      const std::string when = step ? fmt::format(" at step {}", *step) : "";
      give_up(it->second, fmt::format("the sum {}{} over trainers", name, when), &due);
      const bool empty =
          std::none_of(it->second.came.begin(), it->second.came.end(), [](auto& m) { return m != nullptr; });
      it = empty ? reductions_.erase(it) : std::next(it);
    }
  }
  give(due, 0);
}

// A server answers before its workers give up, because they do not know which workers are missing.
Milliseconds Server::patience_of(const Meeting& meeting) const {
  Milliseconds least = options_.patience;
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (meeting.came[t] && trainers_[t].deadline.count() > 0) least = std::min(least, trainers_[t].deadline);
  }
  return least - std::min(least / 5, kMostMargin);
}

// A worker that waits too long for others gets their names, and the meeting starts over.
void Server::give_up(Meeting& meeting, const std::string& what, Due* due) {
  const TimePoint now = options_.clock->now();
  if (std::none_of(meeting.came.begin(), meeting.came.end(), [](const auto& m) { return m != nullptr; })) return;
  if (now - meeting.since < patience_of(meeting)) return;
  std::string missing;
  for (size_t t = 0; t < trainers_.size(); ++t) {
    if (meeting.came[t] || trainers_[t].complete) continue;
    count_awaited(meeting, static_cast<uint32_t>(t));
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

}  // namespace anabranch::ps
