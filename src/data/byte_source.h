// The bytes of one file before parsing: plain, decompressed (gzip and zstd, recognized by their first bytes), or as the
// output of a command.
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
  // At least one byte, or 0 at the end. Throws Unavailable, or InvalidArgument for damaged compressed data; a truncated
  // file never passes for a whole one.
  virtual size_t read(char* to, size_t capacity) = 0;
  // Whether the next read would wait for more than a moment.
  virtual bool waits() { return false; }
  // Bytes of the file itself that were consumed so far, for progress.
  virtual int64_t consumed() const = 0;
};

// `stop`, set by another thread, makes a read that waits for a command return 0.
std::unique_ptr<ByteSource> open_source(const Settings& settings, const std::string& path,
                                        const std::atomic<bool>* stop);

// Decompressors for a regular file with recognized first bytes. `file` is open at its start.
std::unique_ptr<ByteSource> gzip_source(std::unique_ptr<ByteSource> file, std::string path);
std::unique_ptr<ByteSource> zstd_source(std::unique_ptr<ByteSource> file, std::string path);

}  // namespace anabranch::data
