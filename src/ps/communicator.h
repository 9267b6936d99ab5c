// What sends and receives for a trainer while its steps go on (asynchronous training). Steps put gradients down and
// take the newest parameters up; a thread sends what lies there, several gradients of one variable merged, and asks for
// the parameters in the same message. A variable takes only so many gradients before it is sent: then steps wait.
#pragma once
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "ps/client.h"

namespace anabranch::ps {

struct CommunicatorOptions {
  int queue = 1;         // gradients of a variable that may lie there
  bool average = false;  // merged gradients are averaged, not added up
  int threads = 0;       // half-async: that many steps wait for each other, and for the parameters; 0: none does
};

struct CommunicatorStats {
  int64_t gradients = 0, rounds = 0;
};

class Communicator {
 public:
  Communicator(Client& client, const CommunicatorOptions& options);
  ~Communicator();  // sends what is there, as far as servers take it
  Communicator(const Communicator&) = delete;

  // Waits while the variable has enough. Throws what went wrong in the thread.
  void push(const Remote& to, const Tensor& gradient);
  void push(const Remote& to, std::span<const int64_t> ids, int64_t height, const void* values, DType dtype,
            int64_t width);
  // From now on each round brings it.
  void want(const Remote& variable);
  // The newest value, when there is one that is newer than `seen`, which becomes its number.
  bool take(const Remote& variable, uint64_t* seen, Tensor* out);
  // Half-async: the end of a step of one thread. `done` when the round is over that has its gradients.
  void meet(Client::Done done);
  void leave();  // one thread fewer will meet
  // Sends all that is there, and waits.
  void flush();
  CommunicatorStats stats() const;

 private:
  using Key = std::pair<int, uint32_t>;  // server, variable
  struct Pending {
    Remote to;
    int count = 0;
    bool sparse = false;
    Tensor dense;
    SelectedRows rows;         // its value is made of `values` when it is sent
    std::vector<char> values;  // of all rows that have come, one push behind the other
    DType dtype = DType::kFloat32;
    int64_t width = 0;
  };

  Pending& place_for(const Remote& to, std::unique_lock<std::mutex>& lock);
  void work();
  bool ready() const;
  void send_round(std::unique_lock<std::mutex>& lock);
  void put_into_client(std::map<Key, Pending>& round);
  void finish(Pending& p) const;
  void check() const;

  Client& client_;
  const CommunicatorOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Pending> pending_;
  std::map<Key, Pending> sending_;  // memory of the round before
  std::vector<Client::Done> waiting_;
  int threads_;
  bool over_ = false, busy_ = false;
  uint64_t rounds_ = 0;
  std::exception_ptr error_;
  CommunicatorStats stats_;
  std::thread thread_;
};

}  // namespace anabranch::ps
