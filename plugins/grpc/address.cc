#include "address.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace anabranch::rpc {
namespace {

constexpr const char* kUnix = "unix:";

Socket open_socket(int family) { return Socket(socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

std::string reason(int error) { return error == EADDRINUSE ? "it is in use" : std::strerror(error); }

// A file on which no process listens is what a killed server has left.
std::vector<Socket> listen_at_file(const std::string& path, std::string* failure) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    *failure = "the path is too long";
    return {};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const auto* where = reinterpret_cast<sockaddr*>(&address);
  if (const Socket probe = open_socket(AF_UNIX); connect(probe.fd(), where, sizeof(address)) == 0) {
    *failure = "it is in use";
    return {};
  }
  unlink(path.c_str());
  std::vector<Socket> out;
  out.push_back(open_socket(AF_UNIX));
  if (bind(out[0].fd(), where, sizeof(address)) != 0 || listen(out[0].fd(), SOMAXCONN) != 0) {
    *failure = reason(errno);
    return {};
  }
  out[0].owns(path);
  return out;
}

void set_port(sockaddr* address, int port) {
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = htons(port);
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = htons(port);
}

// 0, or the error.
int listen_at(const addrinfo& address, std::vector<Socket>* out) {
  Socket one = open_socket(address.ai_family);
  if (one.fd() < 0) return errno;
  const int yes = 1;  // connections of an earlier server may still be closing
  setsockopt(one.fd(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  if (address.ai_family == AF_INET6) setsockopt(one.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &yes, sizeof(yes));
  if (!out->empty()) set_port(address.ai_addr, out->front().port());
  if (bind(one.fd(), address.ai_addr, address.ai_addrlen) != 0 || listen(one.fd(), SOMAXCONN) != 0) return errno;
  out->push_back(std::move(one));
  return 0;
}

}  // namespace

Socket::~Socket() {
  if (fd_ >= 0) close(fd_);
  if (!path_.empty()) unlink(path_.c_str());
}

int Socket::port() const {
  sockaddr_storage address{};
  socklen_t size = sizeof(address);
  if (getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  if (address.ss_family == AF_INET) return ntohs(reinterpret_cast<sockaddr_in*>(&address)->sin_port);
  if (address.ss_family == AF_INET6) return ntohs(reinterpret_cast<sockaddr_in6*>(&address)->sin6_port);
  return 0;
}

std::vector<Socket> listening_sockets(const std::string& endpoint, std::string* failure) {
  if (endpoint.rfind(kUnix, 0) == 0) return listen_at_file(endpoint.substr(std::strlen(kUnix)), failure);
  const size_t colon = endpoint.rfind(':');
  if (colon == std::string::npos) {
    *failure = "it has no port";
    return {};
  }
  std::string host = endpoint.substr(0, colon);
  if (host.size() > 1 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (const int failed = getaddrinfo(host.c_str(), endpoint.c_str() + colon + 1, &hints, &found); failed != 0) {
    *failure = gai_strerror(failed);
    return {};
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> list(found, &freeaddrinfo);
  std::vector<Socket> out;
  int error = 0;
  for (const addrinfo* a = list.get(); a && error != EADDRINUSE; a = a->ai_next) {
    if (const int now = listen_at(*a, &out)) error = now;
  }
  if (error == EADDRINUSE) out.clear();  // a part of the host belongs to another process
  if (out.empty()) *failure = reason(error);
  return out;
}

}  // namespace anabranch::rpc
