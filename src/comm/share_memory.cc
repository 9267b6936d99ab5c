#include "comm/share_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstring>

#include "base/error.h"
#include "comm/collective.h"

namespace anabranch::comm {
namespace {

using Token = std::array<uint64_t, 2>;

// Identity of a process. Process ids are comparable within one namespace only; the token, which is verified in the
// shared memory, proves that it is the same machine.
struct Card {
  uint64_t processes = 0;  // the namespace
  int64_t process = 0;
  int64_t file = -1;  // of the first process: the shared memory
  Token token{};
  bool requested = false;
};

uint64_t process_namespace() {
  struct stat found {};
  return stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

// Memory with allocated pages: a full machine is reported now, not by a signal in the middle of a step.
File make_memory(size_t bytes) {
  File file(memfd_create("anabranch_board", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file || posix_fallocate(file.number(), 0, static_cast<off_t>(bytes)) != 0) return File();
  if (fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return File();
  return file;
}

size_t board_bytes(const Peers& peers) { return Board::bytes(peers.size()); }

Card card_of(const Peers& peers, bool requested, File* memory) {
  Card card{process_namespace(), getpid(), -1, {}, requested && peers.size() <= Board::kMost};
  if (peers.rank() != 0 || !card.requested) return card;
  *memory = make_memory(board_bytes(peers) + sizeof(Token));
  const bool known = getrandom(card.token.data(), sizeof(Token), 0) == sizeof(Token);
  if (!*memory || !known) return card;
  const auto at = static_cast<off_t>(board_bytes(peers));
  if (pwrite(memory->number(), card.token.data(), sizeof(Token), at) == sizeof(Token)) card.file = memory->number();
  return card;
}

std::unique_ptr<Board> open_board(const Peers& peers, const std::vector<Card>& cards) {
  const Card &first = cards[0], &own = cards[peers.rank()];
  std::vector<File> alive(cards.size());
  for (size_t r = 0; r < cards.size(); ++r) {
    if (!cards[r].requested || own.processes == 0 || cards[r].processes != own.processes) return nullptr;
    alive[r] = File(static_cast<int>(syscall(SYS_pidfd_open, static_cast<pid_t>(cards[r].process), 0)));
    if (!alive[r]) return nullptr;
  }
  if (first.file < 0) return nullptr;
  const File memory(open(fmt::format("/proc/{}/fd/{}", first.process, first.file).c_str(), O_RDWR | O_CLOEXEC));
  Token found{};
  const auto at = static_cast<off_t>(board_bytes(peers));
  if (!memory || pread(memory.number(), found.data(), sizeof(found), at) != sizeof(found)) return nullptr;
  Mapping mapping = found == first.token ? Mapping(memory, board_bytes(peers)) : Mapping();
  return mapping ? std::make_unique<Board>(peers.rank(), std::move(mapping), std::move(alive)) : nullptr;
}

// The identity that each process sends to all others.
template <class T> std::vector<T> told_by_all(Peers& peers, const T& mine) {
  static_assert(std::is_trivially_copyable_v<T>);
  const std::string_view bytes(reinterpret_cast<const char*>(&mine), sizeof(T));
  const auto given = Collective().exchange(peers, std::vector<std::string_view>(peers.size(), bytes));
  std::vector<T> out(given.size());
  for (size_t r = 0; r < given.size(); ++r) {
    AB_CHECK(given[r].size() == sizeof(T), Internal, "{} gives {} bytes", peers.name(static_cast<int>(r)),
             given[r].size());
    std::memcpy(static_cast<void*>(&out[r]), given[r].data(), sizeof(T));
  }
  return out;
}

}  // namespace

bool share_memory(Peers& peers, bool requested) {
  File memory;  // until all have opened it
  const auto cards = told_by_all(peers, card_of(peers, requested, &memory));
  auto board = open_board(peers, cards);
  for (const char there : told_by_all(peers, static_cast<char>(board != nullptr))) {
    if (!there) return false;
  }
  peers.use(std::move(board));
  return true;
}

}  // namespace anabranch::comm
