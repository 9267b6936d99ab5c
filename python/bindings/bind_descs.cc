// ir/: the interface that Fluid's scripts use through var.desc, op.desc, block.desc and program.desc.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/utf8.h"
#include "bind.h"
#include "bind_ir.h"
#include "ir/serialize.h"
#include "opdef/append_op.h"
#include "opdef/check_attrs.h"

namespace anabranch::python {
namespace {

// A variable and its program: a change of the variable is one of the program.
struct VarDesc {
  ir::VarRef var;
  ir::ProgramRef program;
  int block;
};

using Names = std::map<std::string, std::vector<std::string>>;

std::optional<VarDesc> desc_of(const ir::Block& block, const ir::VarRef& var) {
  if (!var) return {};
  return VarDesc{var, block.program().shared_from_this(), block.idx()};
}

// Fluid's scripts give names as bytes.
std::string name_of(nb::handle name) {
  if (PyBytes_Check(name.ptr())) return {PyBytes_AsString(name.ptr()), static_cast<size_t>(PyBytes_Size(name.ptr()))};
  return text_of(name);
}

std::string text_name(nb::handle name) {
  std::string text = name_of(name);
  AB_CHECK(is_utf8(text), InvalidArgument, "a name must be text");
  return text;
}

// A variable of a new program.
VarDesc alone(std::string name) {
  auto program = ir::Program::make();
  ir::Var made;
  made.name = std::move(name);
  ir::VarRef var = program->global_block().create_var(made);
  return VarDesc{std::move(var), std::move(program), 0};
}

nb::bytes bytes_of(const std::string& data) { return nb::bytes(data.data(), data.size()); }

// The number as an element of Fluid's enum.
nb::object var_type(int number) {
  return nb::module_::import_("anabranch.fluid.framework.dtype").attr("VarType")(number);
}

Names slots_of(const std::vector<ir::Slot>& slots) {
  Names names;
  for (const auto& slot : slots) names[slot.name] = slot.args;
  return names;
}

std::vector<int64_t> extents_of(const VarDesc& v) { return v.var->shape.to_vector(); }

// A change of the variable, recorded in its program.
template <class T, class Fn> auto changed(Fn fn) {
  return [fn](VarDesc& v, const T& value) {
    fn(*v.var, value);
    v.program->touch();
  };
}

// NAME and set_NAME: a property of each tensor in the batches of a reader. Values that are set change the number of
// tensors.
template <class T, class Get, class Set>
void bind_elements(nb::class_<VarDesc>& desc, const std::string& name, Get get, Set set) {
  const auto check = [name](const VarDesc& v) {
    AB_CHECK(v.var->kind == VarKind::kReader, InvalidArgument, "{}: variable {} must be a reader, got {}", name,
             v.var->name, var_kind_name(v.var->kind));
  };
  desc.def(name.c_str(), [check, get](const VarDesc& v) {
    check(v);
    nb::list all;
    for (const auto& element : v.var->elements) all.append(get(element));
    return all;
  });
  desc.def(("set_" + name).c_str(), [check, set](VarDesc& v, const std::vector<T>& values) {
    check(v);
    std::vector<ir::Var::Element> elements = v.var->elements;
    elements.resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) set(elements[i], values[i]);
    v.var->elements = std::move(elements);
    v.program->touch();
  });
}

void bind_var_desc(nb::module_& m) {
  nb::class_<VarDesc> desc(m, "VarDesc", "A variable of a program, with the methods that Fluid gives it.");
  desc.def(
          "__init__", [](VarDesc* v, nb::handle name) { new (v) VarDesc(alone(text_name(name))); }, nb::arg("name"),
          "A variable of no program.")
      .def("name", [](const VarDesc& v) { return v.var->name; })
      .def(
          "set_name",
          [](VarDesc& v, nb::handle name) {
            const std::string old = v.var->name;  // renaming changes the variable itself
            v.program->block(v.block).rename_var(old, text_name(name));
          },
          nb::arg("name"), "Renames the variable, also in the operators of its block.")
      .def("shape", extents_of)
      .def("get_shape", extents_of)
      .def("set_shape", changed<std::vector<int64_t>>([](ir::Var& v, const auto& shape) { v.shape = Shape(shape); }))
      .def("dtype", [](const VarDesc& v) { return var_type(static_cast<int>(v.var->dtype)); })
      .def("set_dtype", changed<int64_t>([](ir::Var& v, int64_t dtype) { v.dtype = dtype_from_number(dtype); }))
      .def("type", [](const VarDesc& v) { return var_type(static_cast<int>(v.var->kind)); })
      .def("set_type", changed<int>([](ir::Var& v, int kind) {
             var_type(kind);  // ValueError where there is none
             v.kind = static_cast<VarKind>(kind);
           }))
      .def("lod_level", [](const VarDesc& v) { return v.var->lod_level; })
      .def("set_lod_level", changed<int>([](ir::Var& v, int level) { v.lod_level = level; }))
      .def("persistable", [](const VarDesc& v) { return v.var->persistable; })
      .def("set_persistable", changed<bool>([](ir::Var& v, bool value) { v.persistable = value; }))
      .def("need_check_feed", [](const VarDesc& v) { return v.var->need_check_feed; })
      .def("set_need_check_feed", changed<bool>([](ir::Var& v, bool value) { v.need_check_feed = value; }))
      .def("serialize_to_string", [](const VarDesc& v) { return bytes_of(ir::serialize(*v.var)); });
  m.def(
      "var_desc", [](const ir::Block& block, const ir::VarRef& var) { return *desc_of(block, var); }, nb::arg("block"),
      nb::arg("var"));
  bind_elements<std::vector<int64_t>>(
      desc, "shapes", [](const ir::Var::Element& e) { return e.shape.to_vector(); },
      [](ir::Var::Element& e, const std::vector<int64_t>& shape) { e.shape = Shape(shape); });
  bind_elements<int>(
      desc, "lod_levels", [](const ir::Var::Element& e) { return e.lod_level; },
      [](ir::Var::Element& e, int level) { e.lod_level = level; });
  bind_elements<int64_t>(
      desc, "dtypes", [](const ir::Var::Element& e) { return var_type(static_cast<int>(e.dtype)); },
      [](ir::Var::Element& e, int64_t dtype) { e.dtype = dtype_from_number(dtype); });
}

}  // namespace

void add_to_op(nb::class_<ir::Op>& op) {
  op.def("inputs", [](const ir::Op& o) { return slots_of(o.inputs); })
      .def("outputs", [](const ir::Op& o) { return slots_of(o.outputs); })
      .def("type", [](const ir::Op& o) { return o.type; })
      .def(
          "set_type", [](ir::Op& o, std::string type) { o.type = std::move(type); }, nb::arg("type"))
      .def(
          "check_attrs", [](ir::Op& o) { check_attrs(o); },
          "Fills in defaults; raises where an attribute does not meet its declaration.")
      .def(
          "infer_shape", [](const ir::Op& o, ir::Block& block) { infer_op(block, o); }, nb::arg("block"))
      .def(
          "infer_var_type", [](const ir::Op& o, ir::Block& block) { infer_op(block, o); }, nb::arg("block"))
      .def(
          "copy_from", [](ir::Op& o, const ir::Op& other) { o = other; }, nb::arg("other"))
      .def("set_block_attr",
           [](ir::Op& o, const std::string& name, const ir::Block& block) { o.attrs[name] = BlockRef{block.idx()}; })
      .def("set_blocks_attr",
           [](ir::Op& o, const std::string& name, const std::vector<ir::Block*>& blocks) {
             std::vector<BlockRef> refs;
             for (const ir::Block* block : blocks) refs.push_back({block->idx()});
             o.attrs[name] = refs;
           })
      .def("set_serialized_attr", [](ir::Op& o, const std::string& name,
                                     nb::bytes value) { o.attrs[name] = std::string(value.c_str(), value.size()); })
      .def(
          "set_is_target", [](ir::Op&, bool) {}, "Of Fluid's pruning; Program._prune takes targets.", nb::arg("value"))
      .def("serialize_to_string", [](const ir::Op& o) { return bytes_of(ir::serialize(o)); })
      .def("block",
           [](const ir::Op& o) { AB_THROW(Unsupported, "{}: block is not available: use Operator.block", o.type); });
}

void add_to_block(nb::class_<ir::Block>& block) {
  block
      .def("all_vars",
           [](const ir::Block& b) {
             std::vector<VarDesc> all;
             for (const auto& var : b.vars()) all.push_back(*desc_of(b, var));
             return all;
           })
      .def("var",
           [](ir::Block& b, nb::handle name) {
             const std::string text = text_name(name);
             ir::VarRef found = b.find_var(text);
             if (!found) {
               ir::Var made;
               made.name = text;
               found = b.create_var(made);
             }
             return *desc_of(b, found);
           })
      .def("find_var", [](const ir::Block& b, nb::handle name) { return desc_of(b, b.find_var(name_of(name))); })
      .def("find_var_recursive",
           [](const ir::Block& b, nb::handle name) { return desc_of(b, b.find_var_recursive(name_of(name))); })
      .def("has_var", [](const ir::Block& b, nb::handle name) { return b.find_var(name_of(name)) != nullptr; })
      .def("_rename_var",
           [](ir::Block& b, nb::handle old, nb::handle name) { b.rename_var(name_of(old), text_name(name)); })
      .def("has_var_recursive",
           [](const ir::Block& b, nb::handle name) { return b.find_var_recursive(name_of(name)) != nullptr; })
      .def(
          "append_op", [](ir::Block& b) { return b.push_op(std::make_shared<ir::Op>()); }, "One to be filled in.")
      .def("get_forward_block_idx", [](const ir::Block& b) { return b.forward_block; })
      .def("serialize_to_string", [](const ir::Block& b) { return bytes_of(ir::serialize(b)); });
}

// The variables of the feed, or fetch, operators of an inference program, by column.
std::vector<std::string> interface_names(const ir::Program& program, const char* type, bool outputs) {
  std::vector<std::pair<int32_t, std::string>> found;
  for (const auto& op : program.global_block().ops()) {
    if (op->type != type) continue;
    for (const auto& name : outputs ? op->output("Out") : op->input("X")) {
      found.emplace_back(op->has_attr("col") ? op->attr<int32_t>("col") : 0, name);
    }
  }
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<std::string> names;
  for (auto& [column, name] : found) names.push_back(std::move(name));
  return names;
}

void add_to_program(nb::class_<ir::Program>& program) {
  program
      .def(
          "append_block",
          [](ir::Program& p, const ir::Block& parent) -> ir::Block& { return p.create_block(parent.idx()); },
          nb::arg("parent"), nb::rv_policy::reference_internal)
      .def(
          "flush", [](const ir::Program&) {}, "Nothing has to be done: a program has no second form.")
      .def("get_feed_target_names", [](const ir::Program& p) { return interface_names(p, "feed", true); })
      .def("get_fetch_target_names", [](const ir::Program& p) { return interface_names(p, "fetch", false); });
}

void bind_descs(nb::module_& m) { bind_var_desc(m); }

}  // namespace anabranch::python
