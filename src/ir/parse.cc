// Bytes to Program. For any bytes, the outcome is a program with a sound structure or InvalidArgument.
#include <algorithm>
#include <charconv>
#include <climits>
#include <set>

#include "base/utf8.h"
#include "ir/framework.pb.h"
#include "ir/serialize.h"
#include "ir/well_formed.h"

namespace anabranch::ir {
namespace {

namespace pb = framework::proto;

constexpr int64_t kFirstUnknownVersion = 1009000;  // 1.9.0: never released, 2.0 changed the format

// Python must be able to show every text of a program.
const std::string& text(const std::string& s, const char* what) {
  AB_CHECK(is_utf8(s), InvalidArgument, "{} is not UTF-8 text", what);
  return s;
}

// Fluid's sampled softmax stores a kind as the dtype of the variable that holds the shape of integer labels.
DType get_dtype(const pb::VarType::TensorDesc& desc) {
  return desc.data_type() == pb::VarType::LOD_TENSOR ? DType::kInt64 : dtype_from_number(desc.data_type());
}

void get_tensor(const pb::VarType::TensorDesc& desc, Var* var) {
  var->dtype = get_dtype(desc);
  AB_CHECK(desc.dims_size() <= kMaxRank, InvalidArgument, "variable {} has {} dimensions, at most {} are supported",
           var->name, desc.dims_size(), kMaxRank);
  // Fluid computes with its -1 for "unknown" and so writes other negative extents: 6 x -1 becomes -6.
  for (const int64_t extent : desc.dims()) var->shape.push_back(std::max<int64_t>(extent, kUnknown));
}

void get_lod_level(int32_t level, Var* var) {
  AB_CHECK(level >= 0 && level <= kMaxRank, InvalidArgument, "variable {} has lod_level {}", var->name, level);
  var->lod_level = level;
}

Var::Element get_element(const pb::VarType::LoDTensorDesc& desc, const std::string& reader) {
  Var tensor;
  tensor.name = reader;
  get_tensor(desc.tensor(), &tensor);
  get_lod_level(desc.lod_level(), &tensor);
  return {tensor.shape, tensor.dtype, tensor.lod_level};
}

Var get_var(const pb::VarDesc& desc) {
  Var var;
  var.name = text(desc.name(), "the name of a variable");
  const pb::VarType& type = desc.type();
  AB_CHECK(type.type() >= pb::VarType::LOD_TENSOR && type.type() <= pb::VarType::TUPLE, InvalidArgument,
           "variable {} has type {}, which is not a type of variables", var.name, static_cast<int>(type.type()));
  var.kind = static_cast<VarKind>(type.type());
  var.persistable = desc.persistable();
  var.need_check_feed = desc.need_check_feed();
  if (var.kind == VarKind::kLoDTensor && type.has_lod_tensor()) {
    get_tensor(type.lod_tensor().tensor(), &var);
    get_lod_level(type.lod_tensor().lod_level(), &var);
  } else if (var.kind == VarKind::kLoDTensorArray && type.has_tensor_array()) {
    get_tensor(type.tensor_array().tensor(), &var);
    get_lod_level(type.tensor_array().lod_level(), &var);
  } else if (var.kind == VarKind::kSelectedRows && type.has_selected_rows()) {
    get_tensor(type.selected_rows(), &var);
  } else if (var.kind == VarKind::kReader) {
    for (const auto& tensor : type.reader().lod_tensor()) var.elements.push_back(get_element(tensor, var.name));
  }
  return var;
}

void get_slots(const std::string& type, const google::protobuf::RepeatedPtrField<pb::OpDesc::Var>& in,
               std::vector<Slot>* out) {
  std::set<std::string_view> seen;
  for (const auto& slot : in) {
    text(slot.parameter(), "the name of a slot");
    for (const auto& arg : slot.arguments()) text(arg, "an argument of an op");
    AB_CHECK(seen.insert(slot.parameter()).second, InvalidArgument, "op {} has two slots {}", type, slot.parameter());
    out->push_back({slot.parameter(), {slot.arguments().begin(), slot.arguments().end()}});
  }
}

// The payload fields of the message that are present, as a set of attribute types.
unsigned payloads(const pb::OpDesc::Attr& a) {
  unsigned mask = 0;
  const auto add = [&](bool there, AttrType type) { mask |= there ? 1u << static_cast<int>(type) : 0u; };
  add(a.has_i(), AttrType::kInt);
  add(a.has_f(), AttrType::kFloat);
  add(a.has_s(), AttrType::kString);
  add(a.ints_size() > 0, AttrType::kInts);
  add(a.floats_size() > 0, AttrType::kFloats);
  add(a.strings_size() > 0, AttrType::kStrings);
  add(a.has_b(), AttrType::kBoolean);
  add(a.bools_size() > 0, AttrType::kBooleans);
  add(a.has_block_idx(), AttrType::kBlock);
  add(a.has_l(), AttrType::kLong);
  add(a.blocks_idx_size() > 0, AttrType::kBlocks);
  add(a.longs_size() > 0, AttrType::kLongs);
  return mask;
}

bool is_list(AttrType type) {
  return type == AttrType::kInts || type == AttrType::kFloats || type == AttrType::kStrings ||
         type == AttrType::kBooleans || type == AttrType::kBlocks || type == AttrType::kLongs;
}

template <class List> std::vector<typename List::value_type> to_vector(const List& list) {
  return {list.begin(), list.end()};
}

Attr get_attr(const std::string& op_type, const pb::OpDesc::Attr& a) {
  const auto type = static_cast<AttrType>(a.type());
  text(a.name(), "the name of an attribute");
  if (a.has_s()) text(a.s(), "a text attribute");
  for (const auto& s : a.strings()) text(s, "a text of a list attribute");
  const unsigned mask = payloads(a), own = 1u << static_cast<int>(type);
  AB_CHECK(mask == own || (mask == 0 && is_list(type)), InvalidArgument,
           "op {}: attribute {} is declared {} and does not hold one", op_type, a.name(), attr_type_name(type));
  switch (type) {
    case AttrType::kInt: return a.i();
    case AttrType::kFloat: return a.f();
    case AttrType::kString: return a.s();
    case AttrType::kInts: return to_vector(a.ints());
    case AttrType::kFloats: return to_vector(a.floats());
    case AttrType::kStrings: return to_vector(a.strings());
    case AttrType::kBoolean: return a.b();
    case AttrType::kBooleans: return to_vector(a.bools());
    case AttrType::kBlock: return BlockRef{a.block_idx()};
    case AttrType::kLong: return int64_t{a.l()};
    case AttrType::kLongs: return std::vector<int64_t>(a.longs().begin(), a.longs().end());
    case AttrType::kBlocks: break;
  }
  std::vector<BlockRef> refs;
  for (const int32_t idx : a.blocks_idx()) refs.push_back({idx});
  return refs;
}

bool between(std::string_view text, std::string_view before, std::string_view after, std::string_view* out) {
  const size_t begin = text.find(before);
  if (begin == text.npos) return false;
  const size_t end = text.find(after, begin + before.size());
  *out = text.substr(begin + before.size(), end == text.npos ? text.npos : end - begin - before.size());
  return true;
}

// The innermost frame that is not the framework's own: lines `File "F", line N, in NAME`, each followed by the code.
SourceLoc loc_from_stack(std::vector<std::string> stack) {
  SourceLoc loc;
  for (size_t i = stack.size(); i-- > 0;) {
    std::string_view file, line, function;
    if (!between(stack[i], "File \"", "\"", &file) || !between(stack[i], "\", line ", ",", &line)) continue;
    if (file.find("/fluid/") != file.npos) continue;
    between(stack[i], ", in ", "\n", &function);
    loc.file = file;
    std::from_chars(line.data(), line.data() + line.size(), loc.line);
    loc.function = function;
    if (i + 1 < stack.size()) {
      const std::string& code = stack[i + 1];
      const size_t begin = code.find_first_not_of(" \t");
      if (begin != code.npos) loc.code = code.substr(begin);
    }
    break;
  }
  loc.stack = std::move(stack);
  return loc;
}

OpRef get_op(const pb::OpDesc& desc) {
  auto op = std::make_shared<Op>();
  op->type = text(desc.type(), "the type of an op");
  AB_CHECK(!op->type.empty(), InvalidArgument, "an op has no type");
  get_slots(op->type, desc.inputs(), &op->inputs);
  get_slots(op->type, desc.outputs(), &op->outputs);
  for (const auto& a : desc.attrs()) {
    const bool added = op->attrs.emplace(a.name(), get_attr(op->type, a)).second;
    AB_CHECK(added, InvalidArgument, "op {} has attribute {} twice", op->type, a.name());
  }
  auto stack = op->attrs.find("op_callstack");
  if (stack != op->attrs.end()) {
    op->made_at = loc_from_stack(attr_as<std::vector<std::string>>(stack->first, stack->second));
    op->attrs.erase(stack);
  }
  // Every consumer queries the role, so a file must not give it another type.
  if (op->has_attr("op_role")) op->role();
  op->role_vars();
  return op;
}

void get_block(const pb::BlockDesc& desc, int idx, Program* program) {
  AB_CHECK(desc.idx() == idx, InvalidArgument, "block number {} says that it is number {}", idx, desc.idx());
  if (idx == 0) {
    AB_CHECK(desc.parent_idx() < 0, InvalidArgument, "the global block has a parent, block {}", desc.parent_idx());
  } else {
    AB_CHECK(desc.parent_idx() >= 0 && desc.parent_idx() < idx, InvalidArgument,
             "the parent of block {} must be a block before it, got block {}", idx, desc.parent_idx());
  }
  Block& block = idx == 0 ? program->global_block() : program->create_block(desc.parent_idx());
  block.forward_block = desc.forward_block_idx();
  for (const auto& v : desc.vars()) {
    AB_CHECK(!block.find_var(v.name()), InvalidArgument, "block {} has two variables {}", idx, v.name());
    block.create_var(get_var(v));
  }
  for (const auto& o : desc.ops()) block.push_op(get_op(o));
}

ProgramRef to_program(const pb::ProgramDesc& desc) {
  const int64_t version = desc.version().version();
  AB_CHECK(version >= 0 && version < kFirstUnknownVersion, InvalidArgument,
           "the program has version {}; 0 and versions below {} are supported", version, kFirstUnknownVersion);
  AB_CHECK(desc.blocks_size() > 0, InvalidArgument, "the program has no blocks");
  ProgramRef program = Program::make();
  program->file_version = version;
  for (int i = 0; i < desc.blocks_size(); ++i) get_block(desc.blocks(i), i, program.get());
  check_well_formed(*program);
  return program;
}

}  // namespace

ProgramRef parse_program(std::string_view bytes) {
  AB_CHECK(bytes.size() <= INT_MAX, InvalidArgument, "a program of {} bytes is too large", bytes.size());
  pb::ProgramDesc desc;
  // In two steps, for the one that does both writes to stderr when a required field is missing.
  const bool whole = desc.ParsePartialFromArray(bytes.data(), static_cast<int>(bytes.size())) && desc.IsInitialized();
  AB_CHECK(whole, InvalidArgument, "these {} bytes are not a program: they are damaged or cut off", bytes.size());
  try {
    ProgramRef program = to_program(desc);
    program->read_canonical = serialize_canonical(*program);
    program->read_bytes = std::string(bytes);
    return program;
  } catch (Error& e) {
    if (e.kind() == ErrorKind::kInvalidArgument) throw e.with_while("reading a program");
    AB_THROW(InvalidArgument, "the program is damaged: {}", e.message());
  }
}

}  // namespace anabranch::ir
