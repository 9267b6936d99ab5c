#include "peer.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>

#include <cstdlib>
#include <string>

namespace anabranch::simdevice {

// Field 22 of /proc/PID/stat; the second one, the name of the program, may contain anything, so fields are counted
// after its end. A zombie process counts as gone.
uint64_t start_of(int64_t process) {
  const Descriptor file(open(("/proc/" + std::to_string(process) + "/stat").c_str(), O_RDONLY | O_CLOEXEC));
  char text[1024];
  const ssize_t size = file ? read(file.number(), text, sizeof text) : 0;
  if (size <= 0) return 0;
  const std::string fields(text, static_cast<size_t>(size));
  size_t at = fields.rfind(')');
  if (at == std::string::npos || at + 2 >= fields.size()) return 0;
  const char state = fields[at + 2];
  if (state == 'Z' || state == 'X') return 0;
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = fields.find(' ', at + 1);
  return at == std::string::npos ? 0 : std::strtoull(fields.c_str() + at, nullptr, 10);
}

Peer::Peer(int64_t process, uint64_t start, bool by_descriptor) : process_(process), start_(start) {
  if (by_descriptor)
    descriptor_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(process), 0)));
  gone_ = start_of(process) != start;  // after the descriptor: it belongs to the process with this start
}

bool Peer::ended() const {
  if (gone_ || !descriptor_) return gone_ || start_of(process_) != start_;
  pollfd look{descriptor_.number(), POLLIN, 0};
  return poll(&look, 1, 0) > 0;
}

}  // namespace anabranch::simdevice
