// How the steps of a worker exchange gradients and parameters with servers. Ops call it, and do not know which one it
// is: a client has one for each way of servers, and a BackgroundExchanger or Geo that is attached to it takes their
// place. Thread-safe, except that it is attached and detached while no step runs.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ps/client.h"

namespace anabranch::ps {

class Exchanger {
 public:
  explicit Exchanger(Client& client) : client_(client) {}
  virtual ~Exchanger() = default;
  Exchanger(const Exchanger&) = delete;

  // A gradient of the step. The op sends the messages that are left in `own` when it has pushed all gradients.
  virtual void push(const Remote& to, const Gradient& gradient, Client::Batch* own) = 0;
  // One thread has pushed all gradients of its step. `done` is called when the next step can begin.
  virtual void end_step(Client::Done done) = 0;
  // The value of a variable for the next step, if it is newer than the one of number `seen`, which is set to its
  // number; otherwise kNothing, and kUnknown if no value has come for gradients that were sent: the caller requests it.
  enum class Taken { kNothing, kNew, kUnknown };
  virtual Taken take(const Remote& variable, uint64_t* seen, Tensor* out);

  // ---- GEO. NotFound: the worker does not exchange differences.
  // Within a step: the rows that it looks up. InvalidArgument for rows outside of the table.
  virtual void note(const std::string& table, std::span<const int64_t> ids);
  virtual void end_local_step();
  // The worker's startup program has run.
  virtual void started() {}

  // ---- with threads
  virtual void join(int) {}  // that many threads more, or fewer, take steps
  virtual void flush() {}    // sends everything, and waits
  using Counts = std::vector<std::pair<const char*, int64_t>>;
  virtual Counts counts() const { return {}; }

 protected:
  Client& client_;
};

// The gradients of a step leave together at its end.
class SyncExchanger final : public Exchanger {
 public:
  using Exchanger::Exchanger;
  void push(const Remote& to, const Gradient& gradient, Client::Batch* own) override;
  void end_step(Client::Done done) override;
};

// Each op sends its gradients, and waits for the servers.
class AsyncExchanger : public Exchanger {
 public:
  using Exchanger::Exchanger;
  void push(const Remote& to, const Gradient& gradient, Client::Batch* own) override;
  void end_step(Client::Done done) override;
};

}  // namespace anabranch::ps
