// The contents of a server, and how they change: the engine runs the update ops, the server decides when.
#pragma once
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ps/names.h"

namespace anabranch::ps {

// A gradient, or in GEO a difference, of one variable: the sum over workers.
struct Change {
  uint32_t variable = 0;
  Tensor dense;                        // shares memory with its creator
  const SelectedRows* rows = nullptr;  // or sparse rows
  uint32_t time = 0;                   // of the events of sparse rows; 0: unknown
};

// The size of a variable.
struct Extent {
  int64_t rows = 0, bytes = 0;
  int64_t found = 0, missed = 0;  // lookups of keys that had a row, and that had none
  // Of a growable table: rows that were created; sightings of keys without a row that wait for admission, or found no
  // room; rows that were removed at the limit, by age and by score.
  int64_t created = 0, waiting = 0, refused = 0, evicted = 0, expired = 0, shrunk = 0;
};

// A store's contents at one moment, written in parts.
class Saving {
 public:
  using Put = std::function<void(const std::string& name, const Tensor& value)>;

  virtual ~Saving() = default;
  // The next parts, of at most about a MiB; several of one name belong to one variable. False: these were the last
  // ones.
  virtual bool next(const Put& put) = 0;
};

// For values that are copied when they are added.
class SavedCopies final : public Saving {
 public:
  void add(const std::string& name, const Tensor& value) {
    values_.emplace_back(name, Tensor()).second.copy_from(value);
  }
  bool next(const Put& put) override {
    if (values_.empty()) return false;
    put(values_.front().first, values_.front().second);
    values_.pop_front();
    return !values_.empty();
  }

 private:
  std::deque<std::pair<std::string, Tensor>> values_;
};

class Store {
 public:
  virtual ~Store() = default;
  // The number of a variable by the workers' name: a parameter, or the gradient that updates one. NotFound.
  virtual uint32_t number(std::string_view name) const = 0;
  virtual std::string name(uint32_t number) const = 0;
  // Applies all of these gradients, in the order of the program for any order here. Once per training step (sync), or
  // once per message of a worker.
  virtual void apply(std::span<const Change> changes) = 0;
  // The variable that a gradient updates row by row; for all others, the variable itself.
  virtual uint32_t table_of(uint32_t gradient) const { return gradient; }
  virtual uint32_t variables() const = 0;  // numbers are below this
  virtual Extent extent(uint32_t) const { return {}; }
  virtual void read(uint32_t variable, Message* into) const = 0;
  virtual void read_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) const = 0;
  // GEO: the rows of keys that have changed, for a worker that keeps a copy: ids, then rows. Of a growable table, the
  // keys that have no row come before, as ids.
  virtual void read_changed(uint32_t variable, std::span<const int64_t> ids, Message* into) const {
    into->add_ids(variable, ids);
    read_rows(variable, ids, into);
  }
  // GEO: the keys of a growable table whose rows the last updates have changed without a difference: its rules have
  // removed or shrunk them.
  virtual std::vector<int64_t> take_told(uint32_t) { return {}; }
  // The same in training: keys of a growable table get a row. From several threads, concurrently with read_rows.
  virtual void train_rows(uint32_t variable, std::span<const int64_t> ids, Message* into) {
    read_rows(variable, ids, into);
  }
  // A growable table: the header of its file, then the rows of a part (GrowableTable::append_rows) by `bits` of the
  // hash; with 0 bits no rows. InvalidArgument: it is not such a table.
  virtual void read_table(uint32_t variable, uint64_t, int, Message*) const {
    AB_THROW(InvalidArgument, "variable {} is not a growable table", variable);
  }

  // The same for links of a growable table (ps/link_copy.h): `request` has its kind and numbers. No update runs while a
  // request of kind LinkRequest::kBegin is handled.
  virtual void read_link(uint32_t variable, std::span<const int64_t>, Message*) {
    AB_THROW(InvalidArgument, "variable {} is not a growable table", variable);
  }

  // ---- the state from which a server is restored
  // The names of its variables.
  virtual std::vector<std::string> kept() const = 0;
  // The current state, while nothing changes; another thread writes it while apply() and all other calls go on.
  virtual std::unique_ptr<Saving> begin_save() const = 0;
  // NotFound, ShapeMismatch: it does not belong to this store.
  virtual void load(const std::string& name, const Tensor& value) = 0;
};

}  // namespace anabranch::ps
