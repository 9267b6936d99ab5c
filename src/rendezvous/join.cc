#include "rendezvous/join.h"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "base/flags.h"
#include "base/plugin.h"
#include "comm/share_memory.h"
#include "rendezvous/hub.h"

namespace anabranch::rendezvous {
namespace {

constexpr rpc::Milliseconds kPause{50};  // between two attempts to reach the first process
// timeout of a call that is answered when the group has ended; then it is repeated
constexpr rpc::Milliseconds kWatch{3600000};

comm::WireMaker& gloo() {
  static comm::WireMaker* loaded = reinterpret_cast<comm::WireMakerFn>(
      load_plugin("anabranch_gloo.so", comm::kWireSymbol,
                  "it was built without Gloo, which carries sums between processes. Replicas of one process add up "
                  "without it"))();
  return *loaded;
}

rpc::Milliseconds flag_ms(const char* name) { return rpc::Milliseconds(std::get<int64_t>(get_flag(name))); }

bool was_lost(const rpc::Message& m) {
  return m.header().error == 1 + static_cast<uint8_t>(ErrorKind::kUnavailable) && m.header().incarnation == 0;
}

// The hubs of this process, one per address: rings share them.
std::shared_ptr<Hub> hub_at(rpc::Transport& transport, const std::string& endpoint, rpc::Milliseconds deadline) {
  static auto& mutex = *new std::mutex();
  static auto& hubs = *new std::map<std::string, std::weak_ptr<Hub>>();
  const std::lock_guard lock(mutex);
  auto& kept = hubs[endpoint];
  auto hub = kept.lock();
  if (!hub) kept = hub = std::make_shared<Hub>(transport, endpoint, deadline);
  return hub;
}

// This process's connection to the hub.
class HubLine final : public comm::Witness, public std::enable_shared_from_this<HubLine> {
 public:
  HubLine(const JoinOptions& o, std::shared_ptr<rpc::Channel> channel, std::shared_ptr<Hub> hub)
      : rank_(o.rank), ring_(o.ring), first_(o.endpoints[0]), channel_(std::move(channel)), hub_(std::move(hub)) {}

  rpc::MessageRef ask(rpc::Verb verb, const std::vector<std::string>& given, rpc::Milliseconds within) {
    const auto until = std::chrono::steady_clock::now() + within;
    while (true) {
      auto promise = std::make_shared<std::promise<rpc::MessageRef>>();
      auto future = promise->get_future();
      const auto left = std::chrono::duration_cast<rpc::Milliseconds>(until - std::chrono::steady_clock::now());
      channel_->call(request(verb, given), std::max(left, rpc::Milliseconds(1)) + rpc::Milliseconds(500),
                     [promise](rpc::MessageRef m) { promise->set_value(std::move(m)); });
      rpc::MessageRef answer = future.get();  // the call has a deadline
      if (!was_lost(*answer)) return answer;
      if (std::chrono::steady_clock::now() + kPause > until || verb != rpc::Verb::kHello) return answer;
      std::this_thread::sleep_for(kPause);
    }
  }

  std::string report(const std::string& why) override {
    const rpc::MessageRef answer = ask(rpc::Verb::kComplete, {why}, rpc::Milliseconds(2000));
    if (answer->header().error) return fmt::format("{}; rank 0 ({}) does not answer", why, first_);
    return answer->parts() == 1 ? std::string(answer->text(0)) : why;
  }

  void watch(const std::weak_ptr<comm::Group>& group) {
    const auto until = std::chrono::steady_clock::now() + kWatch - rpc::Milliseconds(1000);
    channel_->call(request(rpc::Verb::kBeat, {}), kWatch,
                   [self = shared_from_this(), group, until](const rpc::MessageRef& m) {
                     const bool over = was_lost(*m) && std::chrono::steady_clock::now() > until;
                     over ? self->watch(group) : self->ended(group, *m);
                   });
  }

  void say_goodbye(rpc::Milliseconds within) {
    left_ = true;
    ask(rpc::Verb::kComplete, {}, within);
  }

 private:
  std::shared_ptr<rpc::Message> request(rpc::Verb verb, const std::vector<std::string>& given) const {
    auto m = std::make_shared<rpc::Message>(verb);
    m->header().client = static_cast<uint32_t>(rank_);
    m->header().round = static_cast<uint64_t>(ring_);
    for (const auto& text : given) m->add_text(text);
    return m;
  }

  void ended(const std::weak_ptr<comm::Group>& group, const rpc::Message& m) {
    const auto held = group.lock();
    if (!held || left_) return;
    if (m.header().error == 0 && m.parts() == 1) return held->fail(std::string(m.text(0)));
    held->fail(fmt::format("rank 0 ({}) is gone: {}", first_, m.parts() > 0 ? m.text(0) : "no reason was given"));
  }

  const int rank_, ring_;
  const std::string first_;
  const std::shared_ptr<rpc::Channel> channel_;
  const std::shared_ptr<Hub> hub_;
  std::atomic<bool> left_{false};
};

struct Lines {
  std::mutex mutex;
  std::map<int, std::shared_ptr<HubLine>> open;  // by ring
};
Lines& lines() {
  static auto& all = *new Lines();
  return all;
}

void check(const JoinOptions& o) {
  const int size = static_cast<int>(o.endpoints.size());
  AB_CHECK(o.rank >= 0 && o.rank < size, InvalidArgument, "rank must be from 0 to {}, got {}", size - 1, o.rank);
  const std::set<std::string> different(o.endpoints.begin(), o.endpoints.end());
  AB_CHECK(different.size() == o.endpoints.size(), InvalidArgument,
           "two processes of a group have the same address: {}", fmt::join(o.endpoints, ","));
  for (const auto& e : o.endpoints) {
    AB_CHECK(e.rfind(':') != std::string::npos && e.find(',') == std::string::npos, InvalidArgument,
             "the address of a process is host:port, got {}", e);
  }
  if (o.wires || size == 1) return;
  if (std::get<bool>(get_flag("FLAGS_rpc_insecure"))) return;
  for (const auto& e : o.endpoints) {
    AB_CHECK(rpc::on_this_machine(e), InvalidArgument,
             "sums between machines are not encrypted: {} is not an address of this machine alone; set "
             "FLAGS_rpc_insecure=1 where the network is trusted",
             e);
  }
}

std::string host_of(const std::string& endpoint) {
  std::string host = endpoint.substr(0, endpoint.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

// Connects all; an error of the meeting takes precedence over the wire's.
std::unique_ptr<comm::Wire> connect(const JoinOptions& o, HubLine& line) {
  std::exception_ptr refused;
  const comm::Swap swap = [&](const std::string& mine) -> std::vector<std::string> {
    try {
      const rpc::MessageRef answer =
          line.ask(rpc::Verb::kHello, {fmt::format("{}", fmt::join(o.endpoints, ",")), mine}, o.start);
      AB_CHECK(!was_lost(*answer), Unavailable, "rank 0 ({}) was not reached for {:.0f} s (FLAGS_rpc_deadline): {}",
               o.endpoints[0], std::chrono::duration<double>(o.start).count(), answer->text(0));
      answer->throw_if_error();
      std::vector<std::string> all;
      for (int i = 0; i < answer->parts(); ++i) all.emplace_back(answer->text(i));
      AB_CHECK(all.size() == o.endpoints.size(), Internal, "rank 0 knows {} processes of {}", all.size(),
               o.endpoints.size());
      return all;
    } catch (...) {
      refused = std::current_exception();
      return {};
    }
  };
  std::string failure;
  auto wire = (o.wires ? *o.wires : gloo())
                  .connect(o.rank, static_cast<int>(o.endpoints.size()), host_of(o.endpoints[o.rank]), o.start.count(),
                           swap, &failure);
  if (refused) std::rethrow_exception(refused);
  AB_CHECK(wire, Unavailable, "rank {} ({}) cannot connect to the others: {}", o.rank, o.endpoints[o.rank], failure);
  return wire;
}

}  // namespace

std::shared_ptr<comm::Group> join_ring(const JoinOptions& options) {
  JoinOptions o = options;
  check(o);
  if (o.start.count() == 0) o.start = flag_ms("FLAGS_rpc_deadline");
  if (o.deadline.count() == 0) o.deadline = flag_ms("FLAGS_collective_deadline");
  if (auto joined = comm::find_ring(o.ring); joined && joined->failure().empty()) {
    AB_CHECK(joined->rank() == o.rank && joined->endpoints() == o.endpoints, InvalidArgument,
             "this process is rank {} of {} in ring {} already", joined->rank(), fmt::join(joined->endpoints(), ","),
             o.ring);
    return joined;
  }
  if (o.endpoints.size() == 1) {
    auto alone = std::make_unique<comm::Peers>(0, o.endpoints, std::move(comm::local_wires(1)[0]), o.deadline);
    auto group = std::make_shared<comm::Group>(std::move(alone));
    comm::keep_ring(o.ring, group);
    return group;
  }
  rpc::Transport& transport = rpc::network_transport();
  const auto hub = o.rank == 0 ? hub_at(transport, o.endpoints[0], o.start) : nullptr;
  const auto line = std::make_shared<HubLine>(o, transport.connect(o.endpoints[0]), hub);
  auto peers = std::make_unique<comm::Peers>(o.rank, o.endpoints, connect(o, *line), o.deadline);
  peers->listen_to(line);
  comm::share_memory(*peers, std::get<bool>(get_flag("FLAGS_collective_shared_memory")));
  auto group = std::make_shared<comm::Group>(std::move(peers));
  comm::keep_ring(o.ring, group);
  line->watch(group);
  const std::lock_guard lock(lines().mutex);
  lines().open[o.ring] = line;
  return group;
}

void leave_rings(rpc::Milliseconds within) {
  std::map<int, std::shared_ptr<HubLine>> open;
  {
    const std::lock_guard lock(lines().mutex);
    open.swap(lines().open);
  }
  for (const auto& [ring, line] : open) {
    const auto group = comm::find_ring(ring);
    if (group && !group->of_parent() && group->failure().empty()) line->say_goodbye(within);
  }
  comm::forget_rings();
}

}  // namespace anabranch::rendezvous
