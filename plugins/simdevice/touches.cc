#include "touches.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

#include "mapping.h"

namespace anabranch::simdevice {
namespace {

std::atomic<const Mapping*> watched{nullptr};
struct sigaction before;

size_t append(char* line, size_t at, const char* text) {
  while (*text) line[at++] = *text++;
  return at;
}

size_t append(char* line, size_t at, uint64_t number) {
  char digits[20];
  size_t count = 0;
  do {
    digits[count++] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number);
  while (count) line[at++] = digits[--count];
  return at;
}

// Signal handlers may not allocate or lock. The previous handler gets the same fault.
void on_fault(int number, siginfo_t* info, void*) {
  const Mapping* mapping = watched.load();
  const int device = mapping ? mapping->device_of(info->si_addr) : -1;
  if (device >= 0) {
    char line[160];
    size_t at = append(line, 0, "simdevice: the CPU touched byte ");
    at = append(line, at, mapping->offset_of(info->si_addr));
    at = append(line, at, " of device ");
    at = append(line, at, static_cast<uint64_t>(device));
    at = append(line, at, ": memory of a device is reached by copies\n");
    [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line, at);
  }
  sigaction(number, &before, nullptr);
}

}  // namespace

void explain_touches(const Mapping& mapping) {
  if (watched.exchange(&mapping)) return;
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

void stop_explaining_touches() {
  if (!watched.exchange(nullptr)) return;
  struct sigaction now = {};
  sigaction(SIGSEGV, nullptr, &now);
  if ((now.sa_flags & SA_SIGINFO) && now.sa_sigaction == on_fault) sigaction(SIGSEGV, &before, nullptr);
}

}  // namespace anabranch::simdevice
