#include "ps/trainers.h"

#include <random>

#include "base/flags.h"
#include "ps/exchanger.h"

namespace anabranch::ps {
namespace {

struct Trainers {
  std::mutex mutex;
  std::map<int, std::shared_ptr<Client>> clients;
  std::shared_ptr<rpc::Timer> timer = std::make_shared<rpc::ThreadTimer>();
};
Trainers& trainers() {
  static auto& all = *new Trainers();  // never destroyed: requests may be in flight at exit
  return all;
}

}  // namespace

uint64_t fresh_incarnation() {
  std::random_device device;
  return (static_cast<uint64_t>(device()) << 32 | device()) | 1;
}

std::shared_ptr<Client> client_of(int trainer) {
  AB_CHECK(trainer >= 0, InvalidArgument, "trainer_id must not be negative, got {}", trainer);
  // Before the lock: a fork holds the flags and then waits for the stall watch, which asks for clients.
  const Milliseconds deadline(std::get<int64_t>(get_flag("FLAGS_rpc_deadline")));
  const std::lock_guard lock(trainers().mutex);
  auto& client = trainers().clients[trainer];
  if (!client) {
    rpc::LinkOptions o;
    o.trainer = static_cast<uint32_t>(trainer);
    o.incarnation = fresh_incarnation();
    o.deadline = deadline;
    o.try_for = deadline;  // a server answers late if other workers are late; a lost connection ends an attempt at once
    o.report = [](const std::string& text) { fmt::print(stderr, "anabranch: {}\n", text); };
    client = std::make_shared<Client>(o, rpc::connect_to, trainers().timer);
  }
  return client;
}

std::shared_ptr<Client> find_client(int trainer) {
  const std::lock_guard lock(trainers().mutex);
  const auto it = trainers().clients.find(trainer);
  return it == trainers().clients.end() ? nullptr : it->second;
}

void forget_client(int trainer) {
  const std::lock_guard lock(trainers().mutex);
  trainers().clients.erase(trainer);
}

void flush_clients() {
  std::map<int, std::shared_ptr<Client>> all;
  {
    const std::lock_guard lock(trainers().mutex);
    all = trainers().clients;
  }
  for (const auto& [trainer, client] : all) {
    if (client->attached()) client->attached()->flush();
  }
}

}  // namespace anabranch::ps
