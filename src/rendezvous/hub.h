// Rendezvous of a group's processes before they are connected, and the place where they publish why the group has
// ended: the first of them, which listens. It does not know what they compute.
//
//   hello     a process arrives, with bytes for the others. Answered when all have arrived, with the bytes of all;
//             refused if they disagree on their number, and after a deadline, which names the missing processes
//   beat      answered when the group has ended, with the reason
//   complete  with a text: the group has ended for this reason; answered with the reason that came first
//             without: this process is done; answered when all are
#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "rpc/timer.h"
#include "rpc/transport.h"

namespace anabranch::rendezvous {

class Hub {
 public:
  // `deadline`: from the first process that arrives to the last.
  Hub(rpc::Transport& transport, const std::string& endpoint, rpc::Milliseconds deadline);
  ~Hub();  // clients that watch or wait are notified of the end
  Hub(const Hub&) = delete;
  const std::string& endpoint() const { return listener_->endpoint(); }

 private:
  // One group. Its number is the `round` of messages.
  struct Meeting {
    uint64_t number = 0;  // of this meeting: the group may meet again
    std::string members;  // must be equal in all processes
    std::vector<std::string> given;
    std::vector<rpc::Answer> waiting;  // by rank, while they arrive
    std::vector<rpc::Answer> watching, leaving;
    std::set<uint32_t> left;
    std::string reason;
    bool met = false;
  };
  using Answers = std::vector<std::pair<rpc::Answer, rpc::MessageRef>>;  // sent without the lock

  void handle(const rpc::MessageRef& request, rpc::Answer answer);
  void come(const rpc::Message& m, rpc::Answer answer, Answers* out);
  void leave(const rpc::Message& m, rpc::Answer answer, Answers* out);
  void end(Meeting& meeting, const std::string& why, Answers* out);
  void too_late(uint64_t group, uint64_t number);

  const rpc::Milliseconds deadline_;
  std::mutex mutex_;
  std::map<uint64_t, Meeting> meetings_;
  uint64_t meetings_begun_ = 0;
  rpc::ThreadTimer timer_;
  std::unique_ptr<rpc::Listener> listener_;  // the last member: destroyed first
};

}  // namespace anabranch::rendezvous
