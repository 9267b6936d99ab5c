// A server on disk: what it writes, and how another one resumes from it.
//
// A snapshot has a record for the server (verb stats), one for each worker (hello: its incarnation, the last finished
// request, the number of its pushes in the store), one for each queue of files and one for each variable (exchange). So
// the store's contents and the requests that led to them are written together: a request that is repeated after a
// restart is recognized.

#include "ps/server.h"

namespace anabranch::ps {

namespace {

std::vector<uint64_t> incarnations_in(std::span<const uint32_t> halves) {
  std::vector<uint64_t> out;
  for (size_t i = 0; i + 1 < halves.size(); i += 2) out.push_back(uint64_t{halves[i]} << 32 | halves[i + 1]);
  return out;
}

}  // namespace

std::shared_ptr<Message> Server::state_of(uint32_t trainer) const {
  const Trainer& t = trainers_[trainer];
  auto m = std::make_shared<Message>(Verb::kHello);
  Header& h = m->header();
  h.client = trainer;
  h.incarnation = t.incarnation;
  h.sequence = t.done;
  h.acknowledged = t.updates;
  h.round = t.complete ? 1 : 0;
  // Variables can be sent again; sums, files and errors cannot.
  const bool kept = t.last_answer && t.done == t.sequence &&
                    (t.last_answer->header().error || t.last_answer->header().verb == Verb::kReduce ||
                     is_about_files(t.last_answer->header().verb));
  const auto bytes = kept ? t.last_answer->bytes() : std::span<const char>();
  // Before the text the rows that the worker does not have, after it those in its last answer; last its earlier
  // incarnations, each in two halves.
  const auto add_rows = [&](const std::map<uint32_t, IdSet>& tables) {
    for (const auto& [table, ids] : tables) {
      IdSet copy = ids;
      m->add_ids(table, copy.ids());
    }
  };
  add_rows(t.changed);
  m->add_text({bytes.data(), bytes.size()});
  add_rows(t.told);
  std::vector<uint32_t> halves;
  for (const uint64_t incarnation : t.gone) {
    halves.push_back(static_cast<uint32_t>(incarnation >> 32));
    halves.push_back(static_cast<uint32_t>(incarnation));
  }
  if (!halves.empty()) m->add_needed(halves);
  return m;
}

Server::State Server::state() const {
  State out;
  auto head = std::make_shared<Message>(Verb::kStats);
  head->header().round = round_;
  head->header().sequence = trainers_.size();
  head->header().client = static_cast<uint32_t>(options_.mode);
  head->header().incarnation = life_;
  for (const std::string& line : job_) head->add_text(line);
  out.push_back(std::move(head));
  for (uint32_t t = 0; t < trainers_.size(); ++t) out.push_back(state_of(t));
  files_.save([&](std::shared_ptr<Message> m) { out.push_back(std::move(m)); });
  return out;
}

void Server::load_trainer(const Message& record) {
  const Header& h = record.header();
  if (h.client >= trainers_.size()) return;  // there are fewer now
  Trainer& t = trainers_[h.client];
  t.incarnation = h.incarnation;
  t.sequence = t.done = h.sequence;
  t.updates = h.acknowledged;
  t.complete = h.round != 0;
  t.answer_again = t.gap = true;
  auto* rows = &t.changed;
  for (int i = 0; i < record.parts(); ++i) {
    const Part& p = record.part(i);
    if (p.kind == PartKind::kIds) (*rows)[p.variable].add(record.ids(i));
    if (p.kind == PartKind::kNeeded) t.gone = incarnations_in(record.needed(i));
    if (p.kind != PartKind::kText) continue;
    rows = &t.told;
    if (p.bytes == 0) continue;
    const auto copy = std::make_shared<const std::string>(record.text(i));
    t.last_answer = Message::parse(std::shared_ptr<const char>(copy, copy->data()), copy->size());
    t.answer_again = false;
  }
}

// The number of workers may change between two lives of a server, its program may not.
void Server::load_head(const Message& record) {
  round_ = record.header().round;
  if (record.header().incarnation) life_ = record.header().incarnation;
  Description there;
  for (int i = 0; i < record.parts(); ++i) there.emplace_back(record.text(i));
  if (there.empty()) return;
  if (job_.empty()) job_ = there;
  const std::string differences = differences_of(without_counts(there), without_counts(job_));
  AB_CHECK(differences.empty(), InvalidArgument,
           "the state in {} belongs to another job: {} in this one; choose another folder, or remove it",
           options_.history.folder, differences);
}

void Server::load(const MessageRef& record, std::set<std::string>* variables) {
  const Header& h = record->header();
  if (h.verb == Verb::kStats) {
    AB_CHECK(h.client == static_cast<uint32_t>(options_.mode), InvalidArgument,
             "the state in {} is of distributed_mode {}, the server's program has {}", options_.history.folder,
             h.client, static_cast<int>(options_.mode));
    load_head(*record);
  } else if (h.verb == Verb::kHello) {
    load_trainer(*record);
  } else if (h.verb == Verb::kOfferFiles) {
    files_.load(*record, options_.clock->now());
  } else {
    AB_CHECK(
        record->parts() == 2 && record->part(0).kind == PartKind::kText && record->part(1).kind == PartKind::kTensor,
        InvalidArgument, "the state in {} has a record that is not a variable", options_.history.folder);
    const std::string name(record->text(0));
    store_.load(name, Message::tensor(record, 1));
    variables->insert(name);
  }
}

// As it was done originally, except for the answers.
void Server::replay(const std::vector<MessageRef>& messages) {
  for (const auto& m : messages) {
    if (m->header().client >= trainers_.size()) return;
    Trainer& t = trainers_[m->header().client];
    if (m->header().verb == Verb::kHello) {
      begin_again(t, m->header().incarnation);
      files_.give_up(m->header().client);
      t.gap = true;
      continue;
    }
    t.incarnation = m->header().incarnation;
    t.sequence = t.done = m->header().sequence;
    t.last_answer = nullptr;
    t.answer_again = t.gap = true;
    t.told.clear();
  }
  const Verb verb = messages[0]->header().verb;
  if (verb == Verb::kExchange) return replay_updates(messages);
  Trainer& first = trainers_[messages[0]->header().client];
  if (is_about_files(verb)) {
    first.last_answer = replay_files(*messages[0]);
    first.answer_again = false;
  }
  if (verb == Verb::kComplete) {
    first.complete = true;
    files_.give_up(messages[0]->header().client);
  }
  if (verb != Verb::kReduce) return;
  Meeting meeting;
  meeting.came = messages;
  MessageRef answer;
  try {
    answer = sum_of(meeting);
    if (const SumName name(*messages[0]); name.step) sums_of_step_[name] = answer;
  } catch (const Error& e) {
    answer = refusal(verb, e);
  }
  for (const auto& m : messages) {
    Trainer& t = trainers_[m->header().client];
    t.last_answer = answer;
    t.answer_again = false;
  }
}

void Server::replay_updates(const std::vector<MessageRef>& messages) {
  try {
    apply(messages);
    count_updates(messages);
    count_left_out(messages);
    ++stats_.resumed;
    if (options_.mode == Mode::kSync) next_step();
  } catch (const Error& e) {  // it failed then, too
    for (const auto& m : messages) {
      Trainer& t = trainers_[m->header().client];
      t.last_answer = refusal(Verb::kExchange, e);
      t.answer_again = false;
    }
    return;
  }
  if (options_.mode != Mode::kGeo) return;
  note_rows(*messages[0]);
  Trainer& t = trainers_[messages[0]->header().client];
  for (const uint32_t table : tables_of(*messages[0])) {
    t.told[table].add(t.changed[table].ids());
    t.changed[table].clear();
  }
}

void Server::count_left_out(const std::vector<MessageRef>& messages) {
  if (levels_->uniform()) return;
  for (const auto& m : messages) {
    const std::set<uint32_t> tables = levels_->left_out(*m);
    for (const uint32_t table : tables) ++left_out_[table];
    if (!tables.empty()) ++stats_.lost;
  }
}

void Server::tell_left_out() {
  for (const auto& [table, updates] : left_out_) {
    options_.history.tell(fmt::format(
        "{} updates of the table {} that {} had acknowledged are lost: its state is that of an older snapshot", updates,
        store_.name(table), options_.name));
  }
}

void Server::resume() {
  history_ = std::make_unique<History>(options_.history);
  levels_ = std::make_unique<Levels>(options_.history, store_);
  std::set<std::string> loaded;
  resumed_ = history_->read([&](const std::vector<MessageRef>& record) { load(record[0], &loaded); },
                            [&](const std::vector<MessageRef>& messages) { replay(messages); });
  for (const std::string& name : store_.kept()) {
    AB_CHECK(!resumed_ || loaded.count(name), NotFound, "the state in {} has no variable {}", options_.history.folder,
             name);
  }
  tell_left_out();
  files_.reset_counts();
  // The journal may have a torn end: later records are written after a snapshot of the current state.
  write_first_snapshot();
}

}  // namespace anabranch::ps
