#include "engine/pserver.h"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <string_view>
#include <thread>

#include "base/flags.h"
#include "ps/trainers.h"

namespace anabranch {
namespace {

constexpr rpc::Milliseconds kLinger{3000};

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

std::string holder_of(const std::string& endpoint) {
  std::array<char, 256> host{};
  if (gethostname(host.data(), host.size() - 1) != 0) host[0] = 0;
  return fmt::format("the server at {} (process {} on {})", endpoint, getpid(), host.data());
}

// A file in a state folder: all workers of its job were complete.
std::string over_in(const std::string& folder) { return folder + "/over"; }

void mark_over(const ps::HistoryOptions& history) {
  if (history.durability == ps::Durability::kNone) return;
  try {
    history.disk->create(over_in(history.folder));
  } catch (const Error& e) {  // the job is over nevertheless
    history.tell(e.message());
  }
}

// Of a launcher: this process replaces an earlier one of the same job.
bool started_again() {
  const char* starts = std::getenv("ANABRANCH_STARTS");
  return starts && std::string_view(starts) != "0";
}

void refuse_if_over(const ps::HistoryOptions& history) {
  if (history.durability == ps::Durability::kNone || started_again()) return;
  AB_CHECK(
      !history.disk->exists(over_in(history.folder)), InvalidArgument,
      "the state in {} is of a job that is over: remove the folder, or choose another one; init_server(DIRNAME) or "
      "launch --resume continues from a saved model",
      history.folder);
}

}  // namespace

// A second process of the same server fails at the address, before it touches the files of the first one. Workers that
// come before the state is read try again.
PServer::PServer(ir::ProgramRef program, std::shared_ptr<Scope> scope)
    : program_(std::move(program), std::move(scope)) {
  ps::ServerOptions options = program_.options();
  endpoint_ = options.name;
  options.incarnation = ps::fresh_incarnation();
  options.history = history_of(program_.server_name());
  if (options.history.durability != ps::Durability::kNone) options.history.tables = program_.table_durability();
  options.patience = rpc::Milliseconds(std::get<int64_t>(get_flag("FLAGS_rpc_deadline")));
  options.timer = &writer_;
  options.file_lease = rpc::Milliseconds(flag<int64_t>("FLAGS_ps_file_lease"));
  AB_CHECK(options.file_lease.count() >= 100, InvalidArgument,
           "FLAGS_ps_file_lease must be at least 100 milliseconds, got {}", options.file_lease.count());
  listen();
  options.name = endpoint_;
  options.history.holder = holder_of(endpoint_);
  refuse_if_over(options.history);
  state_ = options.history;
  server_ = std::make_unique<ps::Server>(options, program_);
  if (network_) server_->watch(network_->peers());
  ready_ = server_.get();
}

void PServer::listen() {
  const rpc::Handler handler = [this](rpc::MessageRef m, const rpc::Answer& a) { receive(std::move(m), a); };
  if (!endpoint_.starts_with("local:")) {
    network_ = rpc::network_transport().listen(endpoint_, handler);
    endpoint_ = network_->endpoint();
  }
  local_ = rpc::local_transport().listen(endpoint_, handler);
}

void PServer::receive(rpc::MessageRef request, const rpc::Answer& answer) {
  if (ps::Server* server = ready_) return server->handle(std::move(request), answer);
  // Without an incarnation, as if it were not reached: the worker repeats the request.
  answer(rpc::Message::error(request->header().verb,
                             Error(ErrorKind::kUnavailable, fmt::format("{} is starting", endpoint_))));
}

PServer::~PServer() {
  network_ = nullptr;
  local_ = nullptr;
  server_->finish_snapshot();
}

bool PServer::run(const std::function<bool()>& stop) {
  constexpr rpc::Milliseconds kLook{100};
  if (server_->finished()) {  // killed at its end: workers may repeat their last request
    const auto end = std::chrono::steady_clock::now() + kLinger;
    while (std::chrono::steady_clock::now() < end && !stop()) std::this_thread::sleep_for(kLook);
  }
  server_->wait_finished(stop, kLook);
  if (!server_->finished()) return false;
  mark_over(state_);
  return true;
}

}  // namespace anabranch
