// engine/ranking_counts: counts of predictions by label, as arrays.
#include <nanobind/stl/unique_ptr.h>

#include <algorithm>

#include "bind.h"
#include "engine/group_areas.h"
#include "engine/ranking_counts.h"

namespace anabranch::python {
namespace {

void add(RankingCounts& self, nb::handle predict, nb::handle label, nb::handle group) {
  const Tensor p = borrow_array(predict), l = borrow_array(label);
  const Tensor g = group.is_none() ? Tensor() : borrow_array(group);
  self.add(p, l, group.is_none() ? nullptr : &g);
}

// Of the bins that are not empty: their numbers [bins], rows by label [bins, 2], and sums of predictions [bins, 2].
nb::tuple bins(const RankingCounts& self) {
  int64_t count = 0;
  self.each_bin([&](int64_t, const RankingCounts::Bin&) { ++count; });
  Tensor numbers({count}, DType::kInt64), rows({count, 2}, DType::kInt64), sums({count, 2}, DType::kFloat64);
  auto *number = numbers.mutable_data<int64_t>(), *row = rows.mutable_data<int64_t>();
  auto* sum = sums.mutable_data<double>();
  self.each_bin([&](int64_t index, const RankingCounts::Bin& bin) {
    *number++ = index;
    row = std::copy(bin.rows.begin(), bin.rows.end(), row);
    sum = std::copy(bin.predicted.begin(), bin.predicted.end(), sum);
  });
  return nb::make_tuple(array_copy(numbers), array_copy(rows), array_copy(sums));
}

// (sum of areas times rows, rows) of the groups with both labels. codes: int64. groups: None: all rows are one group.
nb::tuple areas(nb::handle groups, nb::handle codes) {
  const Tensor c = borrow_array(codes), g = groups.is_none() ? Tensor() : borrow_array(groups);
  AB_CHECK(c.dtype() == DType::kInt64 && (groups.is_none() || (g.dtype() == DType::kInt64 && g.numel() == c.numel())),
           InvalidArgument, "group_areas: codes and groups must be int64 of one size, got {} and {}", c.numel(),
           groups.is_none() ? c.numel() : g.numel());
  GroupAreas found;
  {
    const Unlocked unlocked;
    const int64_t* const first = c.data<int64_t>();
    const std::vector<uint32_t> bits(first, first + c.numel());
    found =
        groups.is_none() ? whole_area(bits) : group_areas({g.data<int64_t>(), static_cast<size_t>(g.numel())}, bits);
  }
  return nb::make_tuple(found.weighted, found.rows);
}

template <class T> nb::object as_int64(const std::vector<T>& values) {
  Tensor out({static_cast<int64_t>(values.size())}, DType::kInt64);
  std::copy(values.begin(), values.end(), out.mutable_data<int64_t>());
  return array_copy(out);
}

}  // namespace

void bind_ranking(nb::module_& m) {
  m.def("group_areas", &areas, nb::arg("groups").none(), nb::arg("codes"),
        "(sum of areas times rows, rows) of the groups with both labels. groups: None: all rows are one group.");
  nb::class_<RankingCounts>(m, "RankingCounts", "Counts of predictions by label; one thread at a time.")
      .def(nb::init<>())
      .def("add", &add, nb::arg("predict"), nb::arg("label"), nb::arg("group").none(),
           "Adds the rows of a batch: arrays. group: integers, or None in all calls.")
      .def("clear", &RankingCounts::clear)
      .def("bins", &bins, "(numbers, rows by label, sums of predictions by label) of the bins that are not empty.")
      .def(
          "records",
          [](const RankingCounts& self) { return nb::make_tuple(as_int64(self.groups()), as_int64(self.codes())); },
          "(groups, bits of float predictions with the label as the highest of 32 bits).")
      .def_ro_static("few_rows", &RankingCounts::kFewRows);
}

}  // namespace anabranch::python
