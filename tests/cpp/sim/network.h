// Between workers and servers of a simulation: messages are lost, come twice, late and in another order, answers are
// lost, and for a while nothing passes between two sides. Bytes travel, so that no side sees what another one changes.
#pragma once
#include <cstring>
#include <set>
#include <string>

#include "rpc/transport.h"
#include "sim/world.h"

namespace anabranch::ps::sim {

struct Faults {
  int lost = 0, twice = 0, late = 0;  // percent of messages
};

class Network {
 public:
  Network(World& world, const Faults& faults) : world_(world), faults_(faults) {}

  std::map<std::string, std::shared_ptr<Handler>> doors;  // of servers that run
  std::set<std::pair<uint32_t, std::string>> cut;         // worker, server
  bool at_once = false;                                   // nothing goes wrong, and nothing takes time
  std::function<void(Message&)> spoil_request;            // defects that tests plant
  std::function<MessageRef(const Message&)> answer_for;   // likewise: answers without asking
  std::function<void(const Message&, const std::string& endpoint)>
      saw;  // all that is sent, again or for the first time

  // Of a worker that says nothing more when `alive` is false; what it has sent is on its way.
  std::shared_ptr<Channel> connect(uint32_t worker, const std::string& endpoint, std::shared_ptr<bool> alive) {
    return std::make_shared<Line>(*this, worker, endpoint, std::move(alive));
  }

 private:
  static MessageRef copy(const Message& m) { return m.clone(); }
  static MessageRef not_there(Verb verb) { return Message::error(verb, Error(ErrorKind::kUnavailable, "no answer")); }

  // One call: the answer that arrives first counts.
  struct Call {
    Answer answer;
    void end(MessageRef m) {
      if (answer) std::exchange(answer, nullptr)(std::move(m));
    }
  };

  class Line final : public Channel {
   public:
    Line(Network& network, uint32_t worker, std::string endpoint, std::shared_ptr<bool> alive)
        : network_(network), worker_(worker), endpoint_(std::move(endpoint)), alive_(std::move(alive)) {}
    void call(MessageRef request, Milliseconds deadline, Answer answer) override {
      if (!*alive_) return;
      network_.send(worker_, endpoint_, request, deadline, std::move(answer));
    }

   private:
    Network& network_;
    const uint32_t worker_;
    const std::string endpoint_;
    const std::shared_ptr<bool> alive_;
  };

  Milliseconds delay() {
    return faults_.late && world_.chance(faults_.late) ? world_.within(50, 4000) : world_.within(1, 20);
  }

  void send(uint32_t worker, const std::string& endpoint, const MessageRef& request, Milliseconds deadline,
            Answer answer) {
    const auto call = std::make_shared<Call>(Call{std::move(answer)});
    const Verb verb = request->header().verb;
    if (saw) saw(*request, endpoint);
    if (at_once) return deliver(worker, endpoint, copy(*request), call);
    if (const MessageRef made = answer_for ? answer_for(*request) : nullptr) {
      world_.after(delay(), [call, made] { call->end(made); });
      return;
    }
    world_.after(deadline, [call, verb] { call->end(not_there(verb)); });
    const int copies = world_.chance(faults_.lost) ? 0 : world_.chance(faults_.twice) ? 2 : 1;
    for (int i = 0; i < copies; ++i) {
      auto bytes = request->clone();
      if (spoil_request) spoil_request(*bytes);
      world_.after(delay(), [=, this] { deliver(worker, endpoint, bytes, call); });
    }
  }

  void deliver(uint32_t worker, const std::string& endpoint, const MessageRef& request,
               const std::shared_ptr<Call>& call) {
    const auto door = doors.find(endpoint);
    if (!at_once && cut.count({worker, endpoint})) return;
    if (door == doors.end()) {  // the machine is there, no process listens
      if (world_.chance(50)) call->end(not_there(request->header().verb));
      return;
    }
    const std::shared_ptr<Handler> handler = door->second;
    (*handler)(request, [=, this](const MessageRef& m) {
      if (at_once) return call->end(copy(*m));
      // A server that was killed sends nothing more.
      const auto now = doors.find(endpoint);
      if (now == doors.end() || now->second != handler || cut.count({worker, endpoint}) || world_.chance(faults_.lost))
        return;
      world_.after(delay(), [call, answer = copy(*m)] { call->end(answer); });
    });
  }

  World& world_;
  const Faults faults_;
};

}  // namespace anabranch::ps::sim
