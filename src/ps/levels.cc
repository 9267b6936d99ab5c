#include "ps/levels.h"

namespace anabranch::ps {

Levels::Levels(const HistoryOptions& options, const Store& store) : store_(store), otherwise_(options.durability) {
  for (const auto& [name, level] : options.tables) {
    if (level != otherwise_) tables_.emplace(store.number(name), level);
  }
}

Durability Levels::of(uint32_t variable) const {
  const auto it = tables_.find(store_.table_of(variable));
  return it == tables_.end() ? otherwise_ : it->second;
}

// A tensor of a variable without a journal, or the ids of its rows.
bool Levels::is_left_out(const Message& message, int part) const {
  const Part& p = message.part(part);
  return (p.kind == PartKind::kTensor || p.kind == PartKind::kIds) && of(p.variable) < Durability::kJournal;
}

MessageRef Levels::kept_of(const MessageRef& message) const {
  if (message->header().verb != Verb::kExchange) return message;
  std::shared_ptr<Message> kept;
  for (int i = 0; i < message->parts(); ++i) {
    if (!kept && is_left_out(*message, i)) {
      kept = std::make_shared<Message>(Verb::kExchange);
      for (int k = 0; k < i; ++k) kept->add_copy(*message, k);
    }
    if (!kept) continue;
    if (!is_left_out(*message, i)) {
      kept->add_copy(*message, i);
    } else if (message->part(i).kind == PartKind::kTensor) {
      kept->add_ids(store_.table_of(message->part(i).variable), {});
    }
  }
  if (!kept) return message;
  const Header& from = message->header();
  Header& to = kept->header();
  to.client = from.client;
  to.incarnation = from.incarnation;
  to.sequence = from.sequence;
  to.round = from.round;
  to.acknowledged = from.acknowledged;
  return kept;
}

bool Levels::flushed(const Message& message) const {
  if (message.header().verb != Verb::kExchange) return true;
  for (int i = 0; i < message.parts(); ++i) {
    if (message.part(i).kind == PartKind::kTensor && of(message.part(i).variable) == Durability::kFlushed) return true;
  }
  return false;
}

std::set<uint32_t> Levels::left_out(const Message& kept) const {
  std::set<uint32_t> out;
  for (int i = 0; i < kept.parts(); ++i) {
    const bool mark = kept.part(i).kind == PartKind::kIds && kept.part(i).bytes == 0;
    const bool rows =
        i + 1 < kept.parts() && kept.part(i + 1).kind == PartKind::kTensor && kept.part(i + 1).height >= 0;
    if (mark && !rows) out.insert(kept.part(i).variable);
  }
  return out;
}

}  // namespace anabranch::ps
