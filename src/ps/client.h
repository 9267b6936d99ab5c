// A trainer's side: lines to all servers, and what its steps exchange with them. In sync training a step pushes its
// gradients into one message for each server; the exchange sends them and is over when every server has answered, with
// the updated variables that the step wants.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ps/beats.h"
#include "ps/link.h"

namespace anabranch::ps {

// A variable at a server.
struct Remote {
  std::shared_ptr<Link> link;
  int server = 0;
  uint32_t number = 0;
};

class Communicator;
class Geo;

// Shape, dtype and elements of a part.
void copy_part(const Message& message, int part, Tensor* out);

class Client {
 public:
  // How the client reaches an endpoint.
  using Connect = std::function<std::shared_ptr<Channel>(const std::string& endpoint)>;
  Client(const LinkOptions& options, Connect connect, std::shared_ptr<Timer> timer);

  // Waits for the server, which may be starting.
  void connect(const std::string& endpoint);
  Remote remote(const std::string& endpoint, const std::string& name);
  const LinkOptions& options() const { return options_; }

  // Whether servers take the gradients of all trainers together.
  bool in_step();

  // ---- steps of sync training
  void push(const Remote& to, const Tensor& gradient);
  void push(const Remote& to, std::span<const int64_t> ids, int64_t height, const void* values, DType dtype,
            int64_t width);
  // What each exchange brings from now on, for as long as somebody wants it.
  void want(const Remote& variable);
  void want_no_more(const Remote& variable);
  // Sends what was pushed; `done` hears of the first error, if any, when all servers have answered.
  using Done = std::function<void(std::exception_ptr)>;
  void exchange(Done done);
  // Copies a variable out of the last exchange's answers; false when they do not hold it, or it was taken already.
  bool take(const Remote& variable, Tensor* out);
  // Those rows of a table that the answer holds.
  bool take_rows(const Remote& table, std::vector<int64_t>* ids, Tensor* rows);
  // The same, as often as it is asked for.
  bool peek(const Remote& variable, Tensor* out);

  // Null, or what sends and receives beside the steps; it is attached and detached when no step runs.
  Communicator* communicator() const { return communicator_.get(); }
  void attach(std::shared_ptr<Communicator> communicator) { communicator_ = std::move(communicator); }

  // Null, or what exchanges differences for it.
  Geo* geo() const { return geo_.get(); }
  void attach(std::shared_ptr<Geo> geo) { geo_ = std::move(geo); }

  // ---- at any time
  // The value of a variable as the server has it now.
  void pull(const Remote& variable, std::function<void(MessageRef answer)> done);
  // `trains`: keys of a table that grows get rows.
  void rows(const Remote& table, std::span<const int64_t> ids, std::function<void(MessageRef answer)> done,
            bool trains = false);
  // The sum over all trainers, in their order, of arrays of one shape, at one server; waits for them. Without an array:
  // a barrier. Trainers that use a name equally often meet.
  void reduce(const std::string& endpoint, const std::string& name, const Tensor* array,
              std::function<void(MessageRef answer)> done);
  // The sum that trainers need within a step of sync training, at the first of the servers that get gradients in it. A
  // trainer that is started again takes part in the step under way: when the others have the sum already, it gets the
  // same one.
  void reduce_in_step(const std::vector<std::string>& servers, const std::string& name, const Tensor& array,
                      std::function<void(MessageRef answer)> done);
  // Something else that changes what one server keeps.
  void send(const std::string& endpoint, std::shared_ptr<Message> request, std::function<void(MessageRef answer)> done);
  // Says to a server from now on that this trainer is alive, for as long as somebody keeps it.
  std::shared_ptr<Beats> beats(const std::string& endpoint, Milliseconds every);
  void complete();  // tells every server; waits
  std::vector<std::string> stats();

 private:
  struct Place {
    uint32_t variable;
    int part;
    bool taken;
  };
  struct Line {
    std::shared_ptr<Link> link;
    std::shared_ptr<Message> outgoing;  // of the step under way
    bool pushed = false;
    std::map<uint32_t, int> wanted;  // by variable: how often
    MessageRef answer;
    std::vector<Place> places;  // of its tensors, by variable
    std::vector<std::shared_ptr<Message>> spare;
  };
  struct Exchange {
    std::atomic<int> left{0};
    std::mutex mutex;
    std::exception_ptr error;
    Done done;
  };

  Line& line(const std::string& endpoint, int* server);
  Message& outgoing(Line& line);
  void catch_up(const std::vector<std::string>& servers);
  std::shared_ptr<Message> fresh(Line& line, Verb verb);
  MessageRef find(const Remote& variable, int* part, bool take);
  void answered(Line& line, const std::shared_ptr<Exchange>& exchange, MessageRef answer);

  const LinkOptions options_;
  const Connect connect_;
  const std::shared_ptr<Timer> timer_;
  std::mutex mutex_;
  std::map<std::string, int> servers_;
  std::vector<std::unique_ptr<Line>> lines_;
  std::shared_ptr<Communicator> communicator_;
  std::shared_ptr<Geo> geo_;
  std::map<std::string, uint64_t> reductions_;  // how often each name was used
  std::atomic<bool> caught_up_{false};
};

}  // namespace anabranch::ps
