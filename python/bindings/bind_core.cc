// core/: places, tensors, sparse rows, arrays of tensors.
#include <fmt/ranges.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "bind.h"
#include "core/host_copy.h"
#include "core/uploads.h"

namespace anabranch::python {

Tensor& TensorRef::get() {
  if (rows) return rows->get().value;
  if (!value) return own;
  if (auto* t = value->get<Tensor>()) return *t;
  AB_CHECK(value->empty(), InvalidArgument, "the variable holds no tensor");
  return value->as<Tensor>();
}

SelectedRows& RowsRef::get() {
  if (!value) return own;
  if (auto* r = value->get<SelectedRows>()) return *r;
  AB_CHECK(value->empty(), InvalidArgument, "the variable holds no sparse rows");
  return value->as<SelectedRows>();
}

TensorArray& ArrayRef::get() {
  if (!value) return own;
  if (auto* a = value->get<TensorArray>()) return *a;
  AB_CHECK(value->empty(), InvalidArgument, "the variable holds no array of tensors");
  return value->as<TensorArray>();
}

namespace {

// A CPUPlace is one; places of devices carry theirs.
Place place_of(nb::handle place) {
  if (nb::isinstance<Place>(place)) return nb::cast<Place>(place);
  return nb::hasattr(place, "_in_core") ? nb::cast<Place>(place.attr("_in_core")) : Place();
}

void set_tensor(TensorRef& self, nb::handle array, nb::handle place, bool) {
  const Tensor from = borrow_array(array);
  const Place to = self.rows ? Place() : place_of(place);  // sparse rows are on the CPU
  const Changing changing(self.gate());
  Tensor& t = self.get();
  const LoDRef lod = t.lod_ref();
  t.copy_from(from, to);
  t.set_lod(lod);  // kept: a caller that sets data with other rows sets the sequences next
  self.touch();
}

// Rows as Python indexes them, without LoD; an int keeps its axis. Iteration ends at the IndexError.
TensorRef get_item(TensorRef& self, nb::handle key) {
  const Shape& shape = self.get().shape();
  auto keep_axis = [&shape](nb::handle k, int axis) -> nb::object {
    if (!PyIndex_Check(k.ptr())) return nb::borrow(k);
    const auto i = nb::cast<int64_t>(nb::int_(k));
    if (axis < shape.rank() && (i < -shape[axis] || i >= shape[axis])) {
      throw nb::index_error(
          fmt::format("index {} is out of range for axis {} of a LoDTensor of shape {}", i, axis, shape.str()).c_str());
    }
    nb::object end = i == -1 ? nb::object(nb::none()) : nb::object(nb::int_(i + 1));
    return nb::steal(PySlice_New(nb::int_(i).ptr(), end.ptr(), nullptr));
  };
  nb::object index;
  if (nb::isinstance<nb::tuple>(key)) {
    nb::list keys;
    for (nb::handle k : nb::cast<nb::tuple>(key)) keys.append(keep_axis(k, static_cast<int>(nb::len(keys))));
    index = nb::tuple(keys);
  } else {
    index = keep_axis(key, 0);
  }
  TensorRef out;
  out.own.copy_from(borrow_array(array_copy(self.get()).attr("__getitem__")(index)));
  return out;
}

std::string tensor_text(TensorRef& self) {
  Tensor& t = self.get();
  if (!t.initialized()) return "LoDTensor (not initialized)";
  return fmt::format("LoDTensor {} {}{}\n{}", dtype_name(t.dtype()), t.shape().str(),
                     t.lod().empty() ? "" : " lod " + lod_str(t.lod()), text_of(array_copy(t)));
}

std::string number_text(nb::handle number) {
  if (PyBool_Check(number.ptr())) return number.is(nb::bool_(true)) ? "1" : "0";
  return PyFloat_Check(number.ptr()) ? fmt::format("{:g}", nb::cast<double>(number)) : text_of(number);
}

// dtypes as Fluid 1.8.5 prints them.
constexpr std::pair<DType, const char*> kPrintedDTypes[] = {
    {DType::kFloat32, "float"}, {DType::kFloat64, "double"}, {DType::kInt32, "int"},    {DType::kInt64, "int64_t"},
    {DType::kUInt8, "uint8_t"}, {DType::kInt8, "int8_t"},    {DType::kInt16, "int16_t"}};

// The text of print(): the lines of Fluid 1.8.5.
std::string printed_tensor(TensorRef& self) {
  Tensor& t = self.get();
  if (!t.initialized()) return "LoDTensor (not initialized)";
  const auto* dtype = std::find_if(std::begin(kPrintedDTypes), std::end(kPrintedDTypes),
                                   [&](const auto& printed) { return printed.first == t.dtype(); });
  std::string lod, data;
  for (const auto& level : t.lod()) lod += fmt::format("{{{}}}", fmt::join(level, ", "));
  for (const nb::handle number : nb::cast<nb::list>(array_copy(t).attr("ravel")().attr("tolist")())) {
    data += (data.empty() ? "" : " ") + number_text(number);
  }
  return fmt::format("\tlod: {{{}}}\n\tdim: {}\n\tlayout: NCHW\n\tdtype: {}\n\tdata: [{}]\n", lod,
                     fmt::join(t.shape().to_vector(), ", "),
                     dtype == std::end(kPrintedDTypes) ? dtype_name(t.dtype()) : dtype->second, data);
}

void bind_tensor(nb::module_& m) {
  nb::class_<TensorRef>(m, "LoDTensor", "A tensor with the sequences (LoD) of its rows.")
      .def(nb::init<>())
      .def(
          "__init__",
          [](TensorRef* self, const std::vector<std::vector<int64_t>>& recursive_seq_lens) {
            new (self) TensorRef();
            self->own.set_lod(lod_from_lengths(recursive_seq_lens));
          },
          nb::arg("recursive_seq_lens"))
      .def(
          "set", &set_tensor, nb::arg("array").none(), nb::arg("place") = nb::none(), nb::arg("zero_copy") = false,
          "Copies an array into the tensor. place: where it lies then; zero_copy: accepted, the data is copied all the "
          "same.")
      .def(
          "shape", [](TensorRef& self) { return self.get().shape().to_vector(); }, "Extents; [0] before data is set.")
      .def(
          "lod", [](TensorRef& self) { return self.get().lod(); }, "Sequences as nested offsets; [] for none.")
      .def(
          "set_lod",
          [](TensorRef& self, const LoD& lod) {
            const Changing changing(self.gate());
            self.get().set_lod(lod);
            self.touch();
          },
          nb::arg("lod"), "Sets the sequences from nested offsets, checked against the number of rows.")
      .def(
          "recursive_sequence_lengths", [](TensorRef& self) { return lod_to_lengths(self.get().lod()); },
          "Sequences as nested lengths; [] for none.")
      .def(
          "set_recursive_sequence_lengths",
          [](TensorRef& self, const std::vector<std::vector<int64_t>>& lengths) {
            const Changing changing(self.gate());
            self.get().set_lod(lod_from_lengths(lengths));
            self.touch();
          },
          nb::arg("recursive_sequence_lengths"), "Sets the sequences from nested lengths, checked.")
      .def(
          "has_valid_recursive_sequence_lengths",
          [](TensorRef& self) {
            try {
              check_lod(self.get().lod(), self.get().rows());
            } catch (const Error&) {
              return false;
            }
            return true;
          },
          "Whether the sequences fit the rows.")
      .def(
          "__array__",
          [](TensorRef& self, nb::handle dtype, nb::handle) {
            nb::object array = array_copy(self.get());
            return dtype.is_none() ? array : array.attr("astype")(dtype);
          },
          nb::arg("dtype") = nb::none(), nb::arg("copy") = nb::none(), "A copy as numpy array.")
      .def("__getitem__", &get_item, nb::arg("index"))
      .def("__len__", [](TensorRef& self) { return self.get().rows(); })
      .def("_dtype_number", [](TensorRef& self) { return static_cast<int>(self.get().dtype()); })
      .def(
          "_device",
          [](TensorRef& self) {
            const Place p = self.get().place();
            return p.kind == PlaceKind::kCpu ? -1 : p.kind == PlaceKind::kCudaPinned ? -2 : int{p.id};
          },
          "Number of the device where the memory lies; -1: the CPU, -2: pinned memory.")
      .def("_is_initialized", [](TensorRef& self) { return self.get().initialized(); })
      .def("_clear",
           [](TensorRef& self) {
             const Changing changing(self.gate());
             self.get().release();
             self.touch();
           })
      .def(
          "_copy",
          [](TensorRef& self, nb::handle place) {
            TensorRef out;
            out.own.copy_from(self.get(), place_of(place));
            return out;
          },
          nb::arg("place") = nb::none())
      .def(
          "_share_data_with",
          [](TensorRef& self, TensorRef& other) {
            const Changing changing(self.gate());
            self.get() = other.get();
            self.touch();
          },
          nb::arg("other"))
      .def("_get_dims", [](TensorRef& self) { return self.get().shape().to_vector(); })
      .def(
          "_set_dims",
          [](TensorRef& self, const std::vector<int64_t>& dims) {
            const Shape shape(dims);
            AB_CHECK(shape.known(), InvalidArgument, "extents of a tensor are not negative, got {}", shape.str());
            const Changing changing(self.gate());
            Tensor& t = self.get();
            t.resize(shape, t.dtype());
            self.touch();
          },
          nb::arg("dims"))
      .def("__repr__", &tensor_text)
      .def("__str__", &printed_tensor);
}

void bind_rows(nb::module_& m) {
  nb::class_<RowsRef>(m, "SelectedRows", "Some rows of a table: ids, height of the table, values; ids may repeat.")
      .def(nb::init<>())
      .def(
          "__init__",
          [](RowsRef* self, std::vector<int64_t> rows, int64_t height) {
            new (self) RowsRef();
            self->own.rows = std::move(rows);
            self->own.height = height;
          },
          nb::arg("rows"), nb::arg("height"))
      .def(
          "rows", [](RowsRef& self) { return self.get().rows; }, "Ids of the rows.")
      .def(
          "set_rows",
          [](RowsRef& self, std::vector<int64_t> rows) {
            const Changing changing(self.gate());
            self.get().rows = std::move(rows);
            self.touch();
          },
          nb::arg("rows"))
      .def(
          "height", [](RowsRef& self) { return self.get().height; }, "Rows of the whole table.")
      .def(
          "set_height",
          [](RowsRef& self, int64_t height) {
            const Changing changing(self.gate());
            self.get().height = height;
            self.touch();
          },
          nb::arg("height"))
      .def(
          "numel", [](RowsRef& self) { return self.get().value.numel(); }, "Elements of all values.")
      .def(
          "sync_index", [](RowsRef&) {}, "Nothing to do: rows are found without an index.")
      .def(
          "get_tensor",
          [](std::shared_ptr<RowsRef> self) {
            TensorRef t;
            t.rows = std::move(self);
            return t;
          },
          "The values, one row an id.");
}

void bind_array(nb::module_& m) {
  nb::class_<ArrayRef>(m, "LoDTensorArray", "A list of LoDTensors.")
      .def(nb::init<>())
      .def(
          "append",
          [](ArrayRef& self, TensorRef& t) {
            const Changing changing(self.gate());
            self.get().push_back(on_host(t.get()));
            self.touch();
          },
          nb::arg("tensor"), "Appends a tensor (its memory is shared; one on a device is copied).")
      .def(
          "_move_to_list",
          [](ArrayRef& self) {
            const Changing changing(self.gate());
            std::vector<TensorRef> moved;
            for (Tensor& t : self.get()) moved.emplace_back().own = std::move(t);
            self.get().clear();
            self.touch();
            return moved;
          },
          "The tensors; the array is empty afterwards.")
      .def("__len__", [](ArrayRef& self) { return self.get().size(); })
      .def(
          "__getitem__",
          [](ArrayRef& self, int64_t i) {
            TensorArray& a = self.get();
            const auto n = static_cast<int64_t>(a.size());
            if (i < 0) i += n;
            if (i < 0 || i >= n) throw nb::index_error("LoDTensorArray index out of range");
            TensorRef t;
            t.own = a[static_cast<size_t>(i)];
            return t;
          },
          nb::arg("index"))
      .def(
          "__setitem__",
          [](ArrayRef& self, int64_t i, TensorRef& t) {
            const Changing changing(self.gate());
            TensorArray& a = self.get();
            if (i < 0 || i >= static_cast<int64_t>(a.size()))
              throw nb::index_error("LoDTensorArray index out of range");
            a[static_cast<size_t>(i)] = on_host(t.get());
            self.touch();
          },
          nb::arg("index"), nb::arg("tensor"));
}

std::vector<TensorRef> bring(Uploads& self, const nb::list& batch) {
  std::vector<Tensor> tensors;
  for (nb::handle value : batch) tensors.push_back(nb::cast<TensorRef&>(value).get());
  {
    const Unlocked unlocked;
    tensors = self.bring(tensors);
  }
  std::vector<TensorRef> brought(tensors.size());
  for (size_t i = 0; i < tensors.size(); ++i) brought[i].own = std::move(tensors[i]);
  return brought;
}

void bind_uploads(nb::module_& m) {
  nb::class_<Uploads>(m, "Uploads", "Brings batches to a device while its runs go on.")
      .def(nb::init<int, std::string>(), nb::arg("device"), nb::arg("what"))
      .def("bring", &bring, nb::arg("batch"), "Copies of these LoDTensors at the device; what lies there is shared.");
}

}  // namespace

void bind_core(nb::module_& m) {
  nb::class_<Place>(m, "CPUPlace", "The memory and cores of this machine.")
      .def(nb::init<>())
      .def(
          "__eq__", [](const Place& a, nb::handle b) { return nb::isinstance<Place>(b) && a == nb::cast<Place>(b); },
          nb::arg("other").none())
      .def("__hash__", [](const Place& p) { return static_cast<int>(p.kind) * 1000 + p.id; })
      .def("__repr__", &Place::str);
  bind_tensor(m);
  bind_rows(m);
  bind_array(m);
  bind_uploads(m);
  m.def("place_of_device", [](int device) { return Place::cuda(device); });
  m.def("pinned_place", [] { return Place::pinned(); });
  m.def("resident_buffer_bytes", &resident_buffer_bytes, "Bytes held by live tensors of this process.");
}

}  // namespace anabranch::python
