// Level-of-detail: which rows of a tensor form which sequences, as nested offsets (Fluid's LoD).
// lengths [[2, 1], [3, 1, 2]] = offsets [[0, 2, 3], [0, 3, 4, 6]] of a tensor with six rows.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace anabranch {

using LoD = std::vector<std::vector<int64_t>>;  // offsets, outermost level first
using LoDRef = std::shared_ptr<const LoD>;      // null means "no sequences"; shared by the ops that carry it

// InvalidArgument unless every level starts with 0, does not decrease, has two offsets, agrees with the level below,
// and the last one ends at `rows` (rows < 0: not compared).
void check_lod(const LoD& lod, int64_t rows);
LoD lod_from_lengths(const std::vector<std::vector<int64_t>>& lengths);
std::vector<std::vector<int64_t>> lod_to_lengths(const LoD& lod);
std::string lod_str(const LoD& lod);

// Sequences [begin, end) of the top level, offsets starting at 0 again; *first_row and *last_row are its rows.
LoD slice_lod(const LoD& lod, int64_t begin, int64_t end, int64_t* first_row, int64_t* last_row);
// Appends the sequences of `tail` to those of `lod`; both must have the same number of levels.
void append_lod(LoD* lod, const LoD& tail);

}  // namespace anabranch
