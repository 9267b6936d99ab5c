#include "engine/pserver.h"

#include <random>

#include "base/flags.h"

namespace anabranch {
namespace {

uint64_t fresh_incarnation() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

}  // namespace

PServer::PServer(ir::ProgramRef program, std::shared_ptr<Scope> scope)
    : program_(std::move(program), std::move(scope)) {
  ps::ServerOptions options = program_.options();
  options.incarnation = fresh_incarnation();
  options.patience = ps::Milliseconds(std::get<int64_t>(get_flag("FLAGS_rpc_deadline")));
  server_ = std::make_unique<ps::Server>(options, program_);
  endpoint_ = options.name;
  const ps::Handler handler = [server = server_.get()](ps::MessageRef m, ps::Answer a) {
    server->handle(std::move(m), std::move(a));
  };
  if (!endpoint_.starts_with("local:")) {
    network_ = ps::network_transport().listen(endpoint_, handler);
    endpoint_ = network_->endpoint();
  }
  local_ = ps::local_transport().listen(endpoint_, handler);
}

bool PServer::run(const std::function<bool()>& stop) {
  server_->wait_finished(stop, ps::Milliseconds(100));
  return server_->finished();
}

}  // namespace anabranch
