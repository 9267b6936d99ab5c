#include "comm_name.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>

#include <cerrno>
#include <cstring>
#include <sstream>

#include "failure.h"
#include "peer.h"

namespace anabranch::simdevice {

std::string CommName::shown() const { return said("simulated ", number, " of process ", process); }

std::string CommName::id() const { return said(shown(), " started ", start, " file ", file, " key ", key); }

CommName CommName::read(const std::string& id) {
  CommName name;
  std::istringstream text(id);
  std::string word;
  text >> word >> name.number >> word >> word >> name.process >> word >> name.start >> word >> name.file >> word >>
      name.key;
  if (!text || name.id() != id) {
    fail(AB_UNSUPPORTED, "communicator \"", id.substr(0, 40), "\" was not named by comm_id() of a simulated device");
  }
  return name;
}

Descriptor make_comm_memory(CommName& name, uint64_t side, size_t bytes) {
  Descriptor file(memfd_create("anabranch_simdevice_comm", MFD_CLOEXEC));
  CommOpening opening{0, side};
  const bool made = file && ftruncate(file.number(), static_cast<off_t>(bytes)) == 0 &&
                    getrandom(&opening.key, sizeof opening.key, 0) == sizeof opening.key &&
                    pwrite(file.number(), &opening, sizeof opening, 0) == sizeof opening;
  if (!made) fail(AB_RESOURCE_EXHAUSTED, "no file in memory for a communicator: ", strerror(errno));
  name.file = file.number();
  name.key = opening.key;
  return file;
}

Descriptor open_comm_memory(const CommName& name) {
  const std::string path = said("/proc/", name.process, "/fd/", name.file);
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  CommOpening found;
  const bool read = file && pread(file.number(), &found, sizeof found, 0) == sizeof found;
  if (read && found.key == name.key) return file;
  if (start_of(name.process) != name.start) {
    fail(AB_UNAVAILABLE, "process ", name.process, ", which has named communicator ", name.shown(), ", has ended");
  }
  fail(AB_UNAVAILABLE, "communicator ", name.shown(), " is over: the process that has named it holds it no more");
}

}  // namespace anabranch::simdevice
