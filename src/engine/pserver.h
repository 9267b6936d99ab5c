// A parameter server that runs: a served program, its server, and where it listens - to trainers of this process
// always, to others when the network transport is there.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "engine/served_program.h"

namespace anabranch {

class PServer {
 public:
  // Listens when it is made. Endpoints "local:<anything>" are for this process only; port 0 is any free one.
  PServer(ir::ProgramRef program, std::shared_ptr<Scope> scope);
  ~PServer();  // a snapshot that is being written is written to its end

  const std::string& endpoint() const { return endpoint_; }
  // Serves until every trainer is complete, or `stop`, which is asked ten times a second, says so. True: complete.
  bool run(const std::function<bool()>& stop);
  ps::ServerStats stats() const { return server_->stats(); }

 private:
  ServedProgram program_;
  std::string endpoint_;
  ps::ThreadTimer writer_;  // of snapshots
  std::unique_ptr<ps::Server> server_;
  std::unique_ptr<ps::Listener> network_, local_;
};

}  // namespace anabranch
