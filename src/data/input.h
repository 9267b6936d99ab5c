// One file of a data set as chunks of work. The thread that holds the file claims chunks in order; the expensive part
// is finish(), which many threads run concurrently.
#pragma once
#include <atomic>
#include <cstring>
#include <memory>
#include <string>

#include "data/block.h"
#include "data/byte_source.h"
#include "data/row_parser.h"

namespace anabranch::data {

struct TableBatch;

// Bytes that grow without being zeroed.
struct Buffer {
  std::unique_ptr<char[]> bytes;
  size_t size = 0, capacity = 0;

  char* data() { return bytes.get(); }
  // Keeps the first `size` bytes.
  void reserve(size_t needed) {
    if (needed <= capacity) return;
    std::unique_ptr<char[]> grown(new char[needed]);
    if (size) std::memcpy(grown.get(), bytes.get(), size);
    bytes = std::move(grown);
    capacity = needed;
  }
};

struct Chunk {
  Buffer raw;
  std::shared_ptr<const TableBatch> table;  // of a file that holds one, instead,
  int64_t row = 0, rows = 0;                // and the rows of it
  int64_t index = 0;                        // number of the chunk in its file
  bool too_long = false;                    // the start of a line that is longer than allowed
};

class Input {
 public:
  virtual ~Input() = default;
  virtual bool claim(Chunk* chunk) = 0;  // false at the end
  virtual void finish(Chunk* chunk, Block* out) const = 0;
  virtual int64_t consumed() const = 0;  // bytes of the file claimed so far
};

// Text, cut after the last line end of about 256 KiB.
std::unique_ptr<Input> text_input(std::unique_ptr<ByteSource> source, std::shared_ptr<const RowParser> parser,
                                  const std::string& path, int64_t max_line_bytes, const std::atomic<bool>* stop);

// The text of a file, or its cache entry.
std::unique_ptr<Input> open_input(const Settings& settings, const std::string& path,
                                  std::shared_ptr<const RowParser> parser, const std::atomic<bool>* stop);

}  // namespace anabranch::data
