// A running parameter server: a served program, its server, and its endpoint - always for workers of this process, and
// for others if the network transport is available.
#pragma once
#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "engine/served_program.h"

namespace anabranch {

class PServer {
 public:
  // Listens from construction on. Endpoints "local:<anything>" are for this process only; port 0 is any free one.
  PServer(ir::ProgramRef program, std::shared_ptr<Scope> scope);
  ~PServer();  // a snapshot in progress is completed

  const std::string& endpoint() const { return endpoint_; }
  // Serves until every worker is complete, or `stop`, polled ten times a second, returns true. True: complete.
  bool run(const std::function<bool()>& stop);
  ps::ServerStats stats() const { return server_->stats(); }

 private:
  void listen();
  void receive(rpc::MessageRef request, const rpc::Answer& answer);

  ServedProgram program_;
  std::string endpoint_;
  ps::HistoryOptions state_;
  rpc::ThreadTimer writer_;  // of snapshots
  std::unique_ptr<ps::Server> server_;
  std::atomic<ps::Server*> ready_{nullptr};  // null while it is constructed
  std::unique_ptr<rpc::Listener> network_, local_;
};

}  // namespace anabranch
