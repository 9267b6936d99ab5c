// Collective operations of the processes of a group. All processes call the same function in the same order. They first
// exchange what they are about to do, so that processes that disagree get an error, all of them, before any data is
// sent, and the group still works. Sums are taken in the order of ranks for any order of arrival: they have the bits of
// the same sums over replicas of one process. A Collective holds the buffers of one call site: a call with the sizes of
// the previous one allocates nothing.
#pragma once
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/combine.h"
#include "comm/peers.h"
#include "core/shape.h"

namespace anabranch::comm {

enum class CollectiveKind : uint8_t {
  kAllReduce,
  kReduce,
  kReduceScatter,
  kBroadcast,
  kAllGather,
  kAllGatherRows,
  kBarrier
};

// Parameters on which all processes must agree. Only `text`, a name for errors, may differ.
struct What {
  static constexpr size_t kText = 96;
  uint64_t magic = 0x31474241;  // "ABG1"
  CollectiveKind verb = CollectiveKind::kBarrier;
  Combine how = Combine::kSum;
  uint8_t dtype = 0;
  uint8_t on_devices = 0;  // data is exchanged between devices, not by this class
  int32_t root = 0;
  int64_t elems = 0;
  uint64_t shapes = 0;  // of several tensors, mixed
  char text[kText] = {};

  What() = default;
  What(CollectiveKind verb, DType dtype, std::string_view name);
  void add(const Shape& shape);  // of another tensor; the text names the first
  bool agrees_with(const What& other) const;
  std::string str() const;
};

// Memory that is sent or received, and its region, which is recreated when the memory moves.
class Strip {
 public:
  Region& over(Wire& wire, void* memory, size_t bytes);
  Region& room(Wire& wire, size_t bytes);  // in memory that it owns
  char* memory() { return static_cast<char*>(own_.get()); }
  Region& region() { return *region_; }

 private:
  std::shared_ptr<void> own_;
  size_t capacity_ = 0, bytes_ = 0;
  void* at_ = nullptr;
  std::unique_ptr<Region> region_;
};

struct Chunk {
  void* data = nullptr;
  int64_t elems = 0;
};

class Collective {
 public:
  static constexpr size_t kNote = 64;  // bytes that accompany the agreement

  // Each of these is one meeting of all processes. The numbers in `ranges` are replaced by their combination over
  // processes.
  void all_reduce(Peers& peers, What what, Combine how, std::span<const Chunk> chunks);
  void reduce(Peers& peers, What what, Combine how, int root, const Chunk& chunk);  // unchanged except at root
  // `in`: size() times as many numbers as `out`, which gets this process's part.
  void reduce_scatter(Peers& peers, What what, Combine how, const Chunk& in, const Chunk& out);
  void broadcast(Peers& peers, What what, int root, const Chunk& chunk);
  // `out`: size() times as many as `in`, which may be this process's part of `out`.
  void all_gather(Peers& peers, What what, const Chunk& in, const Chunk& out);
  void barrier(Peers& peers);

  // Sends a part to each process, and returns the part from each.
  std::vector<std::string> exchange(Peers& peers, const std::vector<std::string_view>& parts);

  // In two steps, if sizes differ between processes: agree() exchanges notes of at most kNote bytes, and gather()
  // concatenates the bytes of all processes, `bytes` each.
  void agree(Peers& peers, const What& what, const void* note = nullptr, size_t bytes = 0);
  const void* note(int rank) const { return notes_.data() + rank * kNote; }
  void gather(Peers& peers, const void* in, char* out, std::span<const size_t> bytes, int phase);

 private:
  struct Hello;
  void make_room(Peers& peers);
  void compare(const Peers& peers);
  void direct(Peers& peers, Combine how, DType dtype, const Chunk& chunk);
  void by_owners(Peers& peers, Combine how, DType dtype, const Chunk& chunk);
  void on_board(Peers& peers, Combine how, DType dtype, std::span<const Chunk> chunks);
  void owners_on_board(Peers& peers, Combine how, DType dtype, int64_t elems);
  void use_theirs(const Peers& peers, const char* mine);
  void add_up(Combine how, DType dtype, size_t skip, char* to, int64_t elems) const;

  std::vector<char> notes_;
  std::vector<const char*> from_;  // by rank: the source of each
  Strip hello_, mine_, packed_;
  std::vector<Strip> hellos_, theirs_, into_;  // by rank
};

}  // namespace anabranch::comm
