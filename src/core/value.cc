#include "core/value.h"

namespace anabranch {

const char* var_kind_name(VarKind kind) {
  switch (kind) {
    case VarKind::kLoDTensor: return "LOD_TENSOR";
    case VarKind::kSelectedRows: return "SELECTED_ROWS";
    case VarKind::kFeedMinibatch: return "FEED_MINIBATCH";
    case VarKind::kFetchList: return "FETCH_LIST";
    case VarKind::kStepScopes: return "STEP_SCOPES";
    case VarKind::kLoDRankTable: return "LOD_RANK_TABLE";
    case VarKind::kLoDTensorArray: return "LOD_TENSOR_ARRAY";
    case VarKind::kPlaceList: return "PLACE_LIST";
    case VarKind::kReader: return "READER";
    case VarKind::kRaw: return "RAW";
    case VarKind::kTuple: return "TUPLE";
  }
  return "UNKNOWN";
}

bool Value::initialized() const {
  if (auto* t = get<Tensor>()) return t->initialized();
  if (auto* r = get<SelectedRows>()) return r->value.initialized();
  return !empty();
}

void Value::copy_from(const Value& other) {
  if (auto* t = other.get<Tensor>()) {
    as<Tensor>().copy_from(*t);
  } else if (auto* r = other.get<SelectedRows>()) {
    auto& mine = as<SelectedRows>();
    mine.rows = r->rows;
    mine.height = r->height;
    mine.value.copy_from(r->value);
  } else if (auto* a = other.get<TensorArray>()) {
    as<TensorArray>() = *a;
  } else if (auto* object = other.get<std::shared_ptr<void>>()) {
    as<std::shared_ptr<void>>() = *object;
  } else {
    clear();
  }
}

Value Value::nothing_;

void Value::write_to_nothing() { AB_THROW(InvalidArgument, "an output that the op computes must be given"); }

Form::Form(const Value& value) : has_memory_(value.initialized()), seen_(true) {
  if (const auto* t = value.get<Tensor>()) {
    is_tensor_ = true;
    shape_ = t->shape();
    kind_ = t->kind();
    lod_ = t->lod_ref();
  } else if (const auto* rows = value.get<SelectedRows>()) {
    shape_ = rows->value.shape();
    if (shape_.rank()) shape_.set(0, rows->height);
    kind_ = rows->value.kind();
  }
}

bool Form::is_that_of_no_tensor(const Value& value) const {
  const Form now(value);
  return seen_ && is_tensor_ == now.is_tensor_ && has_memory_ == now.has_memory_ && kind_ == now.kind_ &&
         shape_ == now.shape_;
}

void Value::wrong_kind(const char* needed) const {
  static const char* names[] = {"nothing (it was never written)", "a tensor", "sparse rows", "a tensor array",
                                "an opaque object"};
  AB_THROW(InvalidArgument, "a variable must hold {}, got {}", needed, names[held_.index()]);
}

}  // namespace anabranch
