#include "comm/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

namespace anabranch::comm {

File& File::operator=(File&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

File::~File() {
  if (number_ >= 0) close(number_);
}

Mapping::Mapping(const File& file, size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (at == MAP_FAILED) return;
  data_ = at;
  bytes_ = bytes;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_) munmap(data_, bytes_);
}

}  // namespace anabranch::comm
