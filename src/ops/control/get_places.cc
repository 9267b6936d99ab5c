// The devices that a program of an early Fluid shares its work among.
#include <memory>
#include <vector>

#include "device/place.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::control::get_places_op {
namespace {

AB_OP(get_places)
    .doc("Out = a list of places. There is one kind, the CPU; replicas are what work is shared among.")
    .out("Out", "a PLACE_LIST")
    .attr<int32_t>("device_count", 0, "how many; 0: as many as there are", at_least<int32_t>("device_count", 0))
    .attr<std::string>("device_type", "AUTO", "AUTO or CPU", one_of("device_type", {"AUTO", "CPU", "CUDA"}))
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.out("Out").kind = VarKind::kPlaceList; })
    .no_grad("places are no numbers")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      AB_CHECK(op.attr<std::string>("device_type") != "CUDA", InvalidArgument,
               "device_type must be AUTO or CPU: there are 0 CUDA devices");
      return [out = op.out("Out")](KernelContext& c) {
        if (c.wants(out)) c.value(out).as<std::shared_ptr<void>>();
      };
    });

}  // namespace
}  // namespace anabranch::control::get_places_op
