#include "rpc/link.h"

#include <algorithm>
#include <future>
#include <utility>

namespace anabranch::rpc {

Link::Link(std::string endpoint, std::shared_ptr<Channel> channel, const LinkOptions& options, Timer& timer)
    : endpoint_(std::move(endpoint)), channel_(std::move(channel)), options_(options), timer_(timer) {}

void Link::send(std::shared_ptr<Message> message, bool changes_something, Answer done) {
  auto request = std::make_shared<Request>();
  Header& h = message->header();
  h.client = options_.trainer;
  h.incarnation = options_.incarnation;
  h.peer = peer_.load();
  h.acknowledged = acknowledged_.load();
  request->verb = h.verb;
  request->message = std::move(message);
  request->done = std::move(done);
  request->begun = options_.clock->now();
  request->until = request->begun + options_.deadline;
  request->report_at = request->begun + report_after();
  request->pause = options_.first_pause;
  {
    const std::lock_guard lock(mutex_);
    open_.push_back(request);
    if (changes_something) {
      request->message->header().sequence = ++sequence_;
      changes_.push_back(request);
      if (changes_.size() > 1) return;
    }
  }
  attempt(request);
}

void Link::attempt(const RequestRef& request) {
  const auto left = std::chrono::duration_cast<Milliseconds>(request->until - options_.clock->now());
  request->attempts.fetch_add(1, std::memory_order_relaxed);
  const Milliseconds limit = std::clamp(left, Milliseconds(1), options_.try_for);
  channel_->call(request->message, limit, [self = shared_from_this(), request](MessageRef answer) {
    self->answered(request, std::move(answer));
  });
}

MessageRef Link::not_reached(const Request& request, const Message& last) const {
  const Verb verb = request.message->header().verb;
  const double seconds = std::chrono::duration<double>(options_.deadline).count();
  return Message::error(
      verb, Error(ErrorKind::kUnavailable,
                  fmt::format("the server at {} has not answered a request ({}) for {:.0f} s: {}", endpoint_,
                              verb_name(verb), seconds, last.parts() > 0 ? last.text(0) : "no reason was given")));
}

void Link::answered(const RequestRef& request, MessageRef answer) {
  const bool lost = answer->header().error == 1 + static_cast<uint8_t>(ErrorKind::kUnavailable) &&
                    answer->header().incarnation == 0;  // the transport's own answer, not a server's
  if (lost && options_.clock->now() + request->pause < request->until) return again(request, *answer);
  if (lost) answer = not_reached(*request, *answer);
  if (!greets_again(request, answer)) deliver(request, std::move(answer));
}

void Link::deliver(const RequestRef& request, MessageRef answer) {
  const bool pushes = request->message->header().verb == Verb::kExchange && request->message->header().sequence > 0;
  if (pushes && !answer->header().error) acknowledged_.fetch_add(1);
  RequestRef next;
  {
    const std::lock_guard lock(mutex_);
    std::erase(open_, request);
    if (request->message->header().sequence > 0) {
      changes_.pop_front();
      if (!changes_.empty()) next = changes_.front();
    }
  }
  request->done(std::move(answer));
  if (next) attempt(next);
}

std::optional<Link::Wait> Link::oldest_wait() {
  const std::lock_guard lock(mutex_);
  if (open_.empty()) return std::nullopt;
  const Request& r = *open_.front();
  return Wait{r.verb, std::chrono::duration<double>(options_.clock->now() - r.begun).count(),
              r.attempts.load(std::memory_order_relaxed)};
}

void Link::again(const RequestRef& request, const Message& reason) {
  repeated_.fetch_add(1);
  const TimePoint now = options_.clock->now();
  if (now >= request->report_at) {
    report(request->verb, std::chrono::duration<double>(now - request->begun).count(),
           ": " + std::string(reason.parts() > 0 ? reason.text(0) : "no reason was given"));
    request->report_at = now + (now - request->begun);
  }
  const Milliseconds pause = request->pause;
  request->pause = std::min(2 * pause, options_.longest_pause);
  timer_.after(pause, [self = shared_from_this(), request] { self->attempt(request); });
}

void Link::report(Verb verb, double seconds, const std::string& reason) const {
  if (!options_.report) return;
  options_.report(fmt::format(
      "the server at {} has not answered a request ({}) for {:.1f} s{}; the worker waits for {:.1f} s "
      "(FLAGS_rpc_deadline)",
      endpoint_, verb_name(verb), seconds, reason, std::chrono::duration<double>(options_.deadline).count()));
}

// The server has been replaced. A hello with all known names shows whether the new one resumes the state of the old
// one.
bool Link::greets_again(const RequestRef& request, const MessageRef& refused) {
  const Header& h = refused->header();
  const uint64_t peer = peer_.load();
  const bool other = h.error == 1 + static_cast<uint8_t>(ErrorKind::kUnavailable) && h.incarnation != 0 && peer != 0 &&
                     (h.incarnation != peer || request->message->header().peer != peer);
  if (!other || request->message->header().sequence == 0) return false;
  auto again = hello();
  {
    const std::lock_guard lock(names_mutex_);
    for (const auto& [name, number] : numbers_) again->add_text(name);
  }
  send(std::move(again), false, [self = shared_from_this(), request, refused](const MessageRef& m) {
    self->greeted_again(request, m, refused);
  });
  return true;
}

std::shared_ptr<Message> Link::hello() const {
  auto out = std::make_shared<Message>(Verb::kHello);
  out->header().round = static_cast<uint64_t>(options_.deadline.count());
  return out;
}

// Returns null if the server resumes where the previous one ended.
MessageRef Link::why_not_same(const MessageRef& hello) {
  const Header& h = hello->header();
  if (h.error) return hello;
  const char* why = nullptr;
  if (!(h.flags & Header::kResumed)) {
    why = h.flags & Header::kKeeps ? "its state folder was empty" : "it keeps no state (FLAGS_ps_state_dir)";
  } else if (h.acknowledged != life_.load()) {
    why = "its folder has the state of another job";
  } else {
    const std::lock_guard lock(names_mutex_);
    size_t i = 0;
    bool same = hello->parts() == 2 && hello->needed(1).size() == numbers_.size();
    for (const auto& [name, number] : numbers_) same = same && hello->needed(1)[i++] == number;
    if (!same) why = "its variables are others";
  }
  if (!why) return nullptr;
  return Message::error(
      h.verb,
      Error(ErrorKind::kUnavailable,
            fmt::format("the server at {} was started again without the state that it had: {}", endpoint_, why)));
}

void Link::greeted_again(const RequestRef& request, const MessageRef& answer, const MessageRef& refused) {
  if (MessageRef why = why_not_same(answer)) return deliver(request, std::move(why));
  const Header& h = answer->header();
  peer_.store(h.incarnation);
  round_.store(h.round);
  auto message = request->message->clone();  // a transport may still hold the other one
  message->header().peer = h.incarnation;
  message->header().round = h.round;
  request->message = std::move(message);
  again(request, *refused);
}

MessageRef Link::ask(std::shared_ptr<Message> request, bool changes_something) {
  auto promise = std::make_shared<std::promise<MessageRef>>();
  auto future = promise->get_future();
  send(std::move(request), changes_something, [promise](MessageRef answer) { promise->set_value(std::move(answer)); });
  for (auto wait = report_after(); future.wait_for(wait) != std::future_status::ready; wait *= 2) {
    const auto open = oldest_wait();  // more than one attempt: again() has reported it
    if (open && open->attempts == 1) report(open->verb, open->seconds, "");
  }
  MessageRef answer = future.get();  // send() has a deadline
  answer->throw_if_error();
  return answer;
}

void Link::greet() {
  const std::lock_guard one(greeting_);
  if (peer_.load() != 0) return;
  auto first = hello();
  if (!options_.job.empty()) first->header().flags = Header::kDescribes;
  for (const std::string& line : options_.job) first->add_text(line);
  const MessageRef answer = ask(std::move(first), false);
  round_.store(answer->header().round);
  life_.store(answer->header().acknowledged);
  mode_.store(answer->header().client);
  const std::lock_guard lock(mutex_);
  sequence_ = std::max(sequence_, answer->header().sequence);
  peer_.store(answer->header().incarnation);
}

uint32_t Link::number(const std::string& name) {
  const std::lock_guard lock(names_mutex_);
  const auto it = numbers_.find(name);
  if (it != numbers_.end()) return it->second;
  greet();
  auto request = hello();
  request->add_text(name);
  const MessageRef answer = ask(std::move(request), false);
  AB_CHECK(answer->parts() == 2 && answer->part(1).kind == PartKind::kNeeded && answer->needed(1).size() == 1, Internal,
           "the server at {} gives no number for {}", endpoint_, name);
  return numbers_[name] = answer->needed(1)[0];
}

}  // namespace anabranch::rpc
