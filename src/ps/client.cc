#include "ps/client.h"

#include <algorithm>
#include <utility>

#include "ps/exchanger.h"

namespace anabranch::ps {

Client::Client(const rpc::LinkOptions& options, Connect connect, std::shared_ptr<rpc::Timer> timer)
    : options_(options),
      connect_(std::move(connect)),
      timer_(std::move(timer)),
      sync_(std::make_shared<SyncExchanger>(*this)),
      async_(std::make_shared<AsyncExchanger>(*this)) {}

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

Exchanger& Client::exchanger(const Remote& server) const {
  if (attached_) return *attached_;
  return server.link->mode() == Mode::kSync ? *sync_ : *async_;
}

Exchanger& Client::exchanger() {
  if (attached_) return *attached_;
  const std::lock_guard lock(mutex_);
  const auto in_step = [](const auto& line) { return line->link->mode() == Mode::kSync; };
  return std::any_of(lines_.begin(), lines_.end(), in_step) ? *sync_ : *async_;
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
// wait for it. Its successor has no gradients for that step and says so to the servers, so that all reach the same
// step.
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
