// The worker's side: links to all servers, and exchanges with them. An exchange sends a batch of gradients, one message
// per server, and ends when every server has answered, with the updated variables that the worker needs. A step of sync
// training is one exchange; in asynchronous training each sender has its own.
#pragma once
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ps/description.h"
#include "ps/gradient.h"
#include "rpc/beats.h"
#include "rpc/link.h"

namespace anabranch::ps {

// A variable on a server.
struct Remote {
  std::shared_ptr<rpc::Link> link;
  int server = 0;
  uint32_t number = 0;
  int parameter = 0;  // that it is a shard of, or whose gradient it is: Client::parameter_number(); 0: unknown
};

class Exchanger;

// Shape, dtype and elements of a part.
void copy_part(const Message& message, int part, Tensor* out);

class Client {
 public:
  // How the client connects to an endpoint.
  using Connect = std::function<std::shared_ptr<rpc::Channel>(const std::string& endpoint)>;
  Client(const rpc::LinkOptions& options, Connect connect, std::shared_ptr<rpc::Timer> timer);

  // Sets the job that later connections send to the servers, which compare it with theirs.
  void describe(Description job);
  // Waits for the server, which may be starting.
  void connect(const std::string& endpoint);
  // `parameter`: the whole parameter of which this is a shard, or a gradient.
  Remote remote(const std::string& endpoint, const std::string& name, const std::string& parameter = {});
  const rpc::LinkOptions& options() const { return options_; }

  // ---- exchanges: client_exchange.cc
  // Gets the first error, if any, when all servers have answered.
  using Done = std::function<void(std::exception_ptr)>;
  // Requests a variable in all following exchanges, until it is cancelled.
  void subscribe(const Remote& variable);
  void cancel(const Remote& variable);

  // The gradients of one sender. Senders without a common step have one each: otherwise the exchange of another replica
  // or thread could send their gradients, and they would end their step before servers have acknowledged it.
  class Batch {
   public:
    explicit Batch(Client& client) : client_(client) {}
    void push(const Remote& to, const Gradient& gradient);
    // Each message requests the subscribed variables that its gradients update: the others have other messages.
    void exchange(Done done);
    // Each message requests those of these that its server has.
    void exchange(std::span<const Remote> needed, Done done);
    bool empty() const;
    void clear();  // drops what a failed step has left

   private:
    friend class Client;
    struct Outgoing {
      std::shared_ptr<Message> message;  // null: none
      std::vector<int> parameters;       // of its gradients
    };

    Client& client_;
    std::vector<Outgoing> messages_;  // by server
  };

  // The batch of a step of sync training, into which several threads push. It requests all subscribed variables, and
  // its answers replace the values of earlier ones.
  void push(const Remote& to, const Gradient& gradient);
  void exchange(Done done);

  // Copies a variable out of the last exchange's answers; false if they do not hold it, or it was taken already. `seen`
  // is set to the answer's number.
  bool take(const Remote& variable, Tensor* out, uint64_t* seen = nullptr);
  // The rows of a table in the answer; of a growable table `gone` has the keys that have no row.
  bool take_rows(const Remote& table, std::vector<int64_t>* ids, Tensor* rows, std::vector<int64_t>* gone = nullptr);
  // The newest value of an answer, if it is another one than that of the answer `seen`, which is set to its number.
  bool newer(const Remote& variable, uint64_t* seen, Tensor* out);

  // ---- how steps exchange
  // The attached one, or that for the mode of a server; without a server: sync, if one of them combines the gradients
  // of all workers.
  Exchanger& exchanger(const Remote& server) const;
  Exchanger& exchanger();
  // Null, or what works in parallel to the steps; it is attached and detached while no step runs.
  Exchanger* attached() const { return attached_.get(); }
  void attach(std::shared_ptr<Exchanger> exchanger) { attached_ = std::move(exchanger); }

  // ---- at any time
  // The current value of a variable on the server.
  void pull(const Remote& variable, std::function<void(MessageRef answer)> done);
  // `trains`: keys of a growable table get rows.
  void rows(const Remote& table, std::span<const int64_t> ids, std::function<void(MessageRef answer)> done,
            bool trains = false);
  // The sum over all workers, in their order, of arrays of one shape, at one server; waits for them. Without an array:
  // a barrier. Calls with equal names are matched by their count.
  void reduce(const std::string& endpoint, const std::string& name, const Tensor* array,
              std::function<void(MessageRef answer)> done);
  // A sum within a step of sync training, at the first of the servers that get gradients in it. A restarted worker
  // takes part in the current step: if the others have the sum already, it gets the same one.
  void reduce_in_step(const std::vector<std::string>& servers, const std::string& name, const Tensor& array,
                      std::function<void(MessageRef answer)> done);
  // Another request that changes the state of one server.
  void send(const std::string& endpoint, std::shared_ptr<Message> request, std::function<void(MessageRef answer)> done);
  // Sends heartbeats to a server as long as the result exists.
  std::shared_ptr<rpc::Beats> beats(const std::string& endpoint, Milliseconds every);
  void complete();  // notifies every server; waits
  std::vector<std::string> stats();
  // For stall reports, from any thread: the oldest request that this server has not answered.
  std::optional<rpc::Link::Wait> oldest_wait(const std::string& endpoint);

 private:
  // The last answer that holds a variable.
  struct Place {
    int part = 0;
    bool taken = false;
    uint64_t number = 0;  // of the answer
    MessageRef answer;
  };
  struct Need {
    int times = 0;  // number of requests
    int parameter = 0;
  };
  struct Line {
    std::shared_ptr<rpc::Link> link;
    std::map<uint32_t, Need> needed;  // by variable
    uint64_t answers = 0;
    std::map<uint32_t, Place> places;  // of tensors in answers, by variable
    std::vector<std::shared_ptr<Message>> spare;
  };
  using Ready = std::vector<std::pair<Line*, std::shared_ptr<Message>>>;
  struct Exchange {
    std::atomic<int> left{0};
    std::mutex mutex;
    std::exception_ptr error;
    Done done;
  };

  Line& line(const std::string& endpoint, int* server);
  int parameter_number(const std::string& name);
  void catch_up(const std::vector<std::string>& servers);

  // ---- client_exchange.cc
  static std::shared_ptr<Message> fresh_exchange(Line& line);
  Message& message_to(Batch& batch, const Remote& to);                     // with the lock
  template <class Needs> Ready collect(Batch& batch, const Needs& needs);  // with the lock
  void start(Ready ready, Done done);
  Place find_untaken(const Remote& variable);
  void answered(Line& line, const std::shared_ptr<Exchange>& exchange, MessageRef answer);

  const rpc::LinkOptions options_;
  const Connect connect_;
  const std::shared_ptr<rpc::Timer> timer_;
  std::mutex mutex_;
  Description job_;
  std::map<std::string, int> servers_, parameters_;
  std::vector<std::unique_ptr<Line>> lines_;
  Batch step_{*this};
  std::map<std::string, uint64_t> reductions_;  // number of uses of each name
  std::atomic<bool> caught_up_{false};
  const std::shared_ptr<Exchanger> sync_, async_;
  std::shared_ptr<Exchanger> attached_;  // the last member: its thread uses the others
};

}  // namespace anabranch::ps
