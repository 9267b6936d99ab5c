// Sends and receives for a worker while its steps go on (asynchronous training). Steps deposit gradients and fetch the
// newest parameters; a thread sends the deposited ones, several gradients of one variable merged. The message with the
// gradient of a parameter requests that parameter, once for each time that a step has taken it. A variable accepts a
// limited number of gradients before they are sent: then steps wait. In half-async training the end of a step sends
// them, so there is no limit within it.
#pragma once
#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "ps/exchanger.h"

namespace anabranch::ps {

struct BackgroundOptions {
  int queue = 1;         // maximum number of unsent gradients of a variable, unless a step ends with a meeting
  bool average = false;  // merged gradients are averaged, not summed
  int threads = 0;       // half-async: number of steps that wait for each other, and for the parameters; 0: none
};

class BackgroundExchanger final : public Exchanger {
 public:
  BackgroundExchanger(Client& client, const BackgroundOptions& options);
  ~BackgroundExchanger() override;  // sends the rest, as far as servers accept it

  // Waits while the variable's queue is full. Rethrows errors of the thread.
  void push(const Remote& to, const Gradient& gradient, Client::Batch* own = nullptr) override;
  // The newest value, of any round. Calls request the next value.
  Taken take(const Remote& variable, uint64_t* seen, Tensor* out) override;
  // Half-async: a meeting. `done` is called when the round with the gradients of the step has ended.
  void end_step(Client::Done done) override;
  void join(int threads) override;  // in meetings
  void flush() override;
  Counts counts() const override;

 private:
  using Key = std::pair<int, uint32_t>;  // server, variable
  struct Pending {
    void add(const Gradient& gradient);
    void add_dense(const Tensor& gradient);
    void add_rows(const Gradient& gradient);

    Remote to;
    int count = 0;
    bool sparse = false;
    Tensor dense;
    SelectedRows rows;         // its value is built from `values` when it is sent
    std::vector<char> values;  // of all deposited rows, one push after the other
    DType dtype = DType::kFloat32;
    int64_t width = 0;
  };

  // A variable that steps take.
  struct Take {
    Remote variable;
    int count = 0;  // since it was requested
  };

  Pending& place_for(const Remote& to, std::unique_lock<std::mutex>& lock);
  void work();
  bool ready() const;
  void send_round(std::unique_lock<std::mutex>& lock);
  void fill_messages(std::map<Key, Pending>& round);
  void choose_needed();
  void finish(Pending& p) const;
  void check() const;

  const BackgroundOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::map<Key, Pending> pending_;
  std::map<Key, Pending> sending_;  // memory of the last round
  std::map<Key, Take> takes_;
  Client::Batch messages_;                 // of a round
  std::vector<Remote> needed_;             // in the round that is sent
  std::vector<std::pair<int, int>> sent_;  // its servers and parameters, in order
  std::vector<Client::Done> waiting_;
  int threads_;
  bool over_ = false, busy_ = false;
  std::exception_ptr error_;
  int64_t gradients_ = 0, rounds_ = 0;  // pushed, sent
  std::thread thread_;
};

}  // namespace anabranch::ps
