// What shape functions of many ops check, with one wording, before which the engine puts the type of the op. Extents
// that are not known yet pass.
#pragma once
#include <string_view>

#include "opdef/infer_context.h"

namespace anabranch {

void check_rank(const InferContext& c, std::string_view slot, int low, int high);
void check_same_shape(const InferContext& c, std::string_view a, std::string_view b);
void check_same_dtype(const InferContext& c, std::string_view a, std::string_view b);
void check_same(const InferContext& c, std::string_view a, std::string_view b);
void check_shape(const InferContext& c, std::string_view slot, const Shape& wanted);
void check_numel(const InferContext& c, std::string_view slot, int64_t wanted);

// Ids, counts and offsets: both integer types are taken.
void check_ids_dtype(const InferContext& c, std::string_view slot);

// Ops that read elements one after another refuse other kinds of values here rather than in the kernel.
void check_tensor(const InferContext& c, std::string_view slot);

// The output carries the sequences of an input, where they end at its last row.
void share_fitting_lod(InferContext& c, std::string_view out, std::string_view in, int i = 0);

// The gradient of a slot has the slot's kind, shape and dtype; nothing happens when none is wanted. As in the original
// it carries sequences for some ops only: those of the input that is named.
void grad_as(InferContext& c, std::string_view grad_slot, std::string_view slot, std::string_view lod_of = {});

}  // namespace anabranch
