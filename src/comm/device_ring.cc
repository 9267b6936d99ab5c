#include "comm/device_ring.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "base/error.h"

namespace anabranch::comm {

using device::Communicator;

// The message that processes exchange.
struct DeviceRing::Note {
  uint64_t serial = 0;  // of its communicator; 0: none that works
  int32_t device = 0;
  int32_t failed = 0;
};

namespace {

// Communicators of this process, by group, devices of all its processes, and number. All processes have the same ones,
// because they are created in meetings.
struct Known {
  std::weak_ptr<Group> group;
  std::vector<int> devices;
  int number;
  std::shared_ptr<Communicator> communicator;
  uint64_t serial;
};
struct Table {
  std::mutex mutex;
  std::vector<Known> known;
};
Table& table() {
  static auto* all = new Table();  // never destroyed, like the devices
  return *all;
}

// Communicators that can no longer be used.
void drop_old() {
  std::vector<Known> gone;
  const std::lock_guard lock(table().mutex);
  auto& known = table().known;
  const auto old = std::stable_partition(known.begin(), known.end(), [](const Known& k) {
    const auto group = k.group.lock();
    return group && group->failure().empty() && k.communicator->works();
  });
  gone.assign(std::make_move_iterator(old), std::make_move_iterator(known.end()));
  known.erase(old, known.end());
}

uint64_t serial_of(const Communicator::Id& id) {
  uint64_t mixed = 0xcbf29ce484222325u;
  for (const char byte : id.bytes) mixed = (mixed ^ static_cast<unsigned char>(byte)) * 0x100000001b3u;
  return mixed | 1;
}

}  // namespace

void DeviceRing::agree(What what, int device) {
  what.on_devices = 1;
  what_ = what;
  device_ = device;
  if (ring_.get() != group_) communicator_ = nullptr;
  group_ = ring_.get();
  WaitedJob::run(*group_);
}

void DeviceRing::work(Peers& peers) {
  try {
    meet(peers);
  } catch (...) {
    // Pending work must not use memory of this step.
    if (!peers.failure().empty()) collective_ = Collective();
    throw;
  }
}

// All processes decide alike from the same notes.
void DeviceRing::meet(Peers& peers) {
  const Note mine{serial(), device_, 0};
  collective_.agree(peers, what_, &mine, sizeof(mine));
  if (all_have_one(peers)) return;
  const std::vector<int> devices = devices_of_all(peers);
  communicator_ = nullptr;
  {
    const std::lock_guard lock(table().mutex);
    for (const Known& k : table().known) {
      if (k.group.lock() != group_ || k.devices != devices || k.number != number_) continue;
      communicator_ = k.communicator;
      serial_ = k.serial;
    }
  }
  agree_on(peers, "looking for a communicator", {serial(), device_, 0});
  if (!all_have_one(peers)) join(peers, devices);
}

bool DeviceRing::all_have_one(const Peers& peers) const {
  Note first;
  std::memcpy(&first, collective_.note(0), sizeof(first));
  for (int r = 0; r < peers.size(); ++r) {
    Note note;
    std::memcpy(&note, collective_.note(r), sizeof(note));
    if (note.serial == 0 || note.serial != first.serial) return false;
  }
  return true;
}

std::vector<int> DeviceRing::devices_of_all(const Peers& peers) const {
  std::vector<int> devices;
  for (int r = 0; r < peers.size(); ++r) {
    Note note;
    std::memcpy(&note, collective_.note(r), sizeof(note));
    devices.push_back(note.device);
  }
  return devices;
}

// One more meeting. Throws in all processes if one has failed.
void DeviceRing::agree_on(Peers& peers, const char* step, const Note& note) {
  What what(CollectiveKind::kAllGatherRows, DType::kUInt8, step);
  what.root = number_;
  collective_.agree(peers, what, &note, sizeof(note));
  for (int r = 0; r < peers.size(); ++r) {
    Note theirs;
    std::memcpy(&theirs, collective_.note(r), sizeof(theirs));
    AB_CHECK(!theirs.failed, Unavailable, "{} cannot compute with the others on its device {}: its own error says why",
             peers.name(r), theirs.device);
  }
}

// Joining waits for all processes on the device, so a process that cannot join must say so before.
void DeviceRing::join(Peers& peers, const std::vector<int>& devices) {
  drop_old();
  Communicator::Id id;
  const auto told = [&](const char* step, const auto& what) {
    std::exception_ptr error;
    try {
      what();
    } catch (...) {
      error = std::current_exception();
    }
    try {
      agree_on(peers, step, {0, device_, error != nullptr});
    } catch (...) {
      if (!error) throw;
    }
    if (error) std::rethrow_exception(error);
  };
  told("naming a communicator", [&] {
    if (peers.rank() == 0) id = Communicator::new_id();
    Communicator::check_there();
  });
  What what(CollectiveKind::kBroadcast, DType::kUInt8, "the name of a communicator");
  what.elems = sizeof(id.bytes);
  collective_.broadcast(peers, what, 0, {id.bytes, sizeof(id.bytes)});
  std::shared_ptr<Communicator> made;
  told("joining devices", [&] { made = Communicator::join({device_}, number_, id, peers.rank(), peers.size()); });
  communicator_ = made;
  serial_ = serial_of(id);
  const std::lock_guard lock(table().mutex);
  table().known.push_back({group_, devices, number_, made, serial_});
}

void DeviceRing::run(ab_queue* queue, std::span<const Communicator::Call> calls) {
  int failed = -1;
  try {
    communicator_->run(queue, device_, calls, &failed);
  } catch (const Error& e) {
    if (failed < 0) throw;
    look_at_group();
    fail(failed, e.message());
  }
}

void DeviceRing::wait() {
  device::Lookout* const self = this;
  communicator_->wait({&self, 1});
}

bool DeviceRing::under_way() const noexcept {
  try {
    return communicator_ && communicator_->works() && !communicator_->passed();
  } catch (const std::exception&) {  // the device is lost, and its waiters get an error
    return false;
  }
}

// A process that leaves after the last operation has done its part.
void DeviceRing::look() {
  if (!under_way()) return;
  look_at_group();
  int rank = -1;
  if (const std::string why = communicator_->failure(&rank); !why.empty()) fail(rank, why);
}

// The device may be the first to see that a process is gone. The group has to know, too: otherwise this process waits
// for the other's goodbye when it exits.
void DeviceRing::look_at_group() const {
  try {
    group_->look();
  } catch (const Error& e) {
    fail(-1, e.message());
  }
}

void DeviceRing::fail(int rank, const std::string& why) const {
  const std::string name = rank < 0 ? "" : group_->name(rank) + ": ";
  AB_THROW(Unavailable, "{}{}; ring {} was computing {}", name, why, ring_.number(), what_.str());
}

void DeviceRing::give_up() noexcept {
  if (under_way()) communicator_->abort();
}

}  // namespace anabranch::comm
