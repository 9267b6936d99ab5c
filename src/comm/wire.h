// Interface of the transport between the processes of a group. It uses only standard types, so that a plug-in needs no
// symbol of the library that loads it. Failures are returned as text; empty: success.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace anabranch::comm {

// Memory that bytes are sent from or received into. For one thread, except abort().
class Region {
 public:
  virtual ~Region() = default;
  // Start, without blocking. Both sides name the same tag, and the same number of bytes.
  virtual std::string send(int to, uint64_t tag, size_t offset, size_t bytes) = 0;
  virtual std::string receive(int from, uint64_t tag, size_t offset, size_t bytes) = 0;
  // Wait for the end of one operation.
  virtual std::string wait_sent(int64_t within_ms) = 0;
  virtual std::string wait_received(int64_t within_ms) = 0;
  virtual void abort() = 0;  // from any thread: ends a wait, if there is one
};

// One process's connections to all others of the group.
class Wire {
 public:
  virtual ~Wire() = default;
  // The memory must stay valid as long as the region.
  virtual std::unique_ptr<Region> region(void* memory, size_t bytes) = 0;
};

// Sends `mine` to the others, and returns the values of all, by rank; nothing if that failed.
using Swap = std::function<std::vector<std::string>(const std::string& mine)>;

class WireMaker {
 public:
  virtual ~WireMaker() = default;
  // `host`: the address at which the others reach this machine. Null and a failure if they cannot be connected.
  virtual std::unique_ptr<Wire> connect(int rank, int size, const std::string& host, int64_t within_ms,
                                        const Swap& swap, std::string* failure) = 0;
};

// The symbol that a plug-in exports.
inline constexpr const char* kWireSymbol = "anabranch_wire_1";
using WireMakerFn = WireMaker* (*)();

// Between threads that stand for processes, in tests: all of them must connect.
std::vector<std::unique_ptr<Wire>> local_wires(int size);

}  // namespace anabranch::comm
