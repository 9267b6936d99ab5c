// A file of messages, each after a frame with its size and a checksum: journals and snapshots of servers.
#pragma once
#include <functional>
#include <memory>

#include "ps/disk.h"
#include "ps/names.h"

namespace anabranch::ps {

class RecordWriter {
 public:
  explicit RecordWriter(std::unique_ptr<DiskFile> file) : file_(std::move(file)) {}
  // Messages that belong together: all of them will be read, or none.
  void write(std::span<const MessageRef> messages);
  void write(const Message& message);
  void sync() { file_->sync(); }
  uint64_t bytes() const { return bytes_; }  // written

 private:
  std::unique_ptr<DiskFile> file_;
  std::string buffer_;
  uint64_t bytes_ = 0;
};

// Calls `use` for each complete record, one after another, up to the first incomplete one. False if there is one. At
// most one record of the file is in memory, except for those that `use` keeps.
bool read_records(DiskSource& file, const std::function<void(std::vector<MessageRef>)>& use);

}  // namespace anabranch::ps
