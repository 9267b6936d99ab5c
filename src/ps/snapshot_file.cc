#include "ps/history.h"

namespace anabranch::ps {
namespace {

// Limits unflushed data: a journal that is flushed on the same disk would wait for all of it.
constexpr uint64_t kFlushBytes = 32 << 20;

}  // namespace

SnapshotFile::SnapshotFile(Disk& disk, const std::string& folder, uint64_t number)
    : disk_(disk), folder_(folder), number_(number), out_(disk.create(folder + "/state")) {}

void SnapshotFile::put(const Message& record) {
  out_.write(record);
  ++records_;
  if (out_.bytes() - flushed_ < kFlushBytes) return;
  out_.sync();
  flushed_ = out_.bytes();
}

void SnapshotFile::end() {
  Message last(Verb::kComplete);
  last.header().round = records_ + 1;
  out_.write(last);
  out_.sync();
  disk_.sync_folder(folder_);
}

}  // namespace anabranch::ps
