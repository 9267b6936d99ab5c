// Listening sockets. They are opened here and not by gRPC, because gRPC does not report why it cannot listen, replaces
// a socket file on which another process listens, and stops accepting for good when descriptors run out.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace anabranch::rpc {

// A descriptor, and the socket file that is removed with it.
class Socket {
 public:
  explicit Socket(int fd = -1, std::string path = {}) : fd_(fd), path_(std::move(path)) {}
  ~Socket();
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {
    other.path_.clear();
  }
  Socket& operator=(Socket&& other) noexcept {
    std::swap(fd_, other.fd_);
    std::swap(path_, other.path_);
    return *this;
  }
  int fd() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  void owns(std::string path) { path_ = std::move(path); }
  int port() const;  // 0: it has none

 private:
  int fd_;
  std::string path_;
};

// One for each address of the host, all with one port; none and the reason if the endpoint cannot be listened at.
// "host:port", "[address]:port", "unix:path".
std::vector<Socket> listening_sockets(const std::string& endpoint, std::string* failure);

}  // namespace anabranch::rpc
