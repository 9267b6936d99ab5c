// The address ranges of the simulated devices: one sparse file in memory, mapped twice. The first mapping, which must
// not be accessed, provides the addresses given to callers, so that a CPU access to device memory faults. Kernels use
// the second one.
#pragma once
#include <cstddef>

namespace anabranch::simdevice {

class Mapping {
 public:
  Mapping(int devices, size_t bytes);  // size of each, a multiple of the page
  ~Mapping();
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  int devices() const { return devices_; }
  size_t bytes() const { return bytes_; }
  int device_of(const void* address) const;     // -1: none
  size_t offset_of(const void* address) const;  // within its device
  char* address(int device, size_t offset) const { return closed_ + at(device, offset); }
  char* host(int device, size_t offset) const { return open_ + at(device, offset); }
  void give_back(int device, size_t offset, size_t bytes) const;  // its pages; they read as zeros afterwards

 private:
  size_t at(int device, size_t offset) const { return static_cast<size_t>(device) * bytes_ + offset; }

  const int devices_;
  const size_t bytes_;
  int file_ = -1;
  char *closed_ = nullptr, *open_ = nullptr;
};

}  // namespace anabranch::simdevice
