#include "ps/client.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace anabranch::ps {

Client::Client(const rpc::LinkOptions& options, Connect connect, std::shared_ptr<rpc::Timer> timer)
    : options_(options), connect_(std::move(connect)), timer_(std::move(timer)) {}

Client::Line& Client::line(const std::string& endpoint, int* server) {
  const std::lock_guard lock(mutex_);
  const auto [it, fresh] = servers_.try_emplace(endpoint, static_cast<int>(lines_.size()));
  if (fresh) {
    auto made = std::make_unique<Line>();
    rpc::LinkOptions options = options_;
    options.job = job_;
    made->link = std::make_shared<rpc::Link>(endpoint, connect_(endpoint), options, *timer_);
    lines_.push_back(std::move(made));
  }
  *server = it->second;
  return *lines_[static_cast<size_t>(it->second)];
}

void Client::describe(Description job) {
  const std::lock_guard lock(mutex_);
  job_ = std::move(job);
}

void Client::connect(const std::string& endpoint) {
  int server = 0;
  line(endpoint, &server).link->greet();
}

int Client::parameter_number(const std::string& name) {
  if (name.empty()) return 0;
  const std::lock_guard lock(mutex_);
  return parameters_.try_emplace(name, static_cast<int>(parameters_.size()) + 1).first->second;
}

Remote Client::remote(const std::string& endpoint, const std::string& name, const std::string& parameter) {
  Remote out;
  out.link = line(endpoint, &out.server).link;
  out.number = out.link->number(name);
  out.parameter = parameter_number(parameter);
  return out;
}

// Messages are reused once they are no longer shared: a steady step allocates none.
std::shared_ptr<Message> Client::fresh(Line& line, Verb verb) {
  for (auto& m : line.spare) {
    if (m.use_count() > 1) continue;
    m->reset(verb);
    return m;
  }
  line.spare.push_back(std::make_shared<Message>(verb));
  return line.spare.back();
}

std::shared_ptr<Message> Client::fresh_exchange(Line& line) {
  auto message = fresh(line, Verb::kExchange);
  message->header().round = line.link->round();
  return message;
}

Message& Client::outgoing(Line& line) {
  if (!line.outgoing) line.outgoing = fresh_exchange(line);
  line.pushed = true;
  return *line.outgoing;
}

bool Client::in_step() {
  const std::lock_guard lock(mutex_);
  return std::any_of(lines_.begin(), lines_.end(), [](const auto& line) { return line->link->mode() == Mode::kSync; });
}

void Client::push(const Remote& to, const Tensor& gradient) {
  const std::lock_guard lock(mutex_);
  outgoing(*lines_[static_cast<size_t>(to.server)]).add(to.number, gradient);
}

void Client::push(const Remote& to, std::span<const int64_t> ids, int64_t height, const void* values, DType dtype,
                  int64_t width) {
  const std::lock_guard lock(mutex_);
  outgoing(*lines_[static_cast<size_t>(to.server)]).add_rows(to.number, ids, height, values, dtype, width);
}

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

Message& Client::Batch::message_to(const Remote& to) {
  const std::lock_guard lock(client_.mutex_);
  const auto at = static_cast<size_t>(to.server);
  if (messages_.size() <= at) messages_.resize(client_.lines_.size());
  Outgoing& out = messages_[at];
  if (!out.message) out.message = client_.fresh_exchange(*client_.lines_[at]);
  out.parameters.push_back(to.parameter);
  return *out.message;
}

void Client::Batch::push(const Remote& to, const Tensor& gradient) { message_to(to).add(to.number, gradient); }

void Client::Batch::push(const Remote& to, std::span<const int64_t> ids, int64_t height, const void* values,
                         DType dtype, int64_t width) {
  message_to(to).add_rows(to.number, ids, height, values, dtype, width);
}

void Client::Batch::clear() {
  for (Outgoing& out : messages_) {
    out.message.reset();
    out.parameters.clear();
  }
}

void Client::Batch::exchange(Done done) {
  Ready ready;
  {
    const std::lock_guard lock(client_.mutex_);
    for (size_t server = 0; server < messages_.size(); ++server) {
      Outgoing& out = messages_[server];
      if (!out.message) continue;
      Line& line = *client_.lines_[server];
      const auto updates = [&](int parameter) {
        return std::any_of(out.parameters.begin(), out.parameters.end(),
                           [&](int p) { return p == 0 || parameter == 0 || p == parameter; });
      };
      std::vector<uint32_t> needed;
      for (const auto& [variable, need] : line.needed) {
        if (updates(need.parameter)) needed.push_back(variable);
      }
      out.message->add_needed(needed);
      ready.emplace_back(&line, std::move(out.message));
      out.parameters.clear();
    }
  }
  client_.start_exchange(std::move(ready), std::move(done));
}

// Answers replace the values of earlier ones.
void Client::exchange(Done done) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    for (auto& line : lines_) {
      for (auto& [variable, place] : line->places) place.taken = true;
      if (!std::exchange(line->pushed, false)) continue;
      std::vector<uint32_t> needed;
      for (const auto& [variable, need] : line->needed) needed.push_back(variable);
      line->outgoing->add_needed(needed);
      ready.emplace_back(line.get(), std::move(line->outgoing));
    }
  }
  start_exchange(std::move(ready), std::move(done));
}

void Client::exchange(std::span<const Remote> needed, Done done) {
  Ready ready;
  {
    const std::lock_guard lock(mutex_);
    for (size_t server = 0; server < lines_.size(); ++server) {
      Line& line = *lines_[server];
      if (!std::exchange(line.pushed, false)) continue;
      std::vector<uint32_t> variables;
      for (const Remote& r : needed) {
        if (r.server == static_cast<int>(server)) variables.push_back(r.number);
      }
      line.outgoing->add_needed(variables);
      ready.emplace_back(&line, std::move(line.outgoing));
    }
  }
  start_exchange(std::move(ready), std::move(done));
}

void Client::start_exchange(Ready ready, Done done) {
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

// The last answer that holds a variable, and its position.
MessageRef Client::find_untaken(const Remote& variable, int* part) {
  const std::lock_guard lock(mutex_);
  auto& places = lines_[static_cast<size_t>(variable.server)]->places;
  const auto at = places.find(variable.number);
  if (at == places.end() || std::exchange(at->second.taken, true)) return nullptr;
  *part = at->second.part;
  return at->second.answer;
}

bool Client::take(const Remote& variable, Tensor* out) {
  int part = -1;
  const MessageRef answer = find_untaken(variable, &part);
  if (answer) copy_part(*answer, part, out);
  return answer != nullptr;
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

bool Client::take_rows(const Remote& table, std::vector<int64_t>* ids, Tensor* rows) {
  int part = -1;
  const MessageRef answer = find_untaken(table, &part);
  if (!answer || part == 0 || answer->part(part - 1).kind != PartKind::kIds) return false;
  const auto found = answer->ids(part - 1);
  ids->assign(found.begin(), found.end());
  copy_part(*answer, part, rows);
  return true;
}

void copy_part(const Message& message, int part, Tensor* out) {
  out->resize(message.shape(part), static_cast<DType>(message.part(part).dtype));
  if (out->bytes()) std::memcpy(out->mutable_raw(), message.payload(part), out->bytes());
}

void Client::pull(const Remote& variable, std::function<void(MessageRef)> done) {
  auto request = std::make_shared<Message>(Verb::kExchange);
  request->add_needed(std::span(&variable.number, 1));
  variable.link->send(std::move(request), false, std::move(done));
}

void Client::rows(const Remote& table, std::span<const int64_t> ids, std::function<void(MessageRef)> done,
                  bool trains) {
  auto request = std::make_shared<Message>(Verb::kRows);
  request->header().flags = trains ? Header::kTrains : 0;
  request->add_ids(table.number, ids);
  table.link->send(std::move(request), false, std::move(done));
}

void Client::reduce(const std::string& endpoint, const std::string& name, const Tensor* array,
                    std::function<void(MessageRef)> done) {
  int server = 0;
  const std::shared_ptr<rpc::Link> link = line(endpoint, &server).link;
  link->greet();
  auto request = std::make_shared<Message>(Verb::kReduce);
  {
    const std::lock_guard lock(mutex_);
    request->add_text(fmt::format("{}#{}", name, reductions_[endpoint + name]++));
  }
  if (array) request->add(0, *array);
  link->send(std::move(request), true, std::move(done));
}

void Client::send(const std::string& endpoint, std::shared_ptr<Message> request, std::function<void(MessageRef)> done) {
  int server = 0;
  const std::shared_ptr<rpc::Link> link = line(endpoint, &server).link;
  link->greet();
  link->send(std::move(request), true, std::move(done));
}

std::shared_ptr<rpc::Beats> Client::beats(const std::string& endpoint, Milliseconds every) {
  int server = 0;
  auto made = std::make_shared<rpc::Beats>(line(endpoint, &server).link, timer_, every);
  made->begin();
  return made;
}

// A worker that was killed may have pushed its gradients to some servers and not to others, where the other workers
// wait for it. Its successor has none for that step, and tells the servers, so that all servers are at one step.
void Client::catch_up(const std::vector<std::string>& servers) {
  if (caught_up_.exchange(true)) return;
  int ignored = 0;
  uint64_t last = 0;
  for (const std::string& s : servers) {
    const std::shared_ptr<rpc::Link> link = line(s, &ignored).link;
    link->greet();
    last = std::max(last, link->round());
  }
  for (const std::string& s : servers) {
    const std::shared_ptr<rpc::Link> link = line(s, &ignored).link;
    if (link->round() + 1 != last) continue;
    auto nothing = std::make_shared<Message>(Verb::kExchange);
    nothing->header().round = link->round();
    nothing->add_text("");
    link->set_round(link->ask(std::move(nothing), true)->header().round);
  }
}

void Client::reduce_in_step(const std::vector<std::string>& servers, const std::string& name, const Tensor& array,
                            std::function<void(MessageRef)> done) {
  catch_up(servers);
  int server = 0;
  const std::shared_ptr<rpc::Link> link = line(servers.at(0), &server).link;
  auto request = std::make_shared<Message>(Verb::kReduce);
  request->header().flags = Header::kOfStep;
  request->header().round = link->round();
  request->add_text(name);
  request->add(0, array);
  link->send(std::move(request), true, std::move(done));
}

void Client::complete() {
  for (auto& line : lines_) line->link->ask(std::make_shared<Message>(Verb::kComplete), true);
}

std::optional<rpc::Link::Wait> Client::oldest_wait(const std::string& endpoint) {
  std::shared_ptr<rpc::Link> link;
  {
    const std::lock_guard lock(mutex_);
    const auto it = servers_.find(endpoint);
    if (it != servers_.end()) link = lines_[static_cast<size_t>(it->second)]->link;
  }
  return link ? link->oldest_wait() : std::nullopt;
}

std::vector<std::string> Client::stats() {
  std::vector<std::string> out;
  for (auto& line : lines_) {
    const MessageRef answer = line->link->ask(std::make_shared<Message>(Verb::kStats), false);
    out.push_back(fmt::format("{}\n{}", line->link->endpoint(), answer->parts() > 0 ? answer->text(0) : ""));
  }
  return out;
}

}  // namespace anabranch::ps
