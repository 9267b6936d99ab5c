// Items of queues. Enqueuing only appends an Item; the machine runs it later.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "audit.h"
#include "clock.h"
#include "device/plugin_api.h"

namespace anabranch::simdevice {

class Machine;
class Running;
class Capture;
struct Item;
struct Round;

// One unit of work with its arguments. It is immutable, so a graph may enqueue it repeatedly.
class Work {
 public:
  virtual ~Work() = default;
  virtual std::string what() const = 0;                  // "map/relu/f32"
  virtual void put(Machine&, ab_queue&, Item&) const {}  // it is enqueued; under the lock
  virtual void run(Running& running) const = 0;          // without the lock
  virtual void over(Machine&, Item&) const {}            // it has run or was dropped; under the lock
  virtual void drop() const {}                           // it was dropped after a fault; without the lock
};
using WorkPtr = std::shared_ptr<const Work>;

// The state of an event once it has been recorded.
struct Record {
  bool passed = false;
  Clock clock;
  uint64_t ns = 0;
  std::weak_ptr<Capture> capture;  // it was recorded in this capture, and never passes
  bool captured = false;
};
using RecordPtr = std::shared_ptr<Record>;

struct Item {
  enum class Kind : uint8_t { kWork, kRecord, kWait, kCollective };

  Kind kind = Kind::kWork;
  WorkPtr work;
  RecordPtr record;              // of kRecord and kWait
  std::shared_ptr<Round> round;  // of kCollective
  const std::string* label = nullptr;
  uint64_t number = 0;  // in the order of enqueuing
  uint64_t asof = 0;    // the number at which its arguments were recorded
  Clock host;           // the host's clock at that time
  uint64_t sum = 0;     // of the pinned memory that it reads, when it was enqueued
  bool summed = false;
};

}  // namespace anabranch::simdevice

struct ab_queue {
  int id, device;
  std::string name;
  const std::string* mark = nullptr;
  std::deque<anabranch::simdevice::Item> items;
  anabranch::simdevice::Clock clock;
  std::shared_ptr<anabranch::simdevice::Capture> capture;
  bool busy = false;  // its first item runs

  std::string text() const { return "queue " + name + " of device " + std::to_string(device); }
};

struct ab_event {
  int device;
  bool timed;
  anabranch::simdevice::RecordPtr last;  // null: never recorded
};

struct ab_library {
  int device;
  std::string key;
  std::vector<char> desc;
  size_t room;
};
