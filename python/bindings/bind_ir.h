// Methods that Fluid's scripts use on descriptions, in addition to this package's own.
#pragma once
#include <nanobind/nanobind.h>

#include "ir/program.h"

// The compiler takes a class with a container of unique_ptr for copyable.
template <> struct nanobind::detail::is_copy_constructible<anabranch::ir::Program> : std::false_type {};

namespace anabranch::python {

void bind_descs(nanobind::module_& m);
void add_to_op(nanobind::class_<ir::Op>& op);
void add_to_block(nanobind::class_<ir::Block>& block);
void add_to_program(nanobind::class_<ir::Program>& program);

}  // namespace anabranch::python
