#include "mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "failure.h"

namespace anabranch::simdevice {
namespace {

constexpr size_t kPage = 4096;

char* map(int file, size_t bytes, int protection) {
  void* p = mmap(nullptr, bytes, protection, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (p == MAP_FAILED) fail(AB_RESOURCE_EXHAUSTED, "no address range of ", bytes, " bytes: ", strerror(errno));
  madvise(p, bytes, MADV_DONTFORK);  // a forked process has no devices, and must not write to its parent's
  return static_cast<char*>(p);
}

}  // namespace

Mapping::Mapping(int devices, size_t bytes) : devices_(devices), bytes_(bytes) {
  const size_t all = static_cast<size_t>(devices) * bytes;
  file_ = memfd_create("anabranch_simdevice", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(all)) != 0) {
    const int why = errno;
    if (file_ >= 0) ::close(file_);
    fail(AB_RESOURCE_EXHAUSTED, "no file in memory of ", all, " bytes: ", strerror(why));
  }
  closed_ = map(file_, all, PROT_NONE);
  open_ = map(file_, all, PROT_READ | PROT_WRITE);
}

Mapping::~Mapping() {
  const size_t all = static_cast<size_t>(devices_) * bytes_;
  munmap(closed_, all);
  munmap(open_, all);
  ::close(file_);
}

int Mapping::device_of(const void* address) const {
  const auto* p = static_cast<const char*>(address);
  if (p < closed_ || p >= closed_ + static_cast<size_t>(devices_) * bytes_) return -1;
  return static_cast<int>(static_cast<size_t>(p - closed_) / bytes_);
}

size_t Mapping::offset_of(const void* address) const {
  return static_cast<size_t>(static_cast<const char*>(address) - closed_) % bytes_;
}

void Mapping::give_back(int device, size_t offset, size_t bytes) const {
  const size_t first = (at(device, offset) + kPage - 1) / kPage * kPage,
               last = at(device, offset + bytes) / kPage * kPage;
  if (first >= last) return;
  fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(first),
            static_cast<off_t>(last - first));
}

}  // namespace anabranch::simdevice
