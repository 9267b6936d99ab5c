// The border to what carries bytes between the processes of a group: the types of the standard library, nothing of
// ours, so that a plug-in needs no symbol of the library that loads it. Failures are told as text; empty: it went well.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace anabranch::comm {

// Memory that bytes are sent from or received into. One thread uses it, but for abort().
class Region {
 public:
  virtual ~Region() = default;
  // Begin, and return at once. Both sides name the same tag, and the same number of bytes.
  virtual std::string send(int to, uint64_t tag, size_t offset, size_t bytes) = 0;
  virtual std::string receive(int from, uint64_t tag, size_t offset, size_t bytes) = 0;
  // Wait for the end of one of them.
  virtual std::string wait_sent(int64_t within_ms) = 0;
  virtual std::string wait_received(int64_t within_ms) = 0;
  virtual void abort() = 0;  // from any thread: ends a wait, if there is one
};

// One process's connections to all others of the group.
class Wire {
 public:
  virtual ~Wire() = default;
  // The memory stays where it is as long as the region is there.
  virtual std::unique_ptr<Region> region(void* memory, size_t bytes) = 0;
};

// Gives the others `mine`, and returns what all of them gave, by rank; nothing when that failed.
using Swap = std::function<std::vector<std::string>(const std::string& mine)>;

class WireMaker {
 public:
  virtual ~WireMaker() = default;
  // `host`: the address of this machine at which the others reach it. Null and a failure when they cannot be connected.
  virtual std::unique_ptr<Wire> connect(int rank, int size, const std::string& host, int64_t within_ms,
                                        const Swap& swap, std::string* failure) = 0;
};

// What a plug-in exports under this name.
inline constexpr const char* kWireSymbol = "anabranch_wire_1";
using WireMakerFn = WireMaker* (*)();

// Between threads of this process that stand for processes, in tests: all of them have to connect.
std::vector<std::unique_ptr<Wire>> local_wires(int size);

}  // namespace anabranch::comm
