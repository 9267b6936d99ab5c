// Owners of system resources: a file descriptor, and mapped memory.
#pragma once
#include <cstddef>
#include <utility>

namespace anabranch::comm {

class File {
 public:
  explicit File(int number = -1) : number_(number) {}
  File(File&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  File& operator=(File&& other) noexcept;
  ~File();

  int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

 private:
  int number_;
};

// Pages shared with every process that has the file open.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const File& file, size_t bytes);  // empty if the system refuses
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  char* data() const { return static_cast<char*>(data_); }
  explicit operator bool() const { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace anabranch::comm
