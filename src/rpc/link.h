// A worker's connection to one server. Requests that change something are sent one after the other, each with the next
// sequence number; an unanswered one is repeated, with the same number, until its deadline. A server that resumes after
// a crash is greeted again, and then gets the request that it, or its predecessor, has not answered.
#pragma once
#include <algorithm>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "rpc/clock.h"
#include "rpc/mode.h"
#include "rpc/timer.h"
#include "rpc/transport.h"

namespace anabranch::rpc {

struct LinkOptions {
  uint32_t trainer = 0;
  uint64_t incarnation = 1;
  Milliseconds deadline{180000};                      // of a request with all its repetitions
  Milliseconds try_for{60000};                        // of one attempt
  Milliseconds first_pause{20}, longest_pause{1000};  // between two attempts
  // Called with a line for the user when a server has not answered for a while, then after twice that time, and so on.
  // Requests of a step are reported only if the connection is lost: a server may wait for other workers.
  std::function<void(const std::string&)> report{};
  const Clock* clock = &SteadyClock::shared();
  std::vector<std::string> job = {};  // sent to the server, which refuses a worker of another job; empty: unknown
};

class Link : public std::enable_shared_from_this<Link> {
 public:
  Link(std::string endpoint, std::shared_ptr<Channel> channel, const LinkOptions& options, Timer& timer);

  const std::string& endpoint() const { return endpoint_; }
  // `done` is called once, from any thread, with the answer or an error message.
  void send(std::shared_ptr<Message> request, bool changes_something, Answer done);
  MessageRef ask(std::shared_ptr<Message> request, bool changes_something);  // waits; throws the server's error

  // Sends the hello unless it has been sent, and waits for the answer.
  void greet();
  // The number of a variable on this server. A new name is sent to the server, and the call waits for its number.
  uint32_t number(const std::string& name);
  // This worker's step of sync training, according to the server's last answer.
  uint64_t round() const { return round_.load(std::memory_order_relaxed); }
  void set_round(uint64_t round) { round_.store(round, std::memory_order_relaxed); }
  std::optional<Mode> mode() const { return mode_of(mode_.load(std::memory_order_relaxed)); }  // of the server
  int64_t repeated() const { return repeated_.load(); }

  // The oldest request without an answer, for stall reports; empty: there is none.
  struct Wait {
    Verb verb = Verb::kHello;
    double seconds = 0;
    int attempts = 0;
  };
  std::optional<Wait> oldest_wait();

 private:
  struct Request {
    Verb verb;
    std::shared_ptr<Message> message;
    Answer done;
    TimePoint begun, until, report_at;
    Milliseconds pause;
    std::atomic<int> attempts{0};
  };
  using RequestRef = std::shared_ptr<Request>;

  void attempt(const RequestRef& request);
  void answered(const RequestRef& request, MessageRef answer);
  void again(const RequestRef& request, const Message& reason);
  void report(Verb verb, double seconds, const std::string& reason) const;
  Milliseconds report_after() const { return std::min(Milliseconds(5000), options_.deadline / 4); }
  void deliver(const RequestRef& request, MessageRef answer);
  bool greets_again(const RequestRef& request, const MessageRef& refused);
  void greeted_again(const RequestRef& request, const MessageRef& answer, const MessageRef& refused);
  MessageRef not_reached(const Request& request, const Message& last) const;
  std::shared_ptr<Message> hello() const;
  MessageRef why_not_same(const MessageRef& hello);

  const std::string endpoint_;
  const std::shared_ptr<Channel> channel_;
  const LinkOptions options_;
  Timer& timer_;
  std::mutex mutex_;
  std::vector<RequestRef> open_;    // requests without an answer, the oldest first
  std::deque<RequestRef> changes_;  // requests that change something; the first one is in flight
  uint64_t sequence_ = 0;
  std::atomic<uint64_t> round_{0};
  std::atomic<uint64_t> peer_{0};  // the server's incarnation
  std::atomic<uint64_t> life_{0};  // of the server with which the state began
  std::atomic<int64_t> repeated_{0};
  std::atomic<uint64_t> acknowledged_{0};  // exchanges with contents, answered without an error
  std::atomic<int64_t> mode_{-1};          // unknown
  std::mutex greeting_, names_mutex_;
  std::unordered_map<std::string, uint32_t> numbers_;
};

}  // namespace anabranch::rpc
