#include "ps/server.h"

#include <algorithm>

namespace anabranch::ps {

Server::Server(const ServerOptions& options, Store& store)
    : options_(options), store_(store), life_(options.incarnation), job_(options.job), files_(options.file_lease) {
  AB_CHECK(options.trainers >= 1 && options.trainers <= 100000, InvalidArgument,
           "a server needs from 1 to 100000 trainers, got {}", options.trainers);
  writing_->server = this;
  trainers_.resize(static_cast<size_t>(options.trainers));
  step_.came.resize(trainers_.size());
  if (options.history.durability != Durability::kNone) resume();
}

void Server::handle(MessageRef request, Answer answer) {
  const Verb asked = request->header().verb;
  if ((asked == Verb::kRows || asked == Verb::kTable) && request->header().sequence == 0) {
    return answer(give_rows(*request));
  }
  struct Answering {
    std::atomic<int>& count;
    explicit Answering(std::atomic<int>& c) : count(c) { ++count; }
    ~Answering() { --count; }
  } const answering(answering_);
  // An observer is not a worker.
  if (request->header().verb == Verb::kStats && request->header().sequence == 0) return answer(tell_stats());
  Due due;
  uint64_t position = 0;
  int64_t lost = 0, lost_before = 0;
  const bool completes = request->header().verb == Verb::kComplete;
  {
    const std::lock_guard lock(mutex_);
    ++stats_.requests;
    lost_before = stats_.lost;
    const uint32_t sender = request->header().client;
    MessageRef now;
    bool taken = false;  // otherwise the request changes nothing, and says nothing about the current one
    try {
      AB_CHECK(sender < trainers_.size(), InvalidArgument, "{} has trainers 0 to {}, got a message of trainer {}",
               options_.name, trainers_.size() - 1, sender);
      Trainer& trainer = trainers_[sender];
      trainer.heard = options_.clock->now();
      if (request->header().sequence > 0) {
        taken = !repeated(trainer, request, &answer, &due);
        if (taken) {
          now = with_memory(*request, [&] { return dispatch(trainer, request, &due); });
          if (now) end(static_cast<int>(sender), now, &due);
        }
        now = nullptr;
      } else {
        now = with_memory(*request, [&] { return dispatch(trainer, request, &due); });
      }
    } catch (const Error& e) {
      ++stats_.refused;
      now = refusal(request->header().verb, e);
      if (taken) end(static_cast<int>(sender), std::exchange(now, nullptr), &due);
    }
    if (now) due.emplace_back(std::move(answer), std::move(now));
    if (history_ && (request->header().sequence > 0 || request->header().verb == Verb::kHello)) {
      position = history_->position();
    }
    lost = stats_.lost;
  }
  changed_.notify_all();
  // A complete worker does not come back, and a loss is reported once.
  if (history_ && (completes || lost != lost_before)) snapshot_if_due(!history_->keeps_journal());
  give(due, position);
  if (history_) snapshot_if_due(false);
}

// An answer of a server has its incarnation, unlike a failure of the transport.
MessageRef Server::refusal(Verb verb, const Error& error) const {
  auto out = Message::error(verb, error);
  out->header().incarnation = options_.incarnation;
  return out;
}

// An answer acknowledges an operation, which must be durable first.
void Server::give(Due& due, uint64_t position) {
  MessageRef failed;
  if (history_ && !due.empty()) {
    try {
      history_->commit(position);
    } catch (const Error& e) {
      failed = refusal(due[0].second->header().verb, e);
    }
  }
  for (auto& [answer, message] : due) answer(failed ? failed : std::move(message));
}

bool Server::pushes(const Message& request) {
  return request.header().verb == Verb::kExchange && request.parts() > 0 && request.part(0).kind != PartKind::kNeeded;
}

void Server::count_updates(std::span<const MessageRef> messages) {
  for (const auto& m : messages) {
    Trainer& t = trainers_[m->header().client];
    if (pushes(*m) && t.incarnation == m->header().incarnation) ++t.updates;
  }
}

void Server::keep(std::span<const MessageRef> messages) {
  if (!history_) return;
  if (levels_->uniform()) return history_->append(messages);
  std::vector<MessageRef> kept;
  bool flushed = false;
  for (const auto& m : messages) {
    kept.push_back(levels_->kept_of(m));
    flushed |= levels_->flushed(*m);
  }
  history_->append(kept, flushed);
}

// The worker answers the second of these errors with a hello; the reply to it has the details.
void Server::check_known(const Trainer& trainer, const Header& h) const {
  const bool replaced = std::find(trainer.gone.begin(), trainer.gone.end(), h.incarnation) != trainer.gone.end();
  AB_CHECK(!replaced, Unavailable, "another process has taken the place of this trainer {} at {}", h.client,
           options_.name);
  AB_CHECK(h.peer == 0 || h.peer == options_.incarnation, Unavailable,
           "{} was restarted: trainer {} must connect again", options_.name, h.client);
  AB_CHECK(h.incarnation == trainer.incarnation, Unavailable, "trainer {} has not connected to {}", h.client,
           options_.name);
}

// True if the request came before: it gets the same answer, now or later.
bool Server::repeated(Trainer& trainer, const MessageRef& request, Answer* answer, Due* due) {
  const Header& h = request->header();
  check_known(trainer, h);
  if (h.sequence == trainer.sequence) {
    ++stats_.repeated;
    if (trainer.answer_again) trainer.last_answer = answer_once_more(trainer, *request);
    if (trainer.last_answer) {
      due->emplace_back(std::move(*answer), trainer.last_answer);
    } else {
      trainer.waiting = std::move(*answer);  // an earlier caller has given up
    }
    return true;
  }
  AB_CHECK(h.sequence == trainer.sequence + 1 || (trainer.gap && h.sequence > trainer.sequence), InvalidArgument,
           "trainer {} sends request {} to {}, but its last request was {}", h.client, h.sequence, options_.name,
           trainer.sequence);
  AB_CHECK(trainer.last_answer || trainer.answer_again || trainer.sequence == 0, InvalidArgument,
           "trainer {} sends request {} to {} while {} is under way", h.client, h.sequence, options_.name,
           trainer.sequence);
  trainer.sequence = h.sequence;
  trainer.last_answer = nullptr;
  trainer.answer_again = trainer.gap = false;
  trainer.told.clear();
  trainer.waiting = std::move(*answer);
  return false;
}

// The answer of an earlier server was not stored: the variables are sent with their current values.
MessageRef Server::answer_once_more(Trainer& trainer, const Message& request) {
  trainer.answer_again = false;
  return request.header().verb == Verb::kExchange ? answer_to(request)
                                                  : std::make_shared<Message>(request.header().verb);
}

void Server::end(int sender, MessageRef answer, Due* due) {
  Trainer& trainer = trainers_[static_cast<size_t>(sender)];
  trainer.last_answer = answer;
  trainer.done = trainer.sequence;
  if (trainer.waiting) due->emplace_back(std::exchange(trainer.waiting, nullptr), std::move(answer));
}

// The answer, or null if it comes later.
MessageRef Server::dispatch(Trainer& trainer, const MessageRef& request, Due* due) {
  switch (request->header().verb) {
    case Verb::kHello: return hello(trainer, request);
    case Verb::kExchange: return exchange(request, due);
    case Verb::kRows:
    case Verb::kTable: return rows(*request, round_);
    case Verb::kReduce: return reduce(request, due);
    case Verb::kBeat: return std::make_shared<Message>(Verb::kBeat);
    case Verb::kComplete: return complete(trainer, request, due);
    case Verb::kOfferFiles:
    case Verb::kTakeFile:
    case Verb::kEndFile: return files(request);
    case Verb::kStats:
    case Verb::kVerbs: break;
  }
  AB_THROW(Internal, "no handler for the verb {}", verb_name(request->header().verb));
}

// A restarted worker. Changes are no longer sent to its predecessor. This worker gets the changes of the rows it has.
void Server::begin_again(Trainer& trainer, uint64_t incarnation) {
  auto gone = std::move(trainer.gone);
  if (trainer.incarnation) gone.push_back(trainer.incarnation);
  auto changed = std::move(trainer.changed);
  const int64_t awaited_us = trainer.awaited_us;
  trainer = Trainer{};
  trainer.awaited_us = awaited_us;
  trainer.changed = std::move(changed);
  trainer.gone = std::move(gone);
  trainer.incarnation = incarnation;
}

// Otherwise the next server would take an old start for a new one.
void Server::keep_hello(const MessageRef& message) {
  try {
    keep(std::span(&message, 1));
  } catch (const Error&) {  // then nothing is accepted until a snapshot succeeds, which contains it
  }
}

void Server::check_fits(const Message& request) const {
  const Header& h = request.header();
  AB_CHECK(h.version == Header::kVersion, InvalidArgument,
           "trainer {} speaks version {} of the protocol, {} version {}: install the same release of anabranch for all",
           h.client, h.version, options_.name, Header::kVersion);
  if (!(h.flags & Header::kDescribes) || job_.empty()) return;
  Description theirs;
  for (int i = 0; i < request.parts(); ++i) {
    if (request.part(i).kind == PartKind::kText) theirs.emplace_back(request.text(i));
  }
  const std::string differences = differences_of(theirs, job_);
  if (differences.empty()) return;
  const std::string text =
      fmt::format("trainer {} does not fit the server at {}: {}", h.client, options_.name, differences);
  options_.history.tell(text);
  throw Error(ErrorKind::kInvalidArgument, text);
}

// Answered with the numbers of the requested names, and with the server's position.
MessageRef Server::hello(Trainer& trainer, const MessageRef& message) {
  const Message& request = *message;
  const bool describes = request.header().flags & Header::kDescribes;
  check_fits(request);
  std::vector<uint32_t> numbers;
  for (int i = 0; i < request.parts() && !describes; ++i) {
    if (request.part(i).kind == PartKind::kText) numbers.push_back(store_.number(request.text(i)));
  }
  if (const uint64_t incarnation = request.header().incarnation; incarnation != trainer.incarnation) {
    const auto& gone = trainer.gone;
    AB_CHECK(std::find(gone.begin(), gone.end(), incarnation) == gone.end(), InvalidArgument,
             "another process has taken the place of this trainer {} at {}", request.header().client, options_.name);
    keep_hello(message);
    begin_again(trainer, incarnation);
    forget_requests(request.header().client);
    files_.give_up(request.header().client);
    trainer.gap = resumed_;
    trainer.heard = options_.clock->now();
  }
  trainer.deadline = Milliseconds(request.header().round);
  count_lost(trainer, request);
  auto out = std::make_shared<Message>(Verb::kHello);
  out->header().incarnation = options_.incarnation;
  out->header().flags = static_cast<uint8_t>((resumed_ ? Header::kResumed : 0) | (history_ ? Header::kKeeps : 0));
  out->header().acknowledged = life_;
  out->header().sequence = trainer.sequence;
  out->header().round = round_;
  out->header().client = static_cast<uint32_t>(options_.mode);
  const auto trainers = static_cast<uint32_t>(trainers_.size());
  out->add_needed(std::span(&trainers, 1));
  out->add_needed(numbers);
  return out;
}

// Operations that a worker knows to be done, and this server does not have, are lost.
void Server::count_lost(Trainer& trainer, const Message& request) {
  const uint64_t said = request.header().acknowledged;
  if (said <= trainer.updates || !resumed_) return;
  const uint64_t lost = said - trainer.updates;
  stats_.lost += static_cast<int64_t>(lost);
  trainer.updates = said;
  options_.history.tell(
      fmt::format("{} updates of trainer {} that {} had acknowledged are lost: its state is that of an older snapshot",
                  lost, request.header().client, options_.name));
}

bool Server::finished() const {
  const std::lock_guard lock(mutex_);
  return answering_ == 0 &&
         std::all_of(trainers_.begin(), trainers_.end(), [](const Trainer& t) { return t.complete; });
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

}  // namespace anabranch::ps
