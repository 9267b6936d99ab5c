// Links of the growable tables of a server: a worker requests the rows of one moment, part by part, and writes them to
// the files of a chain (ps/link_copy.h). One cut of a table is open at a time. It is dropped when its worker is silent,
// and its changes are part of the next one then. Any thread.
#pragma once
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "rpc/message.h"
#include "sparse/growable_table.h"

namespace anabranch {

class ServedLinks {
 public:
  using Table = std::shared_ptr<sparse::GrowableTable>;

  // Answers a request (ps::LinkRequest). No update runs while a cut is begun. NotFound: it is not open, or the changes
  // were not recorded.
  void handle(uint32_t variable, const Table& table, std::span<const int64_t> request, rpc::Message* into);
  // Drops cuts whose workers are silent.
  void drop_silent();

 private:
  using Clock = std::chrono::steady_clock;
  struct Open {
    int64_t token = 0;
    std::unique_ptr<sparse::GrowableTable::Cut> cut;
    int64_t part = -1;  // the last one, which may be requested again
    bool more = true;
    sparse::CutRows rows;
    Clock::time_point heard;
  };

  void begin(uint32_t variable, const Table& table, int64_t token, bool whole, rpc::Message* into);
  void next(uint32_t variable, Open* open, int64_t part, rpc::Message* into);
  Open& find(uint32_t variable, int64_t token);

  std::mutex mutex_;
  std::map<uint32_t, Open> open_;
};

}  // namespace anabranch
