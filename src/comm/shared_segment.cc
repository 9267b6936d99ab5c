#include "comm/shared_segment.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>

namespace anabranch::comm {
namespace {

constexpr size_t kHead = 4096, kLine = 64;

size_t stride_of(size_t slot_bytes) { return kLine + (slot_bytes + kLine - 1) / kLine * kLine; }
size_t bytes_for(int processes, size_t slot_bytes) {
  return kHead + static_cast<size_t>(processes) * Segment::kSlots * stride_of(slot_bytes);
}

// Numbers of processes and their descriptors mean something on one machine, within one space of numbers.
std::array<uint64_t, 2> machine() {
  std::array<uint64_t, 2> out{};
  char text[64] = {};
  const int fd = ::open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return out;
  const ssize_t n = ::read(fd, text, sizeof(text) - 1);
  ::close(fd);
  struct stat space {};
  if (n <= 0 || stat("/proc/self/ns/pid", &space) != 0) return out;
  uint64_t h = 0xcbf29ce484222325u;
  for (const char* c = text; *c; ++c) h = (h ^ static_cast<unsigned char>(*c)) * 0x100000001b3u;
  return {h, space.st_ino};
}

}  // namespace

char* Segment::slot(int process, int slot) const {
  return memory_ + kHead + static_cast<size_t>(process * kSlots + slot) * stride_of(address_.slot_bytes);
}
std::atomic<uint32_t>& Segment::full(int process, int s) const {
  return *reinterpret_cast<std::atomic<uint32_t>*>(slot(process, s));
}
char* Segment::data(int process, int s) const { return slot(process, s) + kLine; }

bool Segment::map(int processes) {
  if (address_.bytes != bytes_for(processes, address_.slot_bytes)) return false;
  void* at = mmap(nullptr, address_.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return false;
  memory_ = static_cast<char*>(at);
  return true;
}

Segment::~Segment() {
  if (memory_) munmap(memory_, address_.bytes);
  if (fd_ >= 0) ::close(fd_);
}

std::unique_ptr<Segment> Segment::make(int processes, size_t slot_bytes) {
  auto s = std::unique_ptr<Segment>(new Segment());
  SegmentAddress& a = s->address_;
  a.machine = machine();
  a.slot_bytes = slot_bytes;
  a.bytes = bytes_for(processes, slot_bytes);
  a.pid = getpid();
  if (a.machine[0] == 0) return nullptr;
  a.fd = s->fd_ = memfd_create("anabranch", MFD_CLOEXEC);
  if (s->fd_ < 0 || getrandom(&a.secret, sizeof(a.secret), 0) != sizeof(a.secret)) return nullptr;
  // Memory that is not there would end the process when it is written.
  if (posix_fallocate(s->fd_, 0, static_cast<off_t>(a.bytes)) != 0 || !s->map(processes)) return nullptr;
  std::memcpy(s->memory_, &a.secret, sizeof(a.secret));
  return s;
}

std::unique_ptr<Segment> Segment::open(const SegmentAddress& address, int processes) {
  if (address.bytes == 0 || address.machine != machine()) return nullptr;
  auto s = std::unique_ptr<Segment>(new Segment());
  s->address_ = address;
  const std::string path = "/proc/" + std::to_string(address.pid) + "/fd/" + std::to_string(address.fd);
  s->fd_ = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info {};
  const bool fits = s->fd_ >= 0 && fstat(s->fd_, &info) == 0 && S_ISREG(info.st_mode) &&
                    static_cast<uint64_t>(info.st_size) == address.bytes && s->map(processes);
  if (!fits || std::memcmp(s->memory_, &address.secret, sizeof(address.secret)) != 0) return nullptr;
  return s;
}

}  // namespace anabranch::comm
