#include "ir/serialize.h"

#include <algorithm>

#include "ir/framework.pb.h"

// Fluid keeps slots sorted by name, and we write attributes in that order too (its own order is that of a hash table).
// Fields equal to their default are omitted, except those that Fluid always writes. Readers see no difference.
namespace anabranch::ir {
namespace {

namespace pb = framework::proto;

// Of a variable, or of a tensor in the batches of a reader.
template <class T> void put_tensor(const T& tensor, pb::VarType::TensorDesc* out) {
  out->set_data_type(static_cast<pb::VarType::Type>(tensor.dtype));
  for (const int64_t extent : tensor.shape) out->add_dims(extent);
}

void put_var(const Var& var, pb::VarDesc* out) {
  out->set_name(var.name);
  out->mutable_type()->set_type(static_cast<pb::VarType::Type>(var.kind));
  switch (var.kind) {
    case VarKind::kLoDTensor: {
      auto* desc = out->mutable_type()->mutable_lod_tensor();
      put_tensor(var, desc->mutable_tensor());
      if (var.lod_level) desc->set_lod_level(var.lod_level);
      break;
    }
    case VarKind::kLoDTensorArray: {
      auto* desc = out->mutable_type()->mutable_tensor_array();
      put_tensor(var, desc->mutable_tensor());
      if (var.lod_level) desc->set_lod_level(var.lod_level);
      break;
    }
    case VarKind::kReader:
      for (const auto& element : var.elements) {
        auto* desc = out->mutable_type()->mutable_reader()->add_lod_tensor();
        put_tensor(element, desc->mutable_tensor());
        desc->set_lod_level(element.lod_level);
      }
      break;
    case VarKind::kSelectedRows: put_tensor(var, out->mutable_type()->mutable_selected_rows()); break;
    default: break;
  }
  out->set_persistable(var.persistable);
  if (var.need_check_feed) out->set_need_check_feed(true);
}

struct PutAttr {
  pb::OpDesc::Attr* out;

  void operator()(int32_t v) const { out->set_i(v); }
  void operator()(float v) const { out->set_f(v); }
  void operator()(const std::string& v) const { out->set_s(v); }
  void operator()(const std::vector<int32_t>& v) const { *out->mutable_ints() = {v.begin(), v.end()}; }
  void operator()(const std::vector<float>& v) const { *out->mutable_floats() = {v.begin(), v.end()}; }
  void operator()(const std::vector<std::string>& v) const { *out->mutable_strings() = {v.begin(), v.end()}; }
  void operator()(bool v) const { out->set_b(v); }
  void operator()(const std::vector<bool>& v) const { *out->mutable_bools() = {v.begin(), v.end()}; }
  void operator()(const BlockRef& v) const { out->set_block_idx(v.idx); }
  void operator()(int64_t v) const { out->set_l(v); }
  void operator()(const std::vector<BlockRef>& v) const {
    for (const auto& ref : v) out->add_blocks_idx(ref.idx);
  }
  void operator()(const std::vector<int64_t>& v) const { *out->mutable_longs() = {v.begin(), v.end()}; }
};

void put_slots(std::vector<Slot> slots, google::protobuf::RepeatedPtrField<pb::OpDesc::Var>* out) {
  std::sort(slots.begin(), slots.end(), [](const Slot& a, const Slot& b) { return a.name < b.name; });
  for (const auto& slot : slots) {
    pb::OpDesc::Var* var = out->Add();
    var->set_parameter(slot.name);
    for (const auto& arg : slot.args) var->add_arguments(arg);
  }
}

void put_op(const Op& op, pb::OpDesc* out) {
  put_slots(op.inputs, out->mutable_inputs());
  put_slots(op.outputs, out->mutable_outputs());
  out->set_type(op.type);
  AttrMap attrs = op.attrs;
  // Fluid's layers write the call stack into every op (even an empty one), its gradient makers into none.
  if (!op.made_at.stack.empty() || op.has_attr("op_namescope")) attrs["op_callstack"] = op.made_at.stack;
  for (const auto& [name, value] : attrs) {
    pb::OpDesc::Attr* attr = out->add_attrs();
    attr->set_name(name);
    attr->set_type(static_cast<pb::AttrType>(attr_type(value)));
    std::visit(PutAttr{attr}, value);
  }
}

void put_block(const Block& block, pb::BlockDesc* out) {
  out->set_idx(block.idx());
  out->set_parent_idx(block.parent());
  if (block.forward_block >= 0) out->set_forward_block_idx(block.forward_block);
  for (const auto& var : block.vars()) put_var(*var, out->add_vars());
  for (const auto& op : block.ops()) put_op(*op, out->add_ops());
}

template <class Desc> std::string bytes_of(const Desc& desc, const char* what) {
  std::string bytes;
  AB_CHECK(desc.SerializeToString(&bytes), ResourceExhausted, "the {} is too large for a file", what);
  return bytes;
}

}  // namespace

std::string serialize_canonical(const Program& program) {
  pb::ProgramDesc desc;
  for (int i = 0; i < program.num_blocks(); ++i) put_block(program.block(i), desc.add_blocks());
  if (program.file_version != 0) desc.mutable_version()->set_version(program.file_version);
  return bytes_of(desc, "program");
}

std::string serialize(const Block& block) {
  pb::BlockDesc desc;
  put_block(block, &desc);
  return bytes_of(desc, "block");
}

std::string serialize(const Op& op) {
  pb::OpDesc desc;
  put_op(op, &desc);
  return bytes_of(desc, "op");
}

std::string serialize(const Var& var) {
  pb::VarDesc desc;
  put_var(var, &desc);
  return bytes_of(desc, "variable");
}

std::string serialize(const Program& program) {
  std::string bytes = serialize_canonical(program);
  return !program.read_bytes.empty() && bytes == program.read_canonical ? program.read_bytes : bytes;
}

}  // namespace anabranch::ir
