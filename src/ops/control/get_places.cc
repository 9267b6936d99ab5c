// Lists the devices that early Fluid programs distribute work over.
#include <memory>

#include "device/place.h"
#include "ops/declare/attr_checks.h"
#include "ops/declare/declare.h"

namespace anabranch::control::get_places_op {
namespace {

AB_OP(get_places)
    .doc("Out = a list of places, all of them the CPU. Replicas, not places, divide the work.")
    .out("Out", "a PLACE_LIST")
    .attr<int32_t>("device_count", 0, "number of places; 0: all", at_least<int32_t>("device_count", 0))
    .attr<std::string>("device_type", "AUTO", "AUTO or CPU", one_of("device_type", {"AUTO", "CPU", "CUDA"}))
    .traits(kOnlyComputes)
    .infer([](InferContext& c) { c.out("Out").kind = VarKind::kPlaceList; })
    .no_grad("places are not numeric")
    .cpu_any([](const KernelArgs& op) -> Kernel {
      AB_CHECK(op.attr<std::string>("device_type") != "CUDA", InvalidArgument,
               "device_type must be AUTO or CPU: there are 0 CUDA devices");
      return [out = op.out("Out")](KernelContext& c) {
        if (c.needs(out)) c.value(out).as<std::shared_ptr<void>>();
      };
    });

}  // namespace
}  // namespace anabranch::control::get_places_op
