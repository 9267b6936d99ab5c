// Where processes of a group meet before they have connections to each other, and tell each other why the group has
// ended: at the first of them, which listens. It knows nothing of what they compute.
//
//   hello     a process comes, with bytes for the others. Answered when all have come, with the bytes of all; refused
//   when
//             they do not agree on their number, and after a deadline, which names those that have not come
//   beat      answered when the group has ended, with the reason
//   complete  with a text: why the group has ended; answered with the reason that came first
//             without: this process is done; answered when all are
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "ps/timer.h"
#include "ps/transport.h"

namespace anabranch::ps {

class Hub {
 public:
  // `deadline`: from the first process that comes to the last.
  Hub(Transport& transport, const std::string& endpoint, Milliseconds deadline);
  ~Hub();  // who watches or waits hears that the group has ended
  Hub(const Hub&) = delete;
  const std::string& endpoint() const { return listener_->endpoint(); }

 private:
  // One group. Its number is the `round` of messages.
  struct Meeting {
    uint64_t number = 0;  // of this meeting: the group may meet anew
    std::string members;  // what all must say alike
    std::vector<std::string> given;
    std::vector<Answer> waiting;  // by rank, while they come
    std::vector<Answer> watching, leaving;
    std::set<uint32_t> left;
    std::string reason;
    bool met = false;
  };
  using Answers = std::vector<std::pair<Answer, MessageRef>>;  // told without the lock

  void handle(const MessageRef& request, Answer answer);
  void come(const Message& m, Answer answer, Answers* out);
  void leave(const Message& m, Answer answer, Answers* out);
  void end(Meeting& meeting, const std::string& why, Answers* out);
  void too_late(uint64_t group, uint64_t number);

  const Milliseconds deadline_;
  std::mutex mutex_;
  std::map<uint64_t, Meeting> meetings_;
  uint64_t meetings_begun_ = 0;
  ThreadTimer timer_;
  std::unique_ptr<Listener> listener_;  // the last member: ends first
};

}  // namespace anabranch::ps
