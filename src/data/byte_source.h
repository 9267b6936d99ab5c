// The bytes of one file as its lines are parsed: as they are, uncompressed (gzip and zstd, told by their first bytes),
// or as a command gives them out.
#pragma once
#include <atomic>
#include <cstddef>
#include <memory>
#include <string>

#include "data/dataset.h"

namespace anabranch::data {

class ByteSource {
 public:
  virtual ~ByteSource() = default;
  // At least one byte, or 0 at the end. Throws Unavailable, or InvalidArgument for damaged compressed data, and never
  // gives a short file as a whole one.
  virtual size_t read(char* to, size_t capacity) = 0;
  // Whether the next read would wait for more than a moment.
  virtual bool waits() { return false; }
  // Bytes of the file itself that were used so far, for the share of the input that is done.
  virtual int64_t consumed() const = 0;
};

// `stop`, set by another thread, lets a read that waits for a command return 0.
std::unique_ptr<ByteSource> open_source(const Settings& settings, const std::string& path,
                                        const std::atomic<bool>* stop);

// Decompressors over a regular file whose first bytes have been recognised. `file` is open at its begin.
std::unique_ptr<ByteSource> gzip_source(std::unique_ptr<ByteSource> file, std::string path);
std::unique_ptr<ByteSource> zstd_source(std::unique_ptr<ByteSource> file, std::string path);

}  // namespace anabranch::data
