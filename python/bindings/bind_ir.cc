// ir/: programs, blocks, variables, ops, as data.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/vector.h>

#include "base/utf8.h"
#include "bind.h"
#include "bind_ir.h"
#include "ir/print.h"
#include "ir/program.h"
#include "ir/serialize.h"
#include "ir/well_formed.h"
#include "opdef/append_op.h"
#include "opdef/file_ops.h"

namespace anabranch::python {
namespace {

using Slots = std::vector<std::pair<std::string, std::vector<std::string>>>;

std::vector<ir::Slot> slots_from(const Slots& slots) {
  std::vector<ir::Slot> out;
  for (const auto& [name, args] : slots) {
    for (const auto& arg : args)
      AB_CHECK(is_utf8(arg), InvalidArgument, "slot {}: a name must be text, got {}", name, arg);
    out.push_back({name, args});
  }
  return out;
}

std::vector<std::string> slot_names(const std::vector<ir::Slot>& slots) {
  std::vector<std::string> out;
  for (const ir::Slot& s : slots) out.push_back(s.name);
  std::sort(out.begin(), out.end());  // Fluid's order
  return out;
}

std::vector<std::string> args_by_slot(const std::vector<ir::Slot>& slots) {
  std::map<std::string, std::vector<std::string>> sorted;
  for (const ir::Slot& s : slots) sorted[s.name] = s.args;
  std::vector<std::string> out;
  for (const auto& [slot, args] : sorted) out.insert(out.end(), args.begin(), args.end());
  return out;
}

std::optional<AttrType> declared_type(const std::string& op_type, const std::string& attr) {
  const OpDef* def = find_op_or_null(op_type);
  const AttrDef* found = def ? def->find_attr(attr) : nullptr;
  if (found) return found->type;
  // Of every op; an empty list does not tell its type.
  if (attr == "op_role_var" || attr == "op_callstack") return AttrType::kStrings;
  if (attr == "op_role") return AttrType::kInt;
  return {};
}

ir::OpRef append(ir::Block& block, const std::string& type, const Slots& inputs, const Slots& outputs,
                 const nb::dict& attrs, std::optional<size_t> index) {
  OpSpec spec{type, slots_from(inputs), slots_from(outputs), {}};
  for (auto [key, value] : attrs) {
    const auto name = nb::cast<std::string>(key);
    spec.attrs[name] = attr_from_python(name, value, declared_type(type, name));
  }
  AB_CHECK(!index || *index <= block.ops().size(), InvalidArgument, "position {} is beyond the block's {} ops", *index,
           block.ops().size());
  return append_op(block, std::move(spec), index);
}

nb::tuple shape_tuple(const Shape& shape) {
  nb::list out;
  for (int64_t d : shape) out.append(d);
  return nb::tuple(out);
}

void bind_var(nb::module_& m) {
  nb::class_<ir::Var>(m, "Var", "Description of a variable.")
      .def(
          "__init__",
          [](ir::Var* self, std::string name) {
            new (self) ir::Var();
            self->name = std::move(name);
          },
          nb::arg("name"))
      .def_ro("name", &ir::Var::name)
      .def_prop_rw(
          "kind", [](const ir::Var& v) { return static_cast<int>(v.kind); },
          [](ir::Var& v, int kind) { v.kind = static_cast<VarKind>(kind); })
      .def_prop_rw(
          "shape", [](const ir::Var& v) { return shape_tuple(v.shape); },
          [](ir::Var& v, const std::vector<int64_t>& shape) { v.shape = Shape(shape); })
      .def_prop_rw(
          "dtype", [](const ir::Var& v) { return static_cast<int>(v.dtype); },
          [](ir::Var& v, int64_t dtype) { v.dtype = dtype_from_number(dtype); })
      .def_rw("lod_level", &ir::Var::lod_level)
      .def_rw("persistable", &ir::Var::persistable)
      .def_rw("need_check_feed", &ir::Var::need_check_feed)
      .def_rw("stop_gradient", &ir::Var::stop_gradient)
      .def_rw("is_data", &ir::Var::is_data)
      .def_rw("is_parameter", &ir::Var::is_parameter)
      .def_rw("trainable", &ir::Var::trainable);
  m.def(
      "var_text", [](const ir::Var& v) { return ir::to_text(v); }, nb::arg("var"));
}

void bind_op(nb::module_& m) {
  nb::class_<BlockRef>(m, "BlockRef", "A sub-block as an attribute.")
      .def(
          "__init__", [](BlockRef* self, int idx) { new (self) BlockRef{idx}; }, nb::arg("idx"))
      .def_ro("idx", &BlockRef::idx);
  nb::class_<ir::Op> op_class(m, "Op", "An op of a block.");
  op_class.def(nb::init<>())
      .def_ro("_type", &ir::Op::type)
      .def(
          "input", [](const ir::Op& op, const std::string& slot) { return op.input(slot); }, nb::arg("slot"))
      .def(
          "output", [](const ir::Op& op, const std::string& slot) { return op.output(slot); }, nb::arg("slot"))
      .def("input_names", [](const ir::Op& op) { return slot_names(op.inputs); })
      .def("output_names", [](const ir::Op& op) { return slot_names(op.outputs); })
      .def("input_arg_names", [](const ir::Op& op) { return args_by_slot(op.inputs); })
      .def("output_arg_names", [](const ir::Op& op) { return args_by_slot(op.outputs); })
      .def("set_input", &ir::Op::set_input, nb::arg("slot"), nb::arg("names"))
      .def("set_output", &ir::Op::set_output, nb::arg("slot"), nb::arg("names"))
      .def("_rename_input", &ir::Op::rename_input, nb::arg("old"), nb::arg("new"))
      .def("_rename_output", &ir::Op::rename_output, nb::arg("old"), nb::arg("new"))
      .def(
          "has_attr",
          [](const ir::Op& op, const std::string& name) {
            return op.has_attr(name) || (name == "op_callstack" && op.made_at.known());
          },
          nb::arg("name"))
      .def(
          "attr",
          [](const ir::Op& op, const std::string& name) {
            if (name == "op_callstack" && !op.has_attr(name)) return nb::object(nb::cast(op.made_at.stack));
            auto it = op.attrs.find(name);
            AB_CHECK(it != op.attrs.end(), NotFound, "op {} has no attribute {}", op.type, name);
            return attr_to_python(it->second);
          },
          nb::arg("name"))
      .def(
          "attr_type",
          [](const ir::Op& op, const std::string& name) {
            auto it = op.attrs.find(name);
            AB_CHECK(it != op.attrs.end(), NotFound, "op {} has no attribute {}", op.type, name);
            return attr_type_name(attr_type(it->second));
          },
          nb::arg("name"))
      .def("attr_names",
           [](const ir::Op& op) {
             std::vector<std::string> out;
             for (const auto& [name, value] : op.attrs) out.push_back(name);
             return out;
           })
      .def(
          "_set_attr",
          [](ir::Op& op, const std::string& name, nb::handle value) {
            // Without a declaration, the new value replaces the old one together with its type.
            op.attrs[name] = attr_from_python(name, value, declared_type(op.type, name));
          },
          nb::arg("name"), nb::arg("value"))
      .def(
          "remove_attr", [](ir::Op& op, const std::string& name) { op.attrs.erase(name); }, nb::arg("name"))
      .def("sub_blocks", &ir::Op::sub_blocks, "Indices of the blocks that the op runs.")
      .def("describe", &ir::Op::describe, nb::arg("index"), nb::arg("block"))
      .def_prop_ro(
          "made_at", [](const ir::Op& op) { return op.made_at.known() ? op.made_at.str() : std::string(); },
          "The user's line that made the op; empty when unknown.");
  add_to_op(op_class);
  m.def(
      "op_text", [](const ir::Op& op, bool details) { return ir::to_text(op, details); }, nb::arg("op"),
      nb::arg("details") = false);
}

void bind_block(nb::module_& m) {
  nb::class_<ir::Block> block_class(m, "Block", "Variables and ops of one level of a program.");
  block_class.def_prop_ro("idx", &ir::Block::idx)
      .def_prop_ro("id", &ir::Block::idx)
      .def_prop_ro("parent", &ir::Block::parent)
      .def_rw("forward_block", &ir::Block::forward_block)
      .def("vars", &ir::Block::vars, "In order of creation.")
      .def("num_vars", [](const ir::Block& b) { return b.vars().size(); })
      .def("_find_var", &ir::Block::find_var, nb::arg("name"))
      .def("_find_var_recursive", &ir::Block::find_var_recursive, nb::arg("name"))
      .def("create_var", &ir::Block::create_var, nb::arg("var"))
      .def("remove_var", &ir::Block::remove_var, nb::arg("name"))
      .def("rename_var", &ir::Block::rename_var, nb::arg("old"), nb::arg("new"))
      .def("ops", &ir::Block::ops, "In program order.")
      .def("op_size", [](const ir::Block& b) { return b.ops().size(); })
      .def(
          "op",
          [](const ir::Block& b, size_t i) {
            AB_CHECK(i < b.ops().size(), InvalidArgument, "op {} of a block of {}", i, b.ops().size());
            return b.ops()[i];
          },
          nb::arg("index"))
      .def(
          "remove_ops",
          [](ir::Block& b, size_t first, size_t last) {
            AB_CHECK(first <= last && last <= b.ops().size(), InvalidArgument, "ops [{}, {}) of a block of {}", first,
                     last, b.ops().size());
            b.remove_ops(first, last);
          },
          nb::arg("first"), nb::arg("last"))
      .def(
          "insert_op",
          [](ir::Block& b, size_t i, ir::OpRef op) {
            AB_CHECK(op && i <= b.ops().size(), InvalidArgument, "position {} is beyond the block's ops", i);
            return b.insert_op(i, std::move(op));
          },
          nb::arg("index"), nb::arg("op"), "Puts an op there unchecked.")
      .def(
          "insert_raw_op",
          [](ir::Block& b, size_t i, const std::string& type, const Slots& inputs, const Slots& outputs,
             const nb::dict& attrs) {
            AB_CHECK(i <= b.ops().size(), InvalidArgument, "position {} is beyond the block's ops", i);
            auto op = std::make_shared<ir::Op>();
            op->type = type;
            op->inputs = slots_from(inputs);
            op->outputs = slots_from(outputs);
            for (auto [key, value] : attrs) {
              const auto name = nb::cast<std::string>(key);
              op->attrs[name] = attr_from_python(name, value, declared_type(type, name));
            }
            op->made_at = current_source_loc();
            return b.insert_op(i, std::move(op));
          },
          nb::arg("index"), nb::arg("type"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("attrs"),
          "An op that nothing runs and no schema describes: feed and fetch of inference programs.")
      .def("append_op", &append, nb::arg("type"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("attrs"),
           nb::arg("index") = nb::none(), "Checks, infers shapes, appends.");
  add_to_block(block_class);
}

}  // namespace

void bind_ir(nb::module_& m) {
  bind_var(m);
  bind_op(m);
  bind_block(m);
  bind_descs(m);
  nb::class_<ir::Program> program_class(m, "Program", "Blocks of variables and ops.");
  const auto parse = [](nb::bytes data) {
    ir::ProgramRef program = ir::parse_program(std::string_view(data.c_str(), data.size()));
    replace_file_ops(*program);
    return program;
  };
  program_class.def(nb::new_([] { return ir::Program::make(); }))
      .def(nb::new_(parse), nb::arg("data"))
      .def(nb::new_([](const ir::Program& other) { return other.clone(); }), nb::arg("other"))
      .def("clone", &ir::Program::clone)
      .def("block", &ir::Program::block, nb::arg("idx"), nb::rv_policy::reference_internal)
      .def("num_blocks", &ir::Program::num_blocks)
      .def(
          "create_block", [](ir::Program& p, int parent) { return p.create_block(parent).idx(); }, nb::arg("parent"))
      .def("drop_unused_blocks", &ir::Program::drop_unused_blocks,
           "Only on a fresh copy: Block objects of dropped blocks must not be used any more.")
      .def_rw("random_seed", &ir::Program::random_seed)
      .def_rw("file_version", &ir::Program::file_version)
      .def_prop_ro("id", &ir::Program::id)
      .def_prop_ro("version", &ir::Program::version)
      .def("touch", &ir::Program::touch)
      .def("serialize_to_string",
           [](const ir::Program& p) {
             const std::string bytes = ir::serialize(p);
             return nb::bytes(bytes.data(), bytes.size());
           })
      .def_static("parse_from_string", parse, nb::arg("data"))
      .def(
          "to_text", [](const ir::Program& p, bool details) { return ir::to_text(p, details); },
          nb::arg("details") = false)
      .def("check_well_formed", [](const ir::Program& p) { ir::check_well_formed(p); });
  add_to_program(program_class);
}

}  // namespace anabranch::python
