// The memory of one simulated device: blocks with red zones between them. A freed block is poisoned, and its addresses
// are not reused for the next 64 frees, so that a late use is detected.
#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "audit.h"
#include "mapping.h"

namespace anabranch::simdevice {

// Each two bytes are a NaN as float16 and bfloat16, each four as float32, each eight as float64; as an id it is outside
// of any table.
inline constexpr uint16_t kPoison = 0x7fff;
void poison(char* begin, size_t bytes);
bool poisoned(const char* begin, size_t bytes);

struct Block {
  uint64_t number = 0;         // of the process
  size_t bytes = 0, span = 0;  // requested size, and the size with the red zone after it
  uint64_t born = 0;           // the number of the last item enqueued before it was created
  bool live = true;
  Audit audit;
};

class Memory {
 public:
  Memory(Mapping& mapping, int device, size_t bytes) : mapping_(mapping), device_(device), total_(bytes) {}

  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* allocate(size_t bytes, uint64_t born);
  // AB_FAULT if an item that `clock` does not include has used the block. No clock: nothing runs.
  void release(void* p, const Clock* clock);
  // The live block that holds [p, p + bytes), and the offset of p in it. Otherwise reports what p is.
  Block& find(const void* p, size_t bytes, size_t* within);
  // Whether the red zones around the block at p are intact.
  bool intact(const void* p) const;

  size_t total() const { return total_; }
  size_t free_bytes() const { return total_ - used_; }
  std::string left() const;  // "2 blocks (96 bytes) of device 0", or empty

 private:
  size_t room_for(size_t span);
  void recycle_oldest();
  std::string place_of(size_t offset) const;

  Mapping& mapping_;
  const int device_;
  const size_t total_;
  size_t used_ = 0, end_ = 0;
  std::map<size_t, Block> blocks_;  // by offset, including quarantined ones
  std::map<size_t, size_t> gaps_;   // offset -> bytes, never adjacent
  std::deque<size_t> resting_;
};

}  // namespace anabranch::simdevice
