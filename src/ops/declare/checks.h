// Checks that the shape functions of many ops share, with uniform messages; the engine puts the type of the op in
// front. Unknown extents pass.
#pragma once
#include <string_view>

#include "opdef/infer_context.h"

namespace anabranch {

void check_rank(const InferContext& c, std::string_view slot, int low, int high);
void check_same_shape(const InferContext& c, std::string_view a, std::string_view b);
void check_dtype(const InferContext& c, std::string_view slot, DType needed);
void check_same_dtype(const InferContext& c, std::string_view a, std::string_view b);
void check_same(const InferContext& c, std::string_view a, std::string_view b);
void check_shape(const InferContext& c, std::string_view slot, const Shape& needed);
void check_numel(const InferContext& c, std::string_view slot, int64_t needed);
// One number for each row: [rows], [rows, 1] and so on. Numbers in another arrangement, such as [1, rows], belong to
// something else.
bool is_number_per_row(const Shape& shape, int64_t rows);
void check_number_per_row(const InferContext& c, std::string_view slot, int64_t rows);

// Ids, counts and offsets: accepts both integer types.
void check_ids_dtype(const InferContext& c, std::string_view slot);

// The output takes the LoD of an input if it ends at the output's last row.
void share_fitting_lod(InferContext& c, std::string_view out, std::string_view in, int i = 0);

// The gradient of a slot has the slot's kind, shape and dtype; does nothing if it is not requested. As in Fluid 1.8.5
// it has LoD only for some ops: that of the named input.
void grad_as(InferContext& c, std::string_view grad_slot, std::string_view slot, std::string_view lod_of = {});

}  // namespace anabranch
