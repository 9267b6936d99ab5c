#include "engine/pserver.h"

#include "base/flags.h"
#include "ps/trainers.h"

namespace anabranch {
namespace {

template <class T> T flag(const char* name) { return std::get<T>(get_flag(name)); }

// If flags name a folder, each server uses a subfolder.
ps::HistoryOptions history_of(const std::string& name) {
  ps::HistoryOptions o;
  const auto folder = flag<std::string>("FLAGS_ps_state_dir");
  if (folder.empty()) return o;
  const auto level = flag<int64_t>("FLAGS_ps_durability");
  AB_CHECK(level >= 0 && level <= 2, InvalidArgument, "FLAGS_ps_durability must be 0, 1 or 2, got {}", level);
  o.durability = static_cast<ps::Durability>(level + 1);
  o.folder = folder + "/" + name;
  o.snapshot_every = flag<int64_t>("FLAGS_ps_snapshot_every");
  return o;
}

}  // namespace

PServer::PServer(ir::ProgramRef program, std::shared_ptr<Scope> scope)
    : program_(std::move(program), std::move(scope)) {
  ps::ServerOptions options = program_.options();
  options.incarnation = ps::fresh_incarnation();
  options.history = history_of(program_.server_name());
  if (options.history.durability != ps::Durability::kNone) options.history.tables = program_.table_durability();
  options.patience = ps::Milliseconds(std::get<int64_t>(get_flag("FLAGS_rpc_deadline")));
  options.timer = &writer_;
  options.file_lease = ps::Milliseconds(flag<int64_t>("FLAGS_ps_file_lease"));
  AB_CHECK(options.file_lease.count() >= 100, InvalidArgument,
           "FLAGS_ps_file_lease must be at least 100 milliseconds, got {}", options.file_lease.count());
  server_ = std::make_unique<ps::Server>(options, program_);
  endpoint_ = options.name;
  const ps::Handler handler = [server = server_.get()](ps::MessageRef m, ps::Answer a) {
    server->handle(std::move(m), std::move(a));
  };
  if (!endpoint_.starts_with("local:")) {
    network_ = ps::network_transport().listen(endpoint_, handler);
    endpoint_ = network_->endpoint();
    server_->watch(network_->peers());
  }
  local_ = ps::local_transport().listen(endpoint_, handler);
}

PServer::~PServer() {
  network_ = nullptr;
  local_ = nullptr;
  server_->finish_snapshot();
}

bool PServer::run(const std::function<bool()>& stop) {
  server_->wait_finished(stop, ps::Milliseconds(100));
  return server_->finished();
}

}  // namespace anabranch
