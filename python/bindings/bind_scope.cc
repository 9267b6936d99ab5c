// core/scope.h: scopes and the values in them.
#include "core/scope.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind.h"
#include "core/host_copy.h"

namespace anabranch::python {
namespace {

template <class T> T scalar(const Value& value) {
  const Tensor& t = value.tensor();
  AB_CHECK(t.initialized() && t.numel() == 1, InvalidArgument, "the variable holds no single number");
  return *on_host(t).template data<T>();
}

template <class T> void set_scalar(Value& value, T number) {
  Tensor t(Shape{1}, dtype_of<T>);
  *t.mutable_data<T>() = number;
  const Changing changing(value.gate().get());
  value.as<Tensor>() = std::move(t);
  value.touch();
}

template <class T> bool is_scalar(const Value& value) {
  const Tensor* t = value.get<Tensor>();
  return t && t->initialized() && t->numel() == 1 && t->dtype() == dtype_of<T>;
}

// Contents of variables that Fluid's own operators use.
void refuse_others(nb::class_<Value>& value) {
  for (const char* name : {"get_bytes", "get_fetch_list", "get_lod_rank_table", "get_reader", "set_scope"}) {
    value.def(name, [name](Value&, nb::args) {
      AB_THROW(Unsupported, "Variable.{} is not available: fetch numbers with Executor.run, read with a DataLoader",
               name);
    });
  }
}

void bind_value(nb::module_& m) {
  nb::class_<Value> value(m, "Variable", "The value of a variable in a scope.");
  refuse_others(value);
  value
      .def(
          "get_tensor",
          [](std::shared_ptr<Value> self) {
            TensorRef t;
            t.value = std::move(self);
            t.get();
            return t;
          },
          "The tensor; an empty one is made when the variable held nothing.")
      .def(
          "get_selected_rows",
          [](std::shared_ptr<Value> self) {
            auto r = std::make_shared<RowsRef>();
            r->value = std::move(self);
            r->get();
            return r;
          },
          "The sparse rows.")
      .def(
          "get_lod_tensor_array",
          [](std::shared_ptr<Value> self) {
            auto a = std::make_shared<ArrayRef>();
            a->value = std::move(self);
            a->get();
            return a;
          },
          "The array of tensors.")
      .def("is_int", &is_scalar<int32_t>)
      .def("get_int", &scalar<int32_t>)
      .def("set_int", &set_scalar<int32_t>, nb::arg("value"))
      .def("is_float", &is_scalar<float>)
      .def("get_float", &scalar<float>)
      .def("set_float", &set_scalar<float>, nb::arg("value"))
      .def("_is_initialized", &Value::initialized, "Whether an op may read it.")
      .def(
          "_kind",
          [](const Value& v) {
            return v.empty()              ? "empty"
                   : v.is<Tensor>()       ? "tensor"
                   : v.is<SelectedRows>() ? "rows"
                   : v.is<TensorArray>()  ? "array"
                                          : "object";
          },
          "empty, tensor, rows, array or object.")
      .def(
          "_assign",
          [](Value& to, Value& from) {
            const Changing changing(to.gate().get());
            Tensor* source = from.get<Tensor>();
            Tensor* target = to.get<Tensor>();
            if (source && target && target->initialized() && target->shape() == source->shape() &&
                target->dtype() == source->dtype()) {
              target->copy_from(*source);  // other tensors share this memory
            } else if (source) {
              to.as<Tensor>() = std::move(*source);
              from.clear();
            } else {
              to.copy_from(from);
            }
            to.touch();
          },
          nb::arg("other"), "Takes the other variable's value, which is used up.")
      .def("_clear", [](Value& v) {
        const Changing changing(v.gate().get());
        v.clear();
        v.touch();
      });
}

}  // namespace

void bind_scope(nb::module_& m) {
  bind_value(m);
  nb::class_<Scope>(m, "Scope", "Names of variables and their values; a child sees its parent's names.")
      .def(nb::new_([] { return Scope::make(); }))
      .def(
          "var", [](Scope& self, const std::string& name) { return self.share(name); }, nb::arg("name"),
          "The variable of this scope, made when absent.")
      .def("find_var", &Scope::find_shared, nb::arg("name"), "The variable here or in a parent; None when absent.")
      .def("new_scope", &Scope::new_scope, "A child, which sees the names of this scope.")
      .def(
          "drop_kids", [](Scope&) {}, "Nothing to do: a child lives as long as it is used.")
      .def(
          "erase",
          [](Scope& self, const std::vector<std::string>& names) {
            for (const std::string& n : names) self.erase(n);
          },
          nb::arg("names"))
      .def("_remove_from_pool", [](Scope&) {})
      .def("local_var_names", &Scope::local_names, "Names of this scope, sorted.")
      .def_prop_ro("id", &Scope::id, "A number that no other scope of this process has.");
}

}  // namespace anabranch::python
