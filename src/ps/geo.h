// GEO: a worker trains on its own and keeps, for each parameter w, its value after the last exchange (old). Every k
// steps it sends (w - old) / workers, which is added to old, too; servers add it to their p. The answer has p: w += p -
// old, old = p. So updates since the start of the exchange stay, and the part that was not sent - all but one share -
// is in w - old, and in the next difference. Of tables only the rows that steps have looked up are sent, or, under
// rules that move others, too, those that have moved; the answer has the rows that have changed on the server. Growable
// tables: geo_table.h.
//
// Parameters change between steps, at the gate of their scope; messages are sent in parallel to the steps.
#pragma once
#include <condition_variable>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ps/exchanger.h"
#include "ps/geo_table.h"
#include "ps/geo_variable.h"
#include "ps/id_set.h"

namespace anabranch::ps {

struct GeoOptions {
  int trainers = 1;
  int64_t every = 100;  // steps of all threads of this worker
  bool thread = true;   // exchanges run in a separate thread; otherwise the caller of steps starts and ends them
};

// Gradients that a program sends nevertheless go as in async training.
class Geo final : public AsyncExchanger {
 public:
  Geo(Client& client, const GeoOptions& options, std::vector<GeoVariable> variables);
  ~Geo() override;

  void note(const std::string& table, std::span<const int64_t> ids) override;
  void end_local_step() override;  // throws errors of an exchange
  // fetch_tables(), then begin().
  void started() override;
  void flush() override;
  Counts counts() const override;

  // Fetches all rows of the servers' tables, and waits. The startup program fetches the other parameters.
  void fetch_tables();
  // Differences are counted from the values of now: after the worker's startup program, before its first step.
  void begin();
  bool begun() const;

  // ---- without a thread
  bool due() const;
  void begin_exchange(Client::Done done);  // when `done` gets no error, end_exchange() applies the answers
  void end_exchange();

 private:
  struct Kept {
    GeoVariable variable;
    Tensor old;
    IdSet noted, sending;
  };

  void fetch_shard(const GeoVariable& variable, size_t shard, Tensor* table, int64_t first);
  void work();
  void exchange();
  void send_all();
  void send_dense(Kept& k);
  void send_rows(Kept& k);
  void merge_all();
  void merge_dense(Kept& k);
  void merge_rows(Kept& k);
  void check_shape(const Kept& k) const;
  void note_moved(Kept& k);
  void take_noted();
  int64_t rows_of(const Kept& k) const;
  void begin_kept(Kept& k);
  RunGate* gate() const;
  void check() const;

  const GeoOptions options_;
  std::map<std::string, Kept> kept_;  // by name
  std::list<GeoTable> tables_;        // growable ones
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false, due_ = false, busy_ = false, over_ = false;
  int64_t since_ = 0;  // steps since the last exchange started
  std::exception_ptr error_;
  int64_t steps_ = 0, exchanges_ = 0, rows_ = 0;  // rows of tables that were sent
  std::vector<char> buffer_;
  std::vector<int64_t> ids_;
  Tensor arrived_;
  std::thread thread_;
};

}  // namespace anabranch::ps
