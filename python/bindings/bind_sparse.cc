// sparse/: growable tables in variables of a scope.
#include <nanobind/stl/shared_ptr.h>

#include "bind.h"
#include "io/atomic_file.h"
#include "sparse/growable_table.h"
#include "sparse/hash.h"

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

nb::object rows(GrowableTable& table, nb::handle array) {
  const Tensor keys = borrow_array(array);
  AB_CHECK(keys.dtype() == DType::kInt64 && keys.contiguous(), InvalidArgument, "keys are a row-major int64 array");
  Tensor out(Shape{keys.numel(), table.options().width}, DType::kFloat32);
  sparse::KeyOrder scratch;
  {
    const Unlocked unlocked;
    table.pull(keys.data<int64_t>(), keys.numel(), {}, out.mutable_data<float>(), &scratch, nullptr);
  }
  return array_view(std::move(out));
}

// `server` of `servers`: loads the keys of the file that belong there.
void load(Value& value, const Value* like, const std::string& name, const std::string& path, uint64_t server,
          uint64_t servers) {
  std::function<bool(int64_t)> mine;
  if (servers > 1) mine = [=](int64_t key) { return sparse::server_of(key, servers) == server; };
  const auto known = like ? GrowableTable::of(*like) : nullptr;
  auto fresh = known ? std::make_shared<GrowableTable>(name, known->options()) : GrowableTable::open(name, path, mine);
  if (known) fresh->load(path, mine);
  const RunGate::Change change(value.gate().get());
  GrowableTable::put(&value, std::move(fresh));
}

}  // namespace

void bind_sparse(nb::module_& m) {
  nb::class_<GrowableTable>(m, "GrowableTable", "A table whose rows appear when their keys are seen.")
      .def_prop_ro("width", [](const GrowableTable& t) { return t.options().width; })
      .def_prop_ro("moments", [](const GrowableTable& t) { return t.options().moments; })
      .def_prop_ro("max_bytes", [](const GrowableTable& t) { return t.options().max_bytes; })
      .def("statistics", &statistics)
      .def("keys", &keys, "All keys, ascending.")
      .def("rows", &rows, nb::arg("keys"), "[n, width]; zeros for keys without a row.")
      .def("save", &GrowableTable::save, nb::arg("path"), nb::arg("with_moments"), nb::arg("files"), CallUnlocked());
  m.def("growable_table", &GrowableTable::of, nb::arg("value"), "The table of a variable, or None.");
  m.def("load_growable_table", &load, nb::arg("value"), nb::arg("like").none(), nb::arg("name"), nb::arg("path"),
        nb::arg("server") = 0, nb::arg("servers") = 1,
        "Gives a variable the table of a file, by the rules of the table in `like`, or by the file's own.",
        CallUnlocked());
}

}  // namespace anabranch::python
