// sparse/: growable tables in variables of a scope.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/event_time.h"
#include "bind.h"
#include "io/atomic_file.h"
#include "link_files.h"
#include "sparse/growable_table.h"
#include "sparse/hash.h"
#include "sparse/shared_tables.h"
#include "sparse/table_chain.h"

namespace anabranch::python {
namespace {

using sparse::GrowableTable;

nb::dict statistics(GrowableTable& table) {
  sparse::TableStats s;
  {
    const Unlocked unlocked;  // another thread may be saving the table
    s = table.stats();
  }
  nb::dict out;
  out["rows"] = s.rows;
  out["bytes"] = s.bytes;
  out["hits"] = s.hits;
  out["misses"] = s.misses;
  out["created"] = s.created;
  out["waiting"] = s.waiting;
  out["refused"] = s.refused;
  out["evicted"] = s.evicted;
  out["expired"] = s.expired;
  out["shrunk"] = s.shrunk;
  return out;
}

nb::object keys(GrowableTable& table) {
  std::vector<int64_t> all;
  {
    const Unlocked unlocked;
    all = table.keys();
  }
  Tensor out(Shape{static_cast<int64_t>(all.size())}, DType::kInt64);
  std::copy(all.begin(), all.end(), out.mutable_data<int64_t>());
  return array_view(std::move(out));
}

Tensor borrow_keys(nb::handle array) {
  Tensor keys = borrow_array(array);
  AB_CHECK(keys.dtype() == DType::kInt64 && keys.contiguous(), InvalidArgument, "keys are a row-major int64 array");
  return keys;
}

nb::object rows(GrowableTable& table, nb::handle array) {
  const Tensor keys = borrow_keys(array);
  Tensor out(Shape{keys.numel(), table.options().width}, DType::kFloat32);
  sparse::KeyOrder scratch;
  {
    const Unlocked unlocked;
    table.pull(keys.data<int64_t>(), keys.numel(), {}, out.mutable_data<float>(), &scratch, nullptr);
  }
  return array_view(std::move(out));
}

void set_rows(GrowableTable& table, nb::handle array, nb::handle values) {
  const Tensor keys = borrow_keys(array), rows = borrow_array(values);
  AB_CHECK(rows.dtype() == DType::kFloat32 && rows.contiguous() && rows.shape().rank() == 2 &&
               rows.shape()[0] == keys.numel() && rows.shape()[1] == table.options().width,
           InvalidArgument, "rows are a row-major float32 array [{}, {}]", keys.numel(), table.options().width);
  const Unlocked unlocked;
  table.set_rows(keys.data<int64_t>(), keys.numel(), rows.data<float>());
}

size_t remove(GrowableTable& table, nb::handle array) {
  const Tensor keys = borrow_keys(array);
  const Unlocked unlocked;
  const auto* const data = keys.data<int64_t>();
  const size_t found = table.with_rows({data, static_cast<size_t>(keys.numel())}).size();
  table.remove(data, keys.numel());
  return found;
}

void put(Value& value, std::shared_ptr<GrowableTable> fresh) {
  const RunGate::Change change(value.gate().get());
  GrowableTable::put(&value, std::move(fresh));
}

// The keys that belong to `server` of `servers`; null: all.
std::function<bool(int64_t)> keys_of(uint64_t server, uint64_t servers) {
  if (servers <= 1) return {};
  return [=](int64_t key) { return sparse::server_of(key, servers) == server; };
}

void load(Value& value, const Value* like, const std::string& name, const std::string& path, uint64_t server,
          uint64_t servers) {
  const auto mine = keys_of(server, servers);
  const auto known = like ? GrowableTable::of(*like) : nullptr;
  auto fresh = known ? std::make_shared<GrowableTable>(name, known->options()) : GrowableTable::open(name, path, mine);
  if (known) fresh->load(path, mine);
  put(value, std::move(fresh));
}

// ---- chains

void load_chain(Value& value, const Value* like, const std::string& name, const sparse::TableChain& chain,
                uint64_t server, uint64_t servers) {
  const auto known = like ? GrowableTable::of(*like) : nullptr;
  auto fresh = std::make_shared<GrowableTable>(name, known ? known->options() : options_of(chain.last().table()));
  fresh->load(chain, keys_of(server, servers));
  put(value, std::move(fresh));
}

void open_for_lookups(const sparse::TableChain& chain, Value& value) {
  put(value, GrowableTable::for_lookups(chain.last().name(), chain));
}

// A cut that is written as links of a chain.
class LinkCut {
 public:
  LinkCut(std::shared_ptr<GrowableTable> table, bool whole)
      : cut_(std::move(table), kSliceBytes, whole ? sparse::CutKind::kBoth : sparse::CutKind::kChanges) {}

  // (checksum of the changes, of all rows); 0 for a path that is empty.
  std::pair<uint64_t, uint64_t> write(const std::string& changes, const std::string& whole, uint64_t run_high,
                                      uint64_t run_low, int64_t number, int64_t previous, uint64_t previous_changes,
                                      uint64_t previous_whole) {
    const sparse::LinkPlace place{{run_high, run_low}, number, previous, {previous_changes, previous_whole}, 0};
    return write_link_files(changes, whole, [&](io::AtomicFile* all, io::AtomicFile* some) {
      return write_links(&cut_, place, all, some);
    });
  }
  void end(uint64_t link) { cut_.end(link); }
  void abandon() { cut_.abandon(); }

 private:
  static constexpr int64_t kSliceBytes = 8 << 10;  // for which an update waits

  GrowableTable::Cut cut_;
};

// The checksum of the link for serving.
uint64_t write_for_serving(const std::string& from, const std::string& to, int64_t form, int64_t previous,
                           uint64_t previous_changes, uint64_t previous_whole) {
  const sparse::LinkReader link(from);
  sparse::LinkPlace place = link.place();
  place.previous = previous;
  place.previous_sums = {previous_changes, previous_whole};
  io::AtomicFile file(to);
  const uint64_t sum = write_for_serving(link, place, static_cast<sparse::RowForm>(form), &file);
  file.commit();
  return sum;
}

nb::dict describe(const sparse::LinkReader& link) {
  nb::dict out;
  const sparse::LinkPlace& p = link.place();
  out["path"] = link.path();
  out["table"] = link.name();
  out["run"] = fmt::format("{:016x}{:016x}", p.run[0], p.run[1]);
  out["number"] = p.number;
  out["previous"] = p.previous;
  out["whole"] = p.whole != 0;
  out["rows"] = link.rows();
  out["gone"] = link.gone();
  out["checksum"] = link.checksum();
  out["width"] = link.table().width;
  out["moments"] = link.table().moments;
  return out;
}

nb::list describe_links(const sparse::TableChain& chain) {
  nb::list out;
  for (const auto& link : chain.links()) out.append(describe(link));
  return out;
}

}  // namespace

void bind_sparse(nb::module_& m) {
  m.def("set_event_time", &set_event_time, nb::arg("seconds").none());
  nb::class_<GrowableTable>(m, "GrowableTable", "A table whose rows appear when their keys are seen.")
      .def_prop_ro("width", [](const GrowableTable& t) { return t.options().width; })
      .def_prop_ro("moments", [](const GrowableTable& t) { return rules::info_of(t.options().rule).moments; })
      .def_prop_ro("rule", [](const GrowableTable& t) { return rules::info_of(t.options().rule).name; })
      .def_prop_ro("max_bytes", [](const GrowableTable& t) { return t.options().max_bytes; })
      .def("statistics", &statistics)
      .def("keys", &keys, "All keys, ascending.")
      .def("rows", &rows, nb::arg("keys"), "[n, width]; zeros for keys without a row.")
      .def("set_rows", &set_rows, nb::arg("keys"), nb::arg("rows"), "rows: [n, width]. Moments stay, or start.")
      .def("remove", &remove, nb::arg("keys"), "The number of rows that there were.")
      .def("recorded_since", &GrowableTable::recorded_since,
           "Checksum of the link since which changes are recorded; 0: they are not.")
      .def("record_since", &GrowableTable::record_since, nb::arg("link"), CallUnlocked(),
           "Records changes from now on, for the link after the one with this checksum.")
      .def("changed_bytes", &GrowableTable::changed_bytes, CallUnlocked(),
           "Bytes of the rows and keys of the next link.")
      .def("save", &GrowableTable::save, nb::arg("path"), nb::arg("with_moments"), nb::arg("files"), CallUnlocked());
  m.def("growable_table", &GrowableTable::of, nb::arg("value"), "The table of a variable, or None.");
  m.def("load_growable_table", &load, nb::arg("value"), nb::arg("like").none(), nb::arg("name"), nb::arg("path"),
        nb::arg("server") = 0, nb::arg("servers") = 1,
        "Gives a variable the table of a file, by the rules of the table in `like`, or by the file's own.",
        CallUnlocked());
  nb::class_<sparse::TableChain>(m, "TableChain", "A chain of links that are whole, in order, and of one table.")
      .def(
          "__init__",
          [](sparse::TableChain* self, const std::vector<std::string>& paths, const sparse::TableChain* after) {
            new (self) sparse::TableChain(paths, after ? &after->last() : nullptr);
          },
          nb::arg("paths"), nb::arg("after").none() = nb::none(), CallUnlocked(),
          "after: the chain whose last link the first one follows.")
      .def(
          "layer_over", [](const sparse::TableChain& chain, GrowableTable& table) { return table.layer_of(chain); },
          nb::arg("table"), CallUnlocked(), "The changes of the chain, to be laid over a table.")
      .def("open", &open_for_lookups, nb::arg("value"), CallUnlocked(),
           "Gives a variable the table at the end of the chain, without moments and rules.")
      .def("links", &describe_links, "A dict for each link.");
  using sparse::SharedTables;
  nb::class_<SharedTables>(m, "SharedTables",
                           "Tables of which the processes of a machine have the rows in memory once.")
      .def(nb::init<std::string>(), nb::arg("folder"))
      .def(
          "open",
          [](SharedTables& self, const sparse::TableChain& chain, Value& value) { put(value, self.open(chain)); },
          nb::arg("chain"), nb::arg("value"), CallUnlocked(), "The same as TableChain.open with rows that are shared.")
      .def("renewed", &SharedTables::renewed, nb::arg("table"), nb::arg("link"), nb::arg("makes"), CallUnlocked(),
           "A table that reads as this one, which has the rows at a link, and shares more of them; or None.")
      .def("not_a_chain", &SharedTables::not_a_chain, nb::arg("table"), "A table stands in one file: it is not shared.")
      .def_prop_ro("problem", &SharedTables::problem, "Why a table is not shared; empty if all are.");
  m.def(
      "preview_table",
      [](Value& value, std::shared_ptr<GrowableTable> table, std::shared_ptr<GrowableTable> changes) {
        GrowableTable::put(&value, GrowableTable::preview(std::move(table), std::move(changes)));
      },
      nb::arg("value"), nb::arg("table"), nb::arg("changes"),
      "Gives a variable a table that reads as `table` will with a layer of `changes`.");
  m.def("load_table_chain", &load_chain, nb::arg("value"), nb::arg("like").none(), nb::arg("name"), nb::arg("chain"),
        nb::arg("server") = 0, nb::arg("servers") = 1, "The same as load_growable_table from a chain.", CallUnlocked());
  m.def(
      "link_before", [](const std::string& path) { return sparse::LinkReader::place_of(path).previous; },
      nb::arg("path"), CallUnlocked(), "The number of the link before; what stands there is not checked.");
  m.def("write_link_for_serving", &write_for_serving, nb::arg("source"), nb::arg("target"), nb::arg("form"),
        nb::arg("previous"), nb::arg("previous_changes"), nb::arg("previous_whole"), CallUnlocked(),
        "form 1: float32, 2: bfloat16, 3: int8; without moments. The checksum of the link.");
  nb::class_<LinkCut>(m, "LinkCut", "The rows of a table at the moment at which it is made.")
      .def(nb::init<std::shared_ptr<GrowableTable>, bool>(), nb::arg("table"), nb::arg("whole"), CallUnlocked())
      .def("write", &LinkCut::write, nb::arg("changes"), nb::arg("whole"), nb::arg("run_high"), nb::arg("run_low"),
           nb::arg("number"), nb::arg("previous"), nb::arg("previous_changes"), nb::arg("previous_whole"),
           CallUnlocked(), "Writes the links; an empty path: not this one. (checksum of the changes, of all rows)")
      .def("abandon", &LinkCut::abandon, "The links could not be written: the changes belong to the next cut.")
      .def("end", &LinkCut::end, nb::arg("link"), "The links are in place.");
}

}  // namespace anabranch::python
