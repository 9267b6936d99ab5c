#include "address.h"

#include <netdb.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace anabranch::ps {
namespace {

constexpr const char* kUnix = "unix:";

class Socket {
 public:
  explicit Socket(int family) : fd_(socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0)) {}
  ~Socket() {
    if (fd_ >= 0) close(fd_);
  }
  Socket(const Socket&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

// gRPC replaces an existing socket file, even if another process listens on it.
std::string why_not_file(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return "the path is too long";
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const Socket one(AF_UNIX);
  if (connect(one.fd(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0) return "it is in use";
  const size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  return access(folder.c_str(), W_OK) == 0 ? "" : std::strerror(errno);
}

std::string why_not_bind(const addrinfo& address) {
  const Socket one(address.ai_family);
  const int yes = 1;  // as gRPC does: connections of an earlier server may still be closing
  if (setsockopt(one.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) == 0 &&
      bind(one.fd(), address.ai_addr, address.ai_addrlen) == 0) {
    return "";
  }
  return errno == EADDRINUSE ? "it is in use" : std::strerror(errno);
}

}  // namespace

std::string why_not_listen(const std::string& endpoint) {
  if (endpoint.rfind(kUnix, 0) == 0) return why_not_file(endpoint.substr(std::strlen(kUnix)));
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) return "it has no port";
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  const int failed = getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found);
  if (failed != 0) return gai_strerror(failed);
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  return why_not_bind(*list);
}

}  // namespace anabranch::ps
