#include "shared_comm.h"

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#include "failure.h"

namespace anabranch::simdevice {
namespace {

constexpr size_t kPage = 4096;
constexpr std::chrono::milliseconds kLook{2};  // between two checks that the other processes live

enum State : uint32_t { kAbsent, kThere, kLeft, kAborted };
enum Failing : uint32_t { kNot, kWriting, kTold };

}  // namespace

struct SharedComm::Head {
  CommOpening opening;
  std::atomic<int32_t> ranks;
  std::atomic<uint32_t> failing;
  int32_t failed_rank;
  char text[512];
};

struct alignas(64) SharedComm::Slot {
  std::atomic<int64_t> owner;  // process; 0: none
  std::atomic<uint32_t> state;
  uint64_t start;
  std::atomic<uint64_t> rounds;  // started
  Spec specs[2];
};

static_assert(std::atomic<uint64_t>::is_always_lock_free, "processes share no lock");

size_t SharedComm::file_bytes(size_t side) { return kPage + 2 * kMost * side; }

size_t SharedComm::bytes() const { return kPage + 2 * static_cast<size_t>(ranks_) * side_; }

SharedComm::Head& SharedComm::head() const { return *reinterpret_cast<Head*>(memory_); }

SharedComm::Slot& SharedComm::slot(int rank) const {
  static_assert(sizeof(Head) <= kPage / 2 && kMost * sizeof(Slot) <= kPage / 2, "one page for both");
  return reinterpret_cast<Slot*>(memory_ + kPage / 2)[rank];
}

char* SharedComm::payload(int rank, uint64_t round) const {
  return memory_ + kPage + (2 * static_cast<size_t>(rank) + round % 2) * side_;
}

SharedComm::SharedComm(const CommName& name, int own, int ranks)
    : name_(name), ranks_(ranks), mine_(static_cast<size_t>(ranks)), peers_(static_cast<size_t>(ranks)) {
  Descriptor opened;
  if (own < 0) {
    maker_ = Peer(name.process, name.start);
    opened = open_comm_memory(name);
  }
  const int file = own < 0 ? opened.number() : own;
  CommOpening opening;
  if (pread(file, &opening, sizeof opening, 0) == sizeof opening) side_ = opening.side;
  void* p = mmap(nullptr, bytes(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
  if (p == MAP_FAILED) {
    fail(AB_RESOURCE_EXHAUSTED, "no address range of ", bytes(), " bytes for communicator ", name.shown(), ": ",
         strerror(errno));
  }
  madvise(p, bytes(), MADV_DONTFORK);  // a forked process does not take part
  memory_ = static_cast<char*>(p);
}

SharedComm::~SharedComm() { munmap(memory_, bytes()); }

void SharedComm::join(int rank) {
  int32_t ranks = 0;
  if (!head().ranks.compare_exchange_strong(ranks, ranks_) && ranks != ranks_) {
    fail(AB_INVALID_ARGUMENT, "rank ", rank, " says that communicator ", name_.shown(), " has ", ranks_,
         " ranks, another one said ", ranks);
  }
  Slot& own = slot(rank);
  int64_t unowned = 0;
  need(own.owner.compare_exchange_strong(unowned, getpid()), "communicator ", name_.shown(), " has a rank ", rank,
       " already");
  own.start = start_of(getpid());
  own.state.store(kThere, std::memory_order_release);
  mine_[static_cast<size_t>(rank)] = true;
}

void SharedComm::leave(int rank, bool abort) {
  slot(rank).state.store(abort ? kAborted : kLeft, std::memory_order_release);
}

bool SharedComm::joined() {
  for (int rank = 0; rank < ranks_ && !joined_; ++rank) {
    if (slot(rank).state.load(std::memory_order_acquire) == kAbsent) return false;
  }
  return joined_ = true;
}

void SharedComm::begin(int rank, uint64_t round, const Spec& spec) {
  Slot& own = slot(rank);
  own.specs[round % 2] = spec;
  own.rounds.store(round + 1, std::memory_order_release);
}

bool SharedComm::has_begun(int rank, uint64_t round) const {
  return slot(rank).rounds.load(std::memory_order_acquire) > round;
}

const Spec& SharedComm::spec(int rank, uint64_t round) const { return slot(rank).specs[round % 2]; }

void SharedComm::tell(const Trouble& trouble) {
  uint32_t none = kNot;
  if (!head().failing.compare_exchange_strong(none, kWriting)) return;
  head().failed_rank = trouble.rank;
  put_text(head().text, sizeof head().text, trouble.why);
  head().failing.store(kTold, std::memory_order_release);
}

Trouble SharedComm::trouble(uint64_t needed) {
  if (head().failing.load(std::memory_order_acquire) == kTold) return {head().failed_rank, head().text};
  for (int rank = 0; rank < ranks_; ++rank) {
    const uint32_t state = slot(rank).state.load(std::memory_order_acquire);
    if (state == kAborted) return {rank, said("rank ", rank, " has aborted communicator ", name_.shown())};
    if (state == kLeft && needed && !has_begun(rank, needed - 1)) {
      return {rank, said("rank ", rank, " has left communicator ", name_.shown())};
    }
  }
  const auto now = Time::now();
  if (now - looked_ < kLook) return {};
  looked_ = now;
  const Trouble found = ended();
  if (found) tell(found);  // before this process gives up for that reason: the others must get it
  return found;
}

Trouble SharedComm::ended() {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (mine(rank) || slot(rank).state.load(std::memory_order_acquire) != kThere) continue;
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (!peer.process()) peer = Peer(slot(rank).owner, slot(rank).start);
    if (!peer.ended()) continue;
    // Its last operation came before it ended.
    if (slot(rank).state.load(std::memory_order_acquire) != kThere) continue;
    return {rank, said("rank ", rank, " of communicator ", name_.shown(), " has ended (process ", peer.process(), ")")};
  }
  return joined() ? Trouble{} : ended_maker();
}

// Without it no process can join.
Trouble SharedComm::ended_maker() const {
  if (!maker_.process() || !maker_.ended()) return {};
  Trouble trouble;
  std::string missing;
  int count = 0;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (slot(rank).state.load(std::memory_order_acquire) != kAbsent) continue;
    missing += said(" ", rank);
    trouble.rank = count++ ? -1 : rank;
  }
  if (!count) return {};
  trouble.why = said("process ", name_.process, ", which has named communicator ", name_.shown(),
                     ", has ended before rank", count == 1 ? "" : "s", missing, " came");
  return trouble;
}

}  // namespace anabranch::simdevice
