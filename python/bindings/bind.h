// Common declarations of this folder: one bind function per folder of src/, and conversions between Python objects and
// the engine's values. No logic lives here.
#pragma once
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>

#include "core/value.h"
#include "engine/compiled_program.h"
#include "interpreter.h"
#include "ir/attr.h"
#include "text.h"

namespace anabranch::python {

namespace nb = nanobind;

void bind_error(nb::module_& m);
void bind_flags(nb::module_& m);
void bind_core(nb::module_& m);
void bind_scope(nb::module_& m);
void bind_ir(nb::module_& m);
void bind_callables(nb::module_& m);
void bind_opdef(nb::module_& m);
void bind_autodiff(nb::module_& m);
void bind_graph(nb::module_& m);
void bind_io(nb::module_& m);
void bind_sparse(nb::module_& m);
void bind_data(nb::module_& m);
void bind_raw_rows(nb::module_& m);
void bind_table_stats(nb::module_& m);
void bind_engine(nb::module_& m);
void bind_run(nb::module_& m);
void bind_profiler(nb::module_& m);
void bind_ranking(nb::module_& m);
void bind_train(nb::module_& m);
void bind_predictor(nb::module_& m);
void bind_ps(nb::module_& m);
void install_source_locations(nb::module_& m);

// A sparse gradient held by a variable of a scope, or by itself.
struct RowsRef {
  std::shared_ptr<Value> value;  // null: `own` counts
  SelectedRows own;
  SelectedRows& get();
  RunGate* gate() const { return value ? value->gate().get() : nullptr; }
  void touch() {
    if (value) value->touch();
  }
};

struct ArrayRef {
  std::shared_ptr<Value> value;
  TensorArray own;
  TensorArray& get();
  RunGate* gate() const { return value ? value->gate().get() : nullptr; }
  void touch() {
    if (value) value->touch();
  }
};

// Python's LoDTensor: the tensor of a variable, of sparse rows, or its own. Looked up at every use, so that a variable
// which changes its kind cannot leave a dangling reference.
struct TensorRef {
  std::shared_ptr<Value> value;
  std::shared_ptr<RowsRef> rows;
  Tensor own;
  Tensor& get();
  RunGate* gate() const { return value ? value->gate().get() : rows ? rows->gate() : nullptr; }
  void touch() {
    if (value) value->touch();
    if (rows) rows->touch();
  }
};

std::string text_of(nb::handle object);  // str(object)

// ---- numpy

// A tensor over the memory of an array (borrowed: the array must live as long), or over a converted copy that the
// tensor owns. InvalidArgument names the supported dtypes.
Tensor borrow_array(nb::handle array);
// The same for a plain, row-major array of a known dtype; false for anything else, without an error.
bool view_array(nb::handle array, Tensor* out);
// A new array with a copy of the elements.
nb::object array_copy(const Tensor& tensor);
// An array over the tensor's own memory, kept alive by the array.
nb::object array_view(Tensor tensor);

// A fed array or LoDTensor over its own memory; `name` is for messages.
Tensor feed_tensor(const std::string& name, nb::handle value);
// A fetched value as array (LoD: as LoDTensor), or as LoDTensor; an array of tensors as the list of its elements.
nb::object fetched_to_python(FetchedValue value, bool numpy);

// ---- attributes

Attr attr_from_python(const std::string& name, nb::handle value, std::optional<AttrType> needed);
nb::object attr_to_python(const Attr& attr);

}  // namespace anabranch::python
