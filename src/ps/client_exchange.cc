// Exchanges of a client: what is sent, what it requests, and the values in the answers.
#include <algorithm>
#include <cstring>
#include <utility>

#include "ps/client.h"

namespace anabranch::ps {

// Messages are reused once they are no longer shared: a steady step allocates none.
std::shared_ptr<Message> Client::fresh_exchange(Line& line) {
  const auto unused = std::find_if(line.spare.begin(), line.spare.end(), [](auto& m) { return m.use_count() == 1; });
  std::shared_ptr<Message> message;
  if (unused != line.spare.end()) {
    message = *unused;
    message->reset(Verb::kExchange);
  } else {
    message = line.spare.emplace_back(std::make_shared<Message>(Verb::kExchange));
  }
  message->header().round = line.link->round();
  return message;
}

Message& Client::message_to(Batch& batch, const Remote& to) {
  const auto server = static_cast<size_t>(to.server);
  if (batch.messages_.size() <= server) batch.messages_.resize(lines_.size());
  Batch::Outgoing& out = batch.messages_[server];
  if (!out.message) out.message = fresh_exchange(*lines_[server]);
  out.parameters.push_back(to.parameter);
  return *out.message;
}

// `needs(server, parameters, needed)` adds the variables that the message to a server requests.
template <class Needs> Client::Ready Client::collect(Batch& batch, const Needs& needs) {
  Ready ready;
  for (size_t server = 0; server < batch.messages_.size(); ++server) {
    Batch::Outgoing& out = batch.messages_[server];
    if (!out.message) continue;
    std::vector<uint32_t> needed;
    needs(server, out.parameters, &needed);
    out.message->add_needed(needed);
    ready.emplace_back(lines_[server].get(), std::exchange(out.message, nullptr));
    out.parameters.clear();
  }
  return ready;
}

void Client::start(Ready ready, Done done) {
  auto under_way = std::make_shared<Exchange>();
  under_way->done = std::move(done);
  if (ready.empty()) return under_way->done(nullptr);
  under_way->left = static_cast<int>(ready.size());
  for (auto& [line, message] : ready) {
    line->link->send(std::move(message), true,
                     [this, to = line, under_way](MessageRef answer) { answered(*to, under_way, std::move(answer)); });
  }
}

void Client::answered(Line& line, const std::shared_ptr<Exchange>& exchange, MessageRef answer) {
  try {
    answer->throw_if_error();
    line.link->set_round(answer->header().round);
    const std::lock_guard lock(mutex_);
    ++line.answers;
    for (int i = 0; i < answer->parts(); ++i) {
      if (answer->part(i).kind != PartKind::kTensor) continue;
      line.places[answer->part(i).variable] = {i, false, line.answers, answer};
    }
  } catch (...) {
    const std::lock_guard lock(exchange->mutex);
    if (!exchange->error) exchange->error = std::current_exception();
  }
  if (exchange->left.fetch_sub(1) == 1) exchange->done(exchange->error);
}

// ---- steps of sync training

void Client::push(const Remote& to, const Gradient& gradient) {
  const std::lock_guard lock(mutex_);
  gradient.add_to(&message_to(step_, to), to.number);
}

void Client::exchange(Done done) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    for (auto& line : lines_) {
      for (auto& [variable, place] : line->places) place.taken = true;
    }
    ready = collect(step_, [this](size_t server, const auto&, std::vector<uint32_t>* needed) {
      for (const auto& [variable, need] : lines_[server]->needed) needed->push_back(variable);
    });
  }
  start(std::move(ready), std::move(done));
}

// ---- batches

void Client::Batch::push(const Remote& to, const Gradient& gradient) {
  Message* message = nullptr;
  {
    const std::lock_guard lock(client_.mutex_);
    message = &client_.message_to(*this, to);
  }
  gradient.add_to(message, to.number);
}

void Client::Batch::exchange(Done done) {
  Ready ready;
  {
    const std::lock_guard lock(client_.mutex_);
    ready = client_.collect(*this, [this](size_t server, const auto& parameters, std::vector<uint32_t>* needed) {
      for (const auto& [variable, need] : client_.lines_[server]->needed) {
        const bool updated = std::any_of(parameters.begin(), parameters.end(),
                                         [of = need.parameter](int p) { return p == 0 || of == 0 || p == of; });
        if (updated) needed->push_back(variable);
      }
    });
  }
  client_.start(std::move(ready), std::move(done));
}

void Client::Batch::exchange(std::span<const Remote> needed, Done done) {
  Ready ready;
  {
    const std::lock_guard lock(client_.mutex_);
    ready = client_.collect(*this, [&](size_t server, const auto&, std::vector<uint32_t>* variables) {
      for (const Remote& r : needed) {
        if (r.server == static_cast<int>(server)) variables->push_back(r.number);
      }
    });
  }
  client_.start(std::move(ready), std::move(done));
}

bool Client::Batch::empty() const {
  return std::none_of(messages_.begin(), messages_.end(), [](const Outgoing& out) { return out.message != nullptr; });
}

void Client::Batch::clear() {
  for (Outgoing& out : messages_) {
    out.message.reset();
    out.parameters.clear();
  }
}

// ---- what the answers hold

void Client::subscribe(const Remote& variable) {
  const std::lock_guard lock(mutex_);
  Need& need = lines_[static_cast<size_t>(variable.server)]->needed[variable.number];
  ++need.times;
  need.parameter = variable.parameter;
}

void Client::cancel(const Remote& variable) {
  const std::lock_guard lock(mutex_);
  auto& needed = lines_[static_cast<size_t>(variable.server)]->needed;
  const auto it = needed.find(variable.number);
  if (it != needed.end() && --it->second.times == 0) needed.erase(it);
}

// Without an answer: there is none, or it was taken.
Client::Place Client::find_untaken(const Remote& variable) {
  const std::lock_guard lock(mutex_);
  auto& places = lines_[static_cast<size_t>(variable.server)]->places;
  const auto at = places.find(variable.number);
  if (at == places.end() || std::exchange(at->second.taken, true)) return {};
  return at->second;
}

bool Client::take(const Remote& variable, Tensor* out, uint64_t* seen) {
  const Place found = find_untaken(variable);
  if (!found.answer) return false;
  if (seen) *seen = found.number;
  copy_part(*found.answer, found.part, out);
  return true;
}

bool Client::newer(const Remote& variable, uint64_t* seen, Tensor* out) {
  Place found;
  {
    const std::lock_guard lock(mutex_);
    const auto& places = lines_[static_cast<size_t>(variable.server)]->places;
    const auto at = places.find(variable.number);
    if (at == places.end() || at->second.number == *seen) return false;
    found = at->second;
  }
  *seen = found.number;
  copy_part(*found.answer, found.part, out);
  return true;
}

bool Client::take_rows(const Remote& table, std::vector<int64_t>* ids, Tensor* rows, std::vector<int64_t>* gone) {
  const auto [part, taken, number, answer] = find_untaken(table);
  if (!answer || part == 0 || answer->part(part - 1).kind != PartKind::kIds) return false;
  if (gone) {
    if (part < 2 || answer->part(part - 2).kind != PartKind::kIds) return false;
    const auto without = answer->ids(part - 2);
    gone->assign(without.begin(), without.end());
  }
  const auto found = answer->ids(part - 1);
  ids->assign(found.begin(), found.end());
  copy_part(*answer, part, rows);
  return true;
}

void copy_part(const Message& message, int part, Tensor* out) {
  out->resize(message.shape(part), static_cast<DType>(message.part(part).dtype));
  if (out->bytes()) std::memcpy(out->mutable_raw(), message.payload(part), out->bytes());
}

}  // namespace anabranch::ps
